"""Forms of clients that are entered by hand."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy

from access.oauth.clients import MAX_NAME
from access.oauth.redirect_uris import MAX_URI, MAX_URIS


class ClientForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("People read it when the program asks to act as an agent."),
    )
    redirect_uris = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=MAX_URIS * (MAX_URI + 2),
        label=gettext_lazy("Redirect URIs"),
        help_text=gettext_lazy("One a line, as the program’s makers state them. Answers go nowhere else."),
    )
    confidential = forms.BooleanField(
        required=False,
        label=gettext_lazy("It keeps a secret"),
        help_text=gettext_lazy("For a program that runs on a server. One on people’s computers cannot keep any."),
    )

    def clean_redirect_uris(self) -> list[str]:
        return str(self.cleaned_data["redirect_uris"]).split()
