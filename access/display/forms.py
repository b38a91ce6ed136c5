"""Form of display settings."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from access.display.services import is_time_zone, list_time_zones
from kernel.components.numbers import NumberStyle


def list_choices(chosen: str) -> list[Any]:
    """By region. What was chosen is among them by the name that it was chosen by."""
    names = list_time_zones()
    others = [chosen] if chosen not in names and is_time_zone(chosen) else []
    groups = groupby(sorted({*names, *others} - {"UTC"}), key=lambda name: name.partition("/")[0])
    return [("UTC", "UTC"), *((region, [(name, name.replace("_", " ")) for name in found]) for region, found in groups)]


class DisplayForm(forms.Form):
    time_zone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Times are shown in it, and days and times that you enter are meant in it."),
    )
    number_style = forms.ChoiceField(
        label=gettext_lazy("Numbers"), choices=NumberStyle, widget=forms.RadioSelect, initial=NumberStyle.LANGUAGE
    )

    def __init__(self, *args: Any, chosen: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].choices = list_choices(chosen)  # type: ignore[attr-defined]
