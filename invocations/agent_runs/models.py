"""Agent run models: what becomes of a run, as rows.

An :class:`AgentRun` is a question to a model with tools and limits; what was asked is sealed, its rows hold names, states and
figures. Each :class:`AgentRunStep` is one call of the model or of a tool that it proposed; the calls are rows like all others and
lead here. A run goes on when none of its calls is open: that is read from the rows, so nothing can be lost. A
:class:`AgentRunEvent` is what whoever follows the run is told, in the order in which it became known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy

from access.models import Agent, Tenant
from evidence.models import SubjectKey
from invocations.account_calls import select_hidden_calls
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from kernel.principal import Principal


class AgentRunState(models.TextChoices):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    STOPPED = "stopped"
    FAILED = "failed"
    CANCELLED = "cancelled"


RUN_TRANSITIONS: dict[str, frozenset[str]] = {
    AgentRunState.RUNNING: frozenset(
        {AgentRunState.SUCCEEDED, AgentRunState.STOPPED, AgentRunState.FAILED, AgentRunState.CANCELLED}
    ),
    AgentRunState.SUCCEEDED: frozenset(),
    AgentRunState.STOPPED: frozenset(),
    AgentRunState.FAILED: frozenset(),
    AgentRunState.CANCELLED: frozenset(),
}


class StopReason(models.TextChoices):
    """Why a run has ended."""

    FINISHED = "finished", gettext_lazy("The model has answered")
    LENGTH = "length", gettext_lazy("The answer was cut at its limit")
    SAFETY = "safety", gettext_lazy("The provider ended the answer for safety")
    STEPS = "steps", gettext_lazy("Limit of turns")
    MONEY = "money", gettext_lazy("Limit of cost")
    SECONDS = "seconds", gettext_lazy("Limit of time")
    EQUAL_CALLS = "equal_calls", gettext_lazy("Limit of equal calls")
    MANY_CALLS = "many_calls", gettext_lazy("Too many calls proposed at once")
    REFUSED = "refused", gettext_lazy("The model may not be asked")
    MODEL_FAILED = "model_failed", gettext_lazy("The model has failed")
    OUTCOME_UNKNOWN = "outcome_unknown", gettext_lazy("The outcome of a tool is unknown")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")
    HUB_FAILED = "hub_failed", gettext_lazy("The hub has failed")


STATE_OF_REASON: dict[str, AgentRunState] = {
    StopReason.FINISHED: AgentRunState.SUCCEEDED,
    StopReason.CANCELLED: AgentRunState.CANCELLED,
    StopReason.REFUSED: AgentRunState.FAILED,
    StopReason.MODEL_FAILED: AgentRunState.FAILED,
    StopReason.OUTCOME_UNKNOWN: AgentRunState.FAILED,
    StopReason.HUB_FAILED: AgentRunState.FAILED,
}  # all others: stopped


class AgentRunStepRole(models.TextChoices):
    MODEL = "model"
    TOOL = "tool"


class AgentRunStepState(models.TextChoices):
    WAITING = "waiting"  # for a place or a rate
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class AgentRunEventKind(models.TextChoices):
    MODEL_ASKED = "model.asked"
    MODEL_ANSWERED = "model.answered"
    TOOL_CALLED = "tool.called"
    TOOL_HELD = "tool.held"
    TOOL_ENDED = "tool.ended"
    RUN_ENDED = "run.ended"


class AgentRunQuerySet(models.QuerySet["AgentRun"]):
    def visible_to(self, principal: Principal) -> AgentRunQuerySet:
        """People see their tenant's runs; an agent sees its own, but for those with calls that its credential is not shown."""
        mine = self.filter(tenant_id=principal.tenant_id)
        if not principal.agent_id:
            return mine
        hidden = select_hidden_calls(principal).filter(run_step__run=models.OuterRef("pk"))
        return mine.filter(~models.Exists(hidden), agent_id=principal.agent_id)


class AgentRun(models.Model):
    """A question of one agent that the hub takes from call to call."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="agent_runs", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="agent_runs")
    credential = models.JSONField(default=dict)  # its calls are made with this: ids of key and issuer, a digest
    model = models.CharField(max_length=128)  # the tool id of the model
    limits = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=AgentRunState, default=AgentRunState.RUNNING)
    stop_reason = models.CharField(
        max_length=20, choices=StopReason, blank=True
    )  # set before the end: no call is made any more
    reason = models.CharField(max_length=64, blank=True)  # of the problem that ended it, when there is one
    request_id = models.CharField(max_length=64)
    user_fingerprint = models.CharField(max_length=80, blank=True)
    values_key = models.ForeignKey(SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False)
    idempotency_key = models.CharField(max_length=255, blank=True)
    question_fingerprint = models.CharField(max_length=80)
    trace = models.JSONField(default=dict)
    deadline_at = models.DateTimeField()  # the limit of seconds; later by as long as it was paused
    paused_at = models.DateTimeField(null=True)  # since when a call of it waits for a person
    next_at = models.DateTimeField(null=True)  # no call is made before
    cancel_asked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects = AgentRunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "user_fingerprint", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="agent_run_idempotency_key_once",
            ),
            models.CheckConstraint(
                condition=Q(state="running", finished_at=None) | ~Q(state="running") & Q(finished_at__isnull=False),
                name="agent_run_finished_when_final",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="agent_run_newest"),
            models.Index(fields=["id"], name="agent_run_going_on", condition=Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"{self.wire_id} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("run", self.id)

    @property
    def is_final(self) -> bool:
        return self.state != AgentRunState.RUNNING

    @property
    def duration_ms(self) -> float | None:
        return (self.finished_at - self.created_at).total_seconds() * 1000 if self.finished_at else None


class AgentRunStep(models.Model):
    """One call of the model, or of a tool that it proposed. ``turn`` counts the model's calls; a turn's tools have its number."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(AgentRun, models.PROTECT, related_name="steps", db_index=False)
    position = models.PositiveSmallIntegerField()
    turn = models.PositiveSmallIntegerField()
    role = models.CharField(max_length=8, choices=AgentRunStepRole)
    tool = models.CharField(max_length=128)
    state = models.CharField(max_length=12, choices=AgentRunStepState, default=AgentRunStepState.WAITING)
    tries = models.PositiveSmallIntegerField(default=1)
    reason = models.CharField(max_length=64, blank=True)
    reserved_micros = models.BigIntegerField(default=0)  # the most that its open call may cost
    cost_micros = models.BigIntegerField(default=0)  # what those that have ended have cost, as far as they have a price
    unpriced = models.PositiveSmallIntegerField(default=0)  # how many of those have none

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "position"], name="run_step_position_once")]

    def __str__(self) -> str:
        return f"{self.position} of {self.run_id} ({self.state})"

    @property
    def key(self) -> str:
        """The idempotency key of its calls. The blanks keep it apart from every key that a caller can send."""
        return f"{encode('run', self.run_id)} {self.position} {self.tries}"


class AgentRunEvent(models.Model):
    """One thing that became known of a run. What was said is with the call."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(AgentRun, models.PROTECT, related_name="events", db_index=False)
    number = models.PositiveIntegerField()  # from 1, without gaps
    kind = models.CharField(max_length=16, choices=AgentRunEventKind)
    step = models.ForeignKey(AgentRunStep, models.PROTECT, null=True, related_name="+", db_index=False)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="run_event_number_once")]

    def __str__(self) -> str:
        return f"{self.number} of {self.run_id}: {self.kind}"
