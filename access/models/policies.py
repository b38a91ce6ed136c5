"""Policy models: what the rules say, and who put them in force.

A :class:`PolicyVersion` is one document, for a tenant or for the whole hub. A draft may be changed; what was published
never changes again. At most one version of each owner is in force; with none, that layer has nothing to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models.people import Tenant
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal


class PolicyState(models.TextChoices):
    DRAFT = "draft"
    IN_FORCE = "in_force"
    SUPERSEDED = "superseded"
    DISCARDED = "discarded"


POLICY_TRANSITIONS: dict[str, frozenset[str]] = {
    PolicyState.DRAFT: frozenset({PolicyState.IN_FORCE, PolicyState.DISCARDED}),
    PolicyState.IN_FORCE: frozenset({PolicyState.SUPERSEDED}),
    PolicyState.SUPERSEDED: frozenset({PolicyState.IN_FORCE}),  # rolled back to
    PolicyState.DISCARDED: frozenset(),
}


class PolicyQuerySet(models.QuerySet["PolicyVersion"]):
    def visible_to(self, principal: Principal) -> PolicyQuerySet:
        """The tenant's own, and the hub's, which bind it too; those that never were in force only for owners of the hub."""
        bound = Q(tenant=None)
        if not principal.may("hub.manage"):
            bound &= Q(state__in=[PolicyState.IN_FORCE, PolicyState.SUPERSEDED])
        return self.filter(Q(tenant_id=principal.tenant_id) | bound)

    def of_owner(self, tenant_id: UUID | None) -> PolicyQuerySet:
        """A tenant's; None: the hub's."""
        return self.filter(tenant=None) if tenant_id is None else self.filter(tenant_id=tenant_id)


class PolicyVersion(models.Model):
    """One policy document (access/policies/document.schema.json) with its number within its owner."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, null=True, blank=True, related_name="policies")  # None: the hub
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=PolicyState, default=PolicyState.DRAFT)
    document = models.JSONField()
    digest = models.CharField(max_length=71)
    note = models.CharField(max_length=1000, blank=True)
    drafted_by = models.CharField(max_length=64)
    drafted_at = models.DateTimeField(auto_now_add=True)
    published_by = models.CharField(max_length=64, blank=True)
    published_at = models.DateTimeField(null=True, blank=True)
    simulation = models.JSONField(
        null=True, blank=True
    )  # the last one over past calls: access/policies/impact/simulation.py

    objects = PolicyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "number"], name="policy_number_once_in_a_tenant"),
            models.UniqueConstraint(fields=["number"], condition=Q(tenant=None), name="policy_number_once_in_the_hub"),
            models.UniqueConstraint(fields=["tenant"], condition=Q(state="in_force"), name="policy_in_force_once"),
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="in_force", tenant=None), name="hub_policy_in_force_once"
            ),
            models.CheckConstraint(
                condition=Q(published_at=None, published_by="") | Q(published_at__isnull=False) & ~Q(published_by=""),
                name="policy_published_at_and_by_together",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """How facts and answers name it."""
        return f"{'hub' if self.tenant_id is None else 'tenant'}@{self.number}"

    @property
    def wire_id(self) -> str:
        return encode("pol", self.id)
