"""Consent model: what a person agreed to.

A :class:`Consent` lets one agent use one tool: once, for a time, or until it is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models.people import Agent, Tenant
from kernel.database.connections import database_time
from kernel.ids import encode, new_id
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from datetime import datetime

    from kernel.principal import Principal


class ConsentState(models.TextChoices):
    REQUESTED = "requested"
    APPROVED = "approved"
    DENIED = "denied"
    REVOKED = "revoked"
    EXPIRED = "expired"
    USED = "used"  # a permission for one call, spent


class ConsentMode(models.TextChoices):
    """How long it holds. A manifest's ``consent.scope`` names the widest that may be given."""

    ONCE = "once"  # one call with exactly these arguments, under this policy
    PERIOD = "period"
    STANDING = "standing"  # until it is revoked


CONSENT_TRANSITIONS: dict[str, frozenset[str]] = {
    ConsentState.REQUESTED: frozenset({ConsentState.APPROVED, ConsentState.DENIED, ConsentState.EXPIRED}),
    ConsentState.APPROVED: frozenset({ConsentState.REVOKED, ConsentState.EXPIRED, ConsentState.USED}),
    ConsentState.DENIED: frozenset(),
    ConsentState.REVOKED: frozenset(),
    ConsentState.EXPIRED: frozenset(),
    ConsentState.USED: frozenset(),
}


class ConsentQuerySet(models.QuerySet["Consent"]):
    def visible_to(self, principal: Principal) -> ConsentQuerySet:
        return self.filter(tenant_id=principal.tenant_id)

    def valid(self, now: datetime) -> ConsentQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), state=ConsentState.APPROVED)

    def in_state(self, state: str) -> ConsentQuerySet:
        """Those in a state as it is shown: what has run out is expired, also before that is written down. All for ``""``."""
        if not state:
            return self
        if state not in ConsentState.values:
            raise SchemaInvalid(f"There is no state {state[:40]}. The states are {', '.join(ConsentState.values)}.")
        ran_out = Q(state__in=[ConsentState.REQUESTED, ConsentState.APPROVED], expires_at__lte=database_time())
        if state == ConsentState.EXPIRED:
            return self.filter(ran_out | Q(state=state))
        return self.filter(state=state).exclude(ran_out)

    def spent_or_valid(self, now: datetime) -> ConsentQuerySet:
        """Those that a call which began with them may still rest on."""
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=now) | Q(state=ConsentState.USED),
            state__in=[ConsentState.APPROVED, ConsentState.USED],
        )


class Consent(models.Model):
    """One subject's permission for one agent to use one tool, for a purpose and a time."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="consents")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="consents")
    tool = models.CharField(max_length=128)
    versions = models.CharField(max_length=120)  # a SemVer range: unitools.semver; a new MAJOR is another tool here
    mode = models.CharField(max_length=8, choices=ConsentMode, default=ConsentMode.PERIOD)
    data_classes = models.JSONField(default=list)  # what kinds of data the call sends, as the manifest names them
    user_fingerprint = models.CharField(max_length=80, blank=True)  # of the user acted for; empty: any
    arguments_fingerprint = models.CharField(max_length=80, blank=True)  # for one call: of exactly its arguments
    policy_hash = models.CharField(max_length=71, blank=True)  # for one call: of the policy it was asked under
    invocation_id = models.UUIDField(null=True, blank=True)  # the call that asked; access knows no invocations
    used_at = models.DateTimeField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=ConsentState, default=ConsentState.REQUESTED)
    purpose = models.CharField(max_length=500)
    validity_s = models.PositiveIntegerField()
    requested_by = models.CharField(max_length=64)
    asked_through = models.JSONField(default=list)  # people (usr_…) whose connections it was asked for through
    decided_by = models.CharField(max_length=64, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decision_reason = models.CharField(max_length=500, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)  # of the request, then of the permission; None: standing
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ConsentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(decided_at=None, decided_by="") | Q(decided_at__isnull=False) & ~Q(decided_by=""),
                name="consent_decided_at_and_by_together",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=["approved", "denied", "revoked", "used"]) | Q(decided_at__isnull=False),
                name="consent_decision_has_a_decider",
            ),
            models.CheckConstraint(
                condition=~Q(mode="once") | ~Q(arguments_fingerprint=""), name="consent_for_once_names_the_arguments"
            ),
            models.UniqueConstraint(
                fields=["agent", "tool", "versions", "user_fingerprint", "arguments_fingerprint"],
                condition=Q(state="requested"),
                name="consent_one_open_request",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "state", "-id"], name="consent_by_state"),
            models.Index(fields=["agent", "tool"], name="consent_in_force", condition=Q(state="approved")),
        ]

    def __str__(self) -> str:
        return f"{self.agent}: {self.tool} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("cns", self.id)

    @property
    def shown_state(self) -> str:
        """The state as of now: what has run out is expired, also before the upkeep has written it down."""
        open_states = (ConsentState.REQUESTED, ConsentState.APPROVED)
        return (
            ConsentState.EXPIRED
            if self.state in open_states and self.expires_at and self.expires_at <= database_time()
            else self.state
        )

    def move_to(self, state: ConsentState) -> None:
        if state not in CONSENT_TRANSITIONS[self.shown_state]:
            raise Conflict(
                f"This consent is {self.shown_state}; it cannot become {state}.",
                details={"state": self.shown_state, "allowed": sorted(CONSENT_TRANSITIONS[self.shown_state])},
            )
        self.state = state
