"""Forms of tools: what people fill in."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from kernel.http.parsers import MAX_BODY_BYTES
from registry.models import Decision


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
    """``acknowledged`` holds ids of changes; the service decides which of them are needed."""

    acknowledged = forms.MultipleChoiceField(required=False, widget=forms.MultipleHiddenInput)
    decision = forms.ChoiceField(choices=Decision.choices, widget=forms.HiddenInput)
    note = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=1000,
        required=False,
        label=gettext_lazy("Note to the developer"),
        help_text=gettext_lazy("Kept as evidence."),
    )

    def __init__(self, *args: Any, changes: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["acknowledged"]
        field.choices = [(change["id"], change["pointer"]) for change in changes]


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
    successor = forms.CharField(
        max_length=128,
        required=False,
        label=gettext_lazy("Use instead"),
        help_text=gettext_lazy("The id of the tool that takes its place."),
    )
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


class StageForm(StateForm):
    tenants = forms.CharField(
        max_length=4200,
        label=gettext_lazy("Tenants"),
        help_text=gettext_lazy("Short names of tenants that have it installed, separated by spaces or commas."),
    )

    def clean_tenants(self) -> list[str]:
        return str(self.cleaned_data["tenants"]).replace(",", " ").split()


class YankForm(StateForm):
    """Cannot be taken back, so the version is typed; the server checks it."""

    confirm = forms.CharField(
        max_length=64,
        label=gettext_lazy("Type the version"),
        help_text=gettext_lazy("Yanking cannot be undone."),
    )

    def __init__(self, *args: Any, version: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.version = version
        self.fields["confirm"].widget.attrs |= {"autocomplete": "off", "placeholder": version}

    def clean_confirm(self) -> str:
        typed: str = self.cleaned_data["confirm"]
        if typed.strip() != self.version:
            raise forms.ValidationError(gettext_lazy("This is not the version."))
        return typed


class SecretForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy(
            "The name that installations use, for example shop.token. An existing name gets a new value."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    value = forms.CharField(
        max_length=16_384,
        strip=False,
        label=gettext_lazy("Value"),
        help_text=gettext_lazy("Encrypted at once. Nobody can read it again, here or anywhere else."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
