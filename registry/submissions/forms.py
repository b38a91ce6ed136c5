"""Forms of submissions: the package that a developer brings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from kernel.components.sentences import translate_sentence
from kernel.http.parsers import read_json
from kernel.problems import Malformed
from registry.imports.forms import MAX_MANIFEST
from registry.submissions.checked_packages import read_documents
from registry.submissions.python_files import MAX_SOURCE_BYTES
from unitools.capsules import MAX_CAPSULE_BYTES

MIB = 1024 * 1024


class CapsuleForm(forms.Form):
    """``digest``: of the file that was looked at, so that no other one is submitted in its place."""

    capsule = forms.FileField(
        label=gettext_lazy("Capsule"),
        help_text=gettext_lazy("What unitools pack writes, at most 17 MiB."),
        widget=forms.FileInput(attrs={"accept": ".capsule"}),
    )
    signature = forms.FileField(
        required=False,
        label=gettext_lazy("Its signature"),
        help_text=gettext_lazy("What unitools pack --key writes beside it."),
        widget=forms.FileInput(attrs={"accept": ".json"}),
    )
    digest = forms.CharField(required=False, max_length=71, widget=forms.HiddenInput)

    def clean_capsule(self) -> Any:
        file = self.cleaned_data["capsule"]
        if file.size > MAX_CAPSULE_BYTES:
            raise forms.ValidationError(gettext_lazy("The file is larger than a capsule may be."))
        return file

    def clean_signature(self) -> Any:
        file = self.cleaned_data["signature"]
        if file is not None and file.size > MIB:
            raise forms.ValidationError(gettext_lazy("The file is larger than 1 MiB."))
        return file


class PythonFileForm(forms.Form):
    """A browser does not send a file twice, so its text stays in ``source``."""

    file = forms.FileField(
        required=False,
        label=gettext_lazy("Python file"),
        help_text=gettext_lazy(
            "Each public function at its top becomes a tool. It is read and not run. At most 256 KiB."
        ),
        widget=forms.FileInput(attrs={"accept": ".py,text/x-python"}),
    )
    name = forms.CharField(required=False, max_length=200, widget=forms.HiddenInput)
    source = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_SOURCE_BYTES,
        label=gettext_lazy("Or its text"),
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "class": "mono"}),
    )
    group = forms.CharField(
        max_length=100,
        label=gettext_lazy("Group"),
        help_text=gettext_lazy("What the tools stand under, such as acme.shop."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    version = forms.CharField(max_length=64, initial="1.0.0", label=gettext_lazy("Version"))
    manifests = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_MANIFEST,
        label=gettext_lazy("Manifests"),
        help_text=gettext_lazy("Drafted from the file when empty. Correct here what the source cannot say."),
        widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false", "class": "mono"}),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file is not None and file.size > MAX_SOURCE_BYTES:
            raise forms.ValidationError(gettext_lazy("The file is larger than 256 KiB."))
        return file

    def clean_manifests(self) -> list[dict[str, Any]] | None:
        text = str(self.cleaned_data["manifests"])
        if not text.strip():
            return None
        try:
            return read_documents(read_json(text.encode()))
        except Malformed as problem:
            raise forms.ValidationError(translate_sentence(problem.detail)) from problem

    def clean(self) -> dict[str, Any]:
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if (file := said.get("file")) is not None:
            try:
                said["source"] = file.read().decode().replace("\r\n", "\n")
            except UnicodeDecodeError:
                self.add_error("file", gettext_lazy("The file is not UTF-8 text."))
            said["name"] = file.name
            said["manifests"] = None  # of another file, perhaps
        else:
            said["source"] = str(said.get("source", "")).replace("\r\n", "\n")
        if not said["source"].strip() and "file" not in self.errors:
            self.add_error("file", gettext_lazy("Choose a file, or write its text."))
        said["name"] = said.get("name") or "tools.py"
        return said
