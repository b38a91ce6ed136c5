"""How long do the old and the new secret of a webhook sign side by side?"""

from __future__ import annotations

from datetime import timedelta

from django import forms
from django.utils.translation import gettext_lazy
from rest_framework import serializers

from kernel.http.base_serializers import StrictSerializer

OVERLAP = timedelta(days=1)
MAX_OVERLAP = timedelta(days=30)


class OverlapForm(forms.Form):
    overlap_hours = forms.IntegerField(
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds() // 3600),
        initial=int(OVERLAP.total_seconds() // 3600),
        label=gettext_lazy("Both secrets sign for, in hours"),
        help_text=gettext_lazy("Until then the receiver may check with either; then the old one ends."),
    )

    def overlap(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["overlap_hours"])


class OverlapSerializer(StrictSerializer):
    overlap_s = serializers.IntegerField(
        required=False,
        default=int(OVERLAP.total_seconds()),
        min_value=0,
        max_value=int(MAX_OVERLAP.total_seconds()),
        help_text="How long messages carry the signatures of both secrets.",
    )
