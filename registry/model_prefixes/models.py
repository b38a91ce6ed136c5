"""Model prefix models: each version of the text that a tenant puts before its conversations."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from kernel.ids import encode, new_id


class ModelPrefix(models.Model):
    """One version. The newest is in force, and an empty text is none; nobody changes one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="model_prefixes", db_index=False)
    number = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    digest = models.CharField(max_length=71)
    reason = models.CharField(max_length=500, blank=True)
    set_by = models.CharField(max_length=64)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="model_prefix_number_once_in_a_tenant")
        ]

    def __str__(self) -> str:
        return f"model prefix {self.number}"

    @property
    def wire_id(self) -> str:
        return encode("mpx", self.id)
