"""Display settings model: how a person reads times and numbers, wherever they sign in."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from kernel.components.numbers import NumberStyle


class DisplaySettings(models.Model):
    """Of a person, not of one of their tenants. ``time_zone``: of the IANA database."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    time_zone = models.CharField(max_length=64)
    number_style = models.CharField(max_length=8, choices=NumberStyle, default=NumberStyle.LANGUAGE)

    def __str__(self) -> str:
        return f"{self.user} reads times of {self.time_zone}"
