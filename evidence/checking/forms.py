"""What do people fill in to have a range verified?"""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy


class RangeForm(forms.Form):
    start = forms.IntegerField(min_value=0, initial=0, label=gettext_lazy("From leaf"))
    stop = forms.IntegerField(
        min_value=1,
        required=False,
        label=gettext_lazy("Up to, without, leaf"),
        help_text=gettext_lazy("Empty: the end of the log."),
    )

    def range(self) -> dict[str, int | None]:
        return {"start": self.cleaned_data["start"], "stop": self.cleaned_data["stop"]}
