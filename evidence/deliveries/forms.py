"""Forms about signing secrets."""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.utils.translation import gettext_lazy

from evidence.deliveries.signing_secrets import MAX_OVERLAP, OVERLAP


class OverlapForm(forms.Form):
    overlap_hours = forms.IntegerField(
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds() // 3600),
        initial=int(OVERLAP.total_seconds() // 3600),
        label=gettext_lazy("Overlap, in hours"),
        help_text=gettext_lazy("During the overlap the receiver can verify with either secret; then the old one ends."),
    )

    def overlap(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["overlap_hours"])
