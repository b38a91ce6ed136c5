"""Forms of callbacks: what people fill in about callback endpoints."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy


class EndpointForm(forms.Form):
    name = forms.SlugField(
        max_length=40,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("The name that calls give in callback. Letters, digits, hyphens and underscores."),
    )
    url = forms.CharField(
        max_length=500,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("A public https address. Redirects are not followed."),
    )
    include_answer = forms.BooleanField(
        required=False,
        label=gettext_lazy("Include the answer"),
        help_text=gettext_lazy("Otherwise a message says which call has ended, and where its answer is."),
    )
