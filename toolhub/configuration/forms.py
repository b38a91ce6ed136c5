"""Forms of configuration: what a person fills in to plan and apply a configuration file."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from toolhub.configuration.file_format import MAX_BYTES
from toolhub.configuration.services import MAX_REASON


class ConfigurationFileForm(forms.Form):
    """A file or text; the file wins, and its text is what is shown and applied afterwards."""

    file = forms.FileField(
        required=False,
        allow_empty_file=True,
        label=gettext_lazy("Configuration file"),
        help_text=gettext_lazy("YAML or JSON, at most 1 MiB."),
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.json,application/json,application/yaml"}),
    )
    text = forms.CharField(
        required=False,
        label=gettext_lazy("Or paste it"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "class": "mono"}),
    )
    prune = forms.BooleanField(
        required=False,
        label=gettext_lazy("End what the file leaves out, in each of its sections"),
        help_text=gettext_lazy("Otherwise only in the sections that it names under prune."),
    )
    reason = forms.CharField(
        required=False,
        max_length=MAX_REASON,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence with every change."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    digest = forms.CharField(required=False, max_length=80, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file = data.get("file")
        if file is not None and file.size > MAX_BYTES:
            self.add_error("file", gettext_lazy("The file is larger than 1 MiB."))
        elif file is not None:
            try:
                data["text"] = file.read().decode("utf-8")
            except UnicodeDecodeError:
                self.add_error("file", gettext_lazy("The file is not UTF-8 text."))
        elif not data.get("text", "").strip():
            self.add_error("text", gettext_lazy("Choose a file or paste its text."))
        return data

    def again(self, **more: Any) -> ConfigurationFileForm:
        """The same form with what was typed, for another look."""
        kept = {name: self.cleaned_data.get(name, "") for name in ("text", "prune", "reason")}
        return ConfigurationFileForm(initial=kept | more)
