"""Who is there, and what was each of them given?

People sign in as Django users and act within a tenant through a :class:`Membership`; their roles are groups that hold
object permissions on the :class:`Tenant` (django-guardian). Agents act with an :class:`ApiKey`; what they may call is a
:class:`Grant`, what a person agreed to is a :class:`Consent`. Both name tools by id or pattern, never by foreign key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from access.roles import PERMISSIONS, Role
from toolhub.kernel.ids import encode, new_id
from toolhub.kernel.problems import Conflict

if TYPE_CHECKING:
    from datetime import datetime

    from toolhub.kernel.principal import Principal


class Tenant(models.Model):
    """An organisation, or a part of one, whose tools, agents and evidence are its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        default_permissions = ()
        permissions = [(permission, label) for permission, label in PERMISSIONS.items()]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("ten", self.id)


class Membership(models.Model):
    """A person's role within a tenant."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "user", "role"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"


class Agent(models.Model):
    """A program that calls tools."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="agents")
    name = models.CharField(max_length=80)
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="agent_name_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("agt", self.id)


class ApiKey(models.Model):
    """A credential of one agent. Only a hash is stored; ``lookup`` is the public part that people see."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    agent = models.ForeignKey(Agent, models.CASCADE, related_name="keys")
    lookup = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = models.JSONField(default=list)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="api_key_expires_after_it_was_made"
            )
        ]

    def __str__(self) -> str:
        return f"{self.lookup}… of {self.agent}"

    @property
    def wire_id(self) -> str:
        return encode("key", self.id)


class GrantQuerySet(models.QuerySet["Grant"]):
    def visible_to(self, principal: Principal) -> GrantQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def in_force(self, now: datetime) -> GrantQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class Grant(models.Model):
    """What an agent was given: which tools, within which capability bounds, how often."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="grants")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="grants")
    tools = models.CharField(max_length=128)  # a tool id, or a prefix ending in `.*`, or `*`
    capabilities = models.JSONField(null=True, blank=True)  # bounds; null: whatever the manifest asks and policy allows
    calls_limit = models.PositiveIntegerField(null=True, blank=True)  # per window
    window_s = models.PositiveIntegerField(default=24 * 60 * 60)
    reason = models.CharField(max_length=500)
    given_by = models.CharField(max_length=64)
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
            models.CheckConstraint(condition=Q(window_s__gt=0), name="grant_window_is_positive"),
        ]
        indexes = [models.Index(fields=["agent", "revoked_at"], name="grant_of_agent")]

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
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "active"


class QuotaWindow(models.Model):
    """How many calls of a grant fell into one window. Counted by a conditional update, so it can never be overrun."""

    grant = models.ForeignKey(Grant, models.CASCADE, related_name="windows")
    starts_at = models.DateTimeField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["grant", "starts_at"], name="quota_window_once")]

    def __str__(self) -> str:
        return f"{self.used} calls since {self.starts_at}"


class ConsentState(models.TextChoices):
    REQUESTED = "requested"
    APPROVED = "approved"
    DENIED = "denied"
    REVOKED = "revoked"
    EXPIRED = "expired"


CONSENT_TRANSITIONS: dict[str, frozenset[str]] = {
    ConsentState.REQUESTED: frozenset({ConsentState.APPROVED, ConsentState.DENIED, ConsentState.EXPIRED}),
    ConsentState.APPROVED: frozenset({ConsentState.REVOKED, ConsentState.EXPIRED}),
    ConsentState.DENIED: frozenset(),
    ConsentState.REVOKED: frozenset(),
    ConsentState.EXPIRED: frozenset(),
}


class ConsentQuerySet(models.QuerySet["Consent"]):
    def visible_to(self, principal: Principal) -> ConsentQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def valid(self, now: datetime) -> ConsentQuerySet:
        return self.filter(state=ConsentState.APPROVED, expires_at__gt=now)


class Consent(models.Model):
    """One subject's permission for one agent to use one tool, for a purpose and a time."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="consents")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="consents")
    tool = models.CharField(max_length=128)
    tool_major = models.PositiveIntegerField()  # a new MAJOR version is another tool as far as consent goes
    state = models.CharField(max_length=16, choices=ConsentState, default=ConsentState.REQUESTED)
    purpose = models.CharField(max_length=500)
    validity_s = models.PositiveIntegerField()
    requested_by = models.CharField(max_length=64)
    decided_by = models.CharField(max_length=64, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = models.CharField(max_length=500, blank=True)
    expires_at = models.DateTimeField()  # of the request while it waits, of the permission once it is approved
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ConsentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(decided_at=None, decided_by="") | Q(decided_at__isnull=False) & ~Q(decided_by=""),
                name="consent_decided_at_and_by_together",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["approved", "denied", "revoked"]) | Q(decided_at__isnull=False),
                name="consent_decision_has_a_decider",
            ),
            models.UniqueConstraint(
                fields=["agent", "tool", "tool_major"], condition=Q(state="requested"), name="consent_one_open_request"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "state", "-id"], name="consent_by_state")]

    def __str__(self) -> str:
        return f"{self.agent}: {self.tool} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("cns", self.id)

    @property
    def shown_state(self) -> str:
        """The state as of now: what has run out is expired, also before the upkeep has written it down."""
        open_states = (ConsentState.REQUESTED, ConsentState.APPROVED)
        return ConsentState.EXPIRED if self.state in open_states and self.expires_at <= timezone.now() else self.state

    def move_to(self, state: ConsentState) -> None:
        if state not in CONSENT_TRANSITIONS[self.shown_state]:
            raise Conflict(
                f"This consent is {self.shown_state}; it cannot become {state}.",
                details={"state": self.shown_state, "allowed": sorted(CONSENT_TRANSITIONS[self.shown_state])},
            )
        self.state = state
