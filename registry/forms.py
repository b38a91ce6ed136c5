"""What do people fill in about tools?"""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from registry.models import Decision
from toolhub.kernel.parsers import MAX_BODY_BYTES


class SubmitForm(forms.Form):
    """A manifest as a file or as text; the file wins."""

    file = forms.FileField(
        required=False,
        label=gettext_lazy("Manifest file"),
        help_text=gettext_lazy("A JSON document, at most 1 MiB."),
        widget=forms.FileInput(attrs={"accept": "application/json,.json"}),
    )
    text = forms.CharField(
        required=False,
        label=gettext_lazy("Or paste the manifest"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "class": "mono"}),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        file = data.get("file")
        if file is not None and file.size > MAX_BODY_BYTES:
            self.add_error("file", gettext_lazy("The file is larger than 1 MiB."))
        elif file is None and not data.get("text", "").strip():
            self.add_error("text", gettext_lazy("Choose a file or paste a manifest."))
        return data

    def raw(self) -> bytes:
        file = self.cleaned_data.get("file")
        text: str = self.cleaned_data["text"]
        return bytes(file.read()) if file is not None else text.encode()


class ReviewForm(forms.Form):
    decision = forms.ChoiceField(choices=Decision.choices, widget=forms.HiddenInput)
    note = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=1000,
        required=False,
        label=gettext_lazy("Note to the developer"),
        help_text=gettext_lazy("Kept as evidence."),
    )


class StateForm(forms.Form):
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
    )


class EnableForm(StateForm):
    version = forms.CharField(max_length=40, required=False, widget=forms.HiddenInput)


class DeprecateForm(StateForm):
    """Cannot be taken back, so the name is typed; the server checks it."""

    sunset_on = forms.DateField(label=gettext_lazy("Answers until"), widget=forms.DateInput(attrs={"type": "date"}))
    confirm = forms.CharField(
        max_length=128,
        label=gettext_lazy("Type the tool’s id"),
        help_text=gettext_lazy("Deprecating cannot be undone."),
    )

    def __init__(self, *args: Any, tool: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tool = tool
        self.fields["confirm"].widget.attrs |= {"autocomplete": "off", "placeholder": tool}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed.strip() != self.tool:
            raise forms.ValidationError(gettext_lazy("This is not the id of the tool."))
        return typed
