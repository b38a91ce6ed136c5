"""Grant request model: which grants are requested, and what became of each request.

A :class:`GrantRequest` is the form of a grant that somebody wants for an agent. An operator turns it into a :class:`Grant`
as it stands or narrower, or declines it; either is final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models.grants import Grant
from access.models.people import Agent, Tenant
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class RequestState(models.TextChoices):
    WAITING = "waiting"
    GRANTED = "granted"
    DECLINED = "declined"


REQUEST_TRANSITIONS: dict[str, frozenset[str]] = {
    RequestState.WAITING: frozenset({RequestState.GRANTED, RequestState.DECLINED}),
    RequestState.GRANTED: frozenset(),
    RequestState.DECLINED: frozenset(),
}


class GrantRequestQuerySet(models.QuerySet["GrantRequest"]):
    def visible_to(self, principal: Principal) -> GrantRequestQuerySet:
        """People see their tenant's; an agent sees its own."""
        mine = self.filter(tenant_id=principal.tenant_id)
        return mine.filter(agent_id=principal.agent_id) if principal.agent_id else mine


class GrantRequest(models.Model):
    """The grant that is wanted, in the words of :class:`Grant`, and what for."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="grant_requests")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="grant_requests")
    tools = models.CharField(max_length=500)
    capabilities = models.JSONField(null=True, blank=True)
    scopes = models.JSONField(null=True, blank=True)
    conditions = models.JSONField(default=list)
    purpose = models.CharField(max_length=500)
    state = models.CharField(max_length=8, choices=RequestState, default=RequestState.WAITING)
    requested_by = models.CharField(max_length=64)
    decided_by = models.CharField(max_length=64, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = models.CharField(max_length=500, blank=True)
    grant = models.ForeignKey(Grant, models.PROTECT, null=True, blank=True, related_name="answers")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = GrantRequestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "tools"], condition=Q(state="waiting"), name="grant_request_waits_once"
            ),
            models.CheckConstraint(
                condition=Q(state="waiting", decided_at=None, decided_by="")
                | ~Q(state="waiting") & Q(decided_at__isnull=False) & ~Q(decided_by=""),
                name="grant_request_decision_has_a_decider",
            ),
            models.CheckConstraint(
                condition=Q(state="granted", grant__isnull=False) | ~Q(state="granted") & Q(grant=None),
                name="grant_request_granted_names_the_grant",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "state", "-id"], name="grant_request_by_state")]

    def __str__(self) -> str:
        return f"{self.tools} for {self.agent} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("grq", self.id)
