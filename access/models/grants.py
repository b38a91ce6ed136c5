"""Grant model: what an agent was given.

A :class:`Grant` says which tools, within which bounds. It names them by an expression, never by foreign key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models.people import Agent, Tenant
from kernel.database.connections import database_time
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from datetime import datetime

    from access.models.budgets import Budget
    from kernel.principal import Principal


MAX_DEPTH = 3  # how often a grant may be handed on from agent to agent
ABOVE = tuple("delegated_from__" * level for level in range(1, MAX_DEPTH + 1))  # prefixes of look-ups


class GrantQuerySet(models.QuerySet["Grant"]):
    def visible_to(self, principal: Principal) -> GrantQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def in_force(self, now: datetime) -> GrantQuerySet:
        """Neither revoked nor run out, nor is any grant that it was handed on from, and all agents between are in use."""
        holds = [Q(expires_at=None) | Q(expires_at__gt=now), Q(revoked_at=None)]
        for above in ABOVE:
            holds.append(Q(**{f"{above}expires_at": None}) | Q(**{f"{above}expires_at__gt": now}))
            holds.append(Q(**{f"{above}revoked_at": None, f"{above}agent__disabled_at": None}))
        return self.filter(*holds)

    def that_are(self, **so: object) -> GrantQuerySet:
        """Those of which it is so, or of a grant that they were handed on from."""
        return self.filter(Q(**so)) | self.handed_on_from(**so)

    def handed_on_from(self, **grant: object) -> GrantQuerySet:
        """Those that were handed on, however often, from grants that fit: ``pk=…``, ``agent_id=…``."""
        found = Q(pk__in=[])
        for above in ABOVE:
            found |= Q(**{above + name: value for name, value in grant.items()})
        return self.filter(found)

    def with_chain(self) -> GrantQuerySet:
        """With what :attr:`Grant.state` asks about."""
        return self.select_related("agent", *(f"{above}agent" for above in ABOVE))


class Grant(models.Model):
    """What an agent, or every agent of the tenant, was given: which tools, within which bounds."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="grants")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, blank=True, related_name="grants")  # None: every agent
    tools = models.CharField(max_length=500)  # an expression: unitools.expressions
    capabilities = models.JSONField(null=True, blank=True)  # bounds; null: whatever the manifest asks and policy allows
    scopes = models.JSONField(null=True, blank=True)  # [{resource, action}]; null: all that the manifest asks
    conditions = models.JSONField(default=list)  # on the arguments: access.grants.conditions
    source = models.CharField(max_length=80, default="console")  # console, api, file, or the request it answers
    reason = models.CharField(max_length=500)
    given_by = models.CharField(max_length=64)
    delegated_from = models.ForeignKey("self", models.PROTECT, null=True, blank=True, related_name="delegations")
    may_delegate = models.PositiveSmallIntegerField(default=0)  # how often it may be handed on, one after the other
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = GrantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(revoked_at=None, revoked_by="") | Q(revoked_at__isnull=False) & ~Q(revoked_by=""),
                name="grant_revoked_at_and_by_together",
            ),
            models.CheckConstraint(
                condition=Q(may_delegate=0) | Q(may_delegate__lte=MAX_DEPTH, agent__isnull=False),
                name="grant_handed_on_by_one_agent_and_not_too_often",
            ),
            models.CheckConstraint(
                condition=Q(delegated_from=None) | Q(agent__isnull=False, expires_at__isnull=False),
                name="grant_handed_on_to_one_agent_for_a_time",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "agent"], name="grant_in_force", condition=Q(revoked_at=None))]

    def __str__(self) -> str:
        return f"{self.agent} may call {self.tools}"

    @property
    def wire_id(self) -> str:
        return encode("grt", self.id)

    def covers(self, tool_id: str) -> bool:
        if self.tools in ("*", tool_id):
            return True
        return self.tools.endswith(".*") and tool_id.startswith(self.tools[:-1])

    @property
    def chain(self) -> list[Grant]:
        """The grants that it was handed on from, the first of them first. Lists read them with ``with_chain()``."""
        return [*self.delegated_from.chain, self.delegated_from] if self.delegated_from else []

    @property
    def state(self) -> str:
        """As the chain has it: what was handed on is in force no longer than all that it came from."""
        whole = [*self.chain, self]
        if any(each.revoked_at for each in whole):
            return "revoked"
        if any(each.expires_at and each.expires_at <= database_time() for each in whole):
            return "expired"
        return "suspended" if any(each.agent and each.agent.disabled_at for each in self.chain) else "active"

    @property
    def calls_budget(self) -> Budget | None:
        """The budget of calls that came with the grant, when it is limited in calls. Lists prefetch ``budgets``."""
        in_force = (each for each in self.budgets.all() if each.ended_at is None and each.dimension == "calls")
        return next(in_force, None)

    @property
    def calls_limit(self) -> int | None:
        return self.calls_budget.amount if self.calls_budget else None

    @property
    def window_s(self) -> int | None:
        return self.calls_budget.window_s if self.calls_budget else None
