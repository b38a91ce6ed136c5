"""Model price models: what a tenant has said of prices, version by version."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from kernel.ids import new_id


class ModelPrices(models.Model):
    """One version of a tenant's prices. It never changes; the one with the highest number is in force.

    ``document``: :class:`llm.prices.PriceDocument`, in the one way of writing it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="model_prices")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    reason = models.CharField(max_length=500)
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="model_prices_number_once_in_a_tenant")
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.number}"

    @property
    def urn(self) -> str:
        return f"soul:model_prices:{self.number}"
