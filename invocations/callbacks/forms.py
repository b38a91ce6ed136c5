"""What do people fill in about callback endpoints?"""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy


class EndpointForm(forms.Form):
    name = forms.SlugField(
        max_length=40,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("What calls say in callback. Letters, digits, hyphens and underscores."),
    )
    url = forms.CharField(
        max_length=500,
        label=gettext_lazy("Address"),
        help_text=gettext_lazy("A public https address. Redirects are not followed."),
    )
    include_answer = forms.BooleanField(
        required=False,
        label=gettext_lazy("Send the answer too"),
        help_text=gettext_lazy("Otherwise a message says what has ended, and where its answer is."),
    )
