"""Chain models: what becomes of a chain of calls, as rows.

A :class:`Chain` is a plan that was accepted; the values of the plan are sealed, its rows hold names and states. Each
:class:`ChainStep` is one call that the plan names, or the one that undoes it; the calls that were made for it are rows like all
others and lead here. A chain goes on when none of its calls is open: that is read from the rows, so nothing can be lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models import Agent, Tenant
from evidence.models import SubjectKey
from invocations.account_calls import select_hidden_calls
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class ChainState(models.TextChoices):
    RUNNING = "running"
    COMPENSATING = "compensating"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


CHAIN_TRANSITIONS: dict[str, frozenset[str]] = {
    ChainState.RUNNING: frozenset(
        {ChainState.COMPENSATING, ChainState.SUCCEEDED, ChainState.FAILED, ChainState.CANCELLED}
    ),
    ChainState.COMPENSATING: frozenset({ChainState.FAILED, ChainState.CANCELLED}),
    ChainState.SUCCEEDED: frozenset(),
    ChainState.FAILED: frozenset(),
    ChainState.CANCELLED: frozenset(),
}
CHAIN_OPEN = (ChainState.RUNNING, ChainState.COMPENSATING)
_OPEN_IN_ORDER = [str(state) for state in CHAIN_OPEN]


class StepState(models.TextChoices):
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class StepRole(models.TextChoices):
    STEP = "step"
    COMPENSATION = "compensation"


class ChainQuerySet(models.QuerySet["Chain"]):
    def visible_to(self, principal: Principal) -> ChainQuerySet:
        """People see their tenant's chains; an agent sees its own, but for those with calls that its credential is not shown."""
        mine = self.filter(tenant_id=principal.tenant_id)
        if not principal.agent_id:
            return mine
        hidden = select_hidden_calls(principal).filter(chain_step__chain=models.OuterRef("pk"))
        return mine.filter(~models.Exists(hidden), agent_id=principal.agent_id)


class Chain(models.Model):
    """A plan of calls by one agent that was accepted as a whole."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="chains")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="chains")
    credential = models.JSONField(default=dict)  # its calls are made with this: ids of key and issuer, a digest
    state = models.CharField(max_length=16, choices=ChainState, default=ChainState.RUNNING)
    dry_run = models.BooleanField(default=False)
    request_id = models.CharField(max_length=64)
    user_fingerprint = models.CharField(max_length=80, blank=True)
    values_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False)
    idempotency_key = models.CharField(max_length=255, blank=True)
    plan_fingerprint = models.CharField(max_length=80)
    trace = models.JSONField(default=dict)
    reason = models.CharField(max_length=64, blank=True)  # of the problem that stopped it
    next_at = models.DateTimeField(null=True)  # a step is not tried again before
    cancel_asked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects = ChainQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "user_fingerprint", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="chain_idempotency_key_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=_OPEN_IN_ORDER, finished_at=None)
                | ~Q(state__in=_OPEN_IN_ORDER) & Q(finished_at__isnull=False),
                name="chain_finished_when_final",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="chain_newest"),
            models.Index(fields=["id"], name="chain_going_on", condition=Q(state__in=_OPEN_IN_ORDER)),
        ]

    def __str__(self) -> str:
        return f"{self.wire_id} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("chn", self.id)

    @property
    def is_final(self) -> bool:
        return self.state not in CHAIN_OPEN

    @property
    def duration_ms(self) -> float | None:
        return (self.finished_at - self.created_at).total_seconds() * 1000 if self.finished_at else None


class ChainStep(models.Model):
    """One call of the plan, or the one that undoes what it did; both have the step's name and position."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    chain = models.ForeignKey(Chain, models.PROTECT, related_name="steps")
    role = models.CharField(max_length=12, choices=StepRole, default=StepRole.STEP)
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=32)
    tool = models.CharField(max_length=128)
    retries = models.PositiveSmallIntegerField(default=0)  # how often it may be made again
    tries = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=12, choices=StepState, default=StepState.WAITING)
    reason = models.CharField(max_length=64, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["chain", "role", "position"], name="chain_step_position_once"),
            models.UniqueConstraint(fields=["chain", "role", "name"], name="chain_step_name_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.chain_id} ({self.state})"

    @property
    def is_compensation(self) -> bool:
        return self.role == StepRole.COMPENSATION

    @property
    def key(self) -> str:
        """The idempotency key of its calls. The blanks keep it apart from every key that a caller can send."""
        return f"{encode('chn', self.chain_id)} {self.role} {self.name}"
