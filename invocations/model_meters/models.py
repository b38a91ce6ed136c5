"""Model meter models: what is learned of a model's figures, and the window that is compared with it."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from kernel.ids import new_id


class MeterFigure(models.TextChoices):
    INPUT = "input"  # tokens, against bytes of the request as it is estimated
    OUTPUT = "output"  # tokens, against bytes of the answer
    MONEY = "money"  # what the provider says that it charges, against the price in force


class ModelMeter(models.Model):
    """One figure of one model of a provider, of all processes together.

    ``learned`` and ``window`` are sums over calls (:class:`llm.meter_windows.MeterWindow`); whole numbers without a bound, so JSON.
    ``most_per_mille`` and ``most_excess``: the most that one call had, as a part of what was counted, and beyond it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="model_meters")
    provider = models.CharField(max_length=40)
    model = models.CharField(max_length=200)  # the provider's own name
    figure = models.CharField(max_length=8, choices=MeterFigure)
    learned = models.JSONField(default=list)
    window = models.JSONField(default=list)
    most_per_mille = models.BigIntegerField(default=0)
    most_excess = models.BigIntegerField(default=0)
    differed_at = models.DateTimeField(null=True)
    difference_per_mille = models.BigIntegerField(default=0)  # the last one that was told

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "provider", "model", "figure"], name="model_meter_once_for_a_figure"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider}:{self.model} {self.figure}"
