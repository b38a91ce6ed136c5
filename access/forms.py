"""What do people fill in when something they do is to be on record?"""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy


class ReasonForm(forms.Form):
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=500,
        label=gettext_lazy("Reason"),
        help_text=gettext_lazy("Kept as evidence."),
    )
