"""Halt model: what has been stopped at once.

A :class:`Halt` is a kill switch that somebody has thrown. Nothing within its reach is called until it is lifted; it counts
with the next request in every process, since preflight reads it each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models.people import Tenant
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class Reach(models.TextChoices):
    HUB = "hub"
    TENANT = "tenant"
    AGENT = "agent"
    TOOL = "tool"
    VERSION = "version"


class HaltQuerySet(models.QuerySet["Halt"]):
    def visible_to(self, principal: Principal) -> HaltQuerySet:
        return self.filter(Q(tenant_id=principal.tenant_id) | Q(tenant=None))


class Halt(models.Model):
    """``target``: the agent's or version's id (TypeID), the tool's id; empty for a tenant and for the hub."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, null=True, blank=True, related_name="halts")  # None: the hub
    reach = models.CharField(max_length=8, choices=Reach)
    target = models.CharField(max_length=128, blank=True)
    reason = models.CharField(max_length=500)
    thrown_by = models.CharField(max_length=64)
    thrown_at = models.DateTimeField(auto_now_add=True)
    lifted_by = models.CharField(max_length=64, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)

    objects = HaltQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "reach", "target"], condition=Q(lifted_at=None), name="halt_thrown_once"
            ),
            models.UniqueConstraint(
                fields=["reach"], condition=Q(lifted_at=None, tenant=None), name="halt_of_the_hub_thrown_once"
            ),
            models.CheckConstraint(
                condition=Q(reach="hub", tenant=None, target="")
                | Q(reach="tenant", tenant__isnull=False, target="")
                | Q(reach__in=["agent", "tool", "version"], tenant__isnull=False) & ~Q(target=""),
                name="halt_names_what_its_reach_says",
            ),
            models.CheckConstraint(
                condition=Q(lifted_at=None, lifted_by="") | Q(lifted_at__isnull=False) & ~Q(lifted_by=""),
                name="halt_lifted_at_and_by_together",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reach} {self.target}".strip()

    @property
    def wire_id(self) -> str:
        return encode("hlt", self.id)
