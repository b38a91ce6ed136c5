"""Invocation models: what becomes of a call, as rows.

An :class:`Invocation` is the truth about one call; the queue is only a hint. It holds digests and codes, never values:
those are in encrypted snapshots. An :class:`Attempt` is one run of it by one worker. A row that is queued is also its own outbox:
``notified_at`` says when a message for it was last due, and while nobody has taken it, another is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import Q

from access.models import Agent, Consent, Grant, Tenant
from evidence.models import SubjectKey
from invocations.account_calls import build_shown_filter
from invocations.agent_runs.models import AgentRunStep
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.call_costs.models import CallCost
from invocations.call_hours.models import CallHour
from invocations.callbacks.models import CallbackEndpoint
from invocations.chains.models import ChainStep
from invocations.model_meters.models import ModelMeter
from invocations.playground.models import Playground, PlaygroundConversation, PlaygroundMessage, PlaygroundSide
from invocations.replays.models import Replay, Rerun
from invocations.run_profiles.models import RunProfile
from invocations.saved_views.models import SavedView
from invocations.stored_budgets import BudgetsField
from invocations.stored_steps import StepsField
from invocations.unfinished_calls.models import UnfinishedCall
from kernel.database.rows import PreparedQuery, expect_updated_row, update_rows
from kernel.ids import encode, new_id
from kernel.observability.telemetry import read_trace_id
from registry.models import LONG_FIELDS, Installation, ToolVersion

if TYPE_CHECKING:
    from invocations.queue.run_rows import RunRows
    from kernel.principal import Principal

OF_THIS_APP = (  # whose models Django looks for here
    *(Artifact, ArtifactContent, CallCost, CallHour, ModelMeter, Replay, Rerun, RunProfile, SavedView, UnfinishedCall),
    *(Playground, PlaygroundConversation, PlaygroundMessage, PlaygroundSide),
)


class State(models.TextChoices):
    RECEIVED = "received"
    DENIED = "denied"
    HELD = "held"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    OUTCOME_UNKNOWN = "outcome_unknown"


TRANSITIONS: dict[str, frozenset[str]] = {
    State.RECEIVED: frozenset({State.DENIED, State.HELD, State.QUEUED, State.RUNNING}),
    State.HELD: frozenset({State.QUEUED, State.DENIED, State.EXPIRED, State.CANCELLED}),
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED, State.TIMED_OUT, State.OUTCOME_UNKNOWN}),
    State.RUNNING: frozenset(
        {State.QUEUED, State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.CANCELLED, State.OUTCOME_UNKNOWN}
    ),
    State.DENIED: frozenset(),
    State.SUCCEEDED: frozenset(),
    State.FAILED: frozenset(),
    State.TIMED_OUT: frozenset(),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
    State.OUTCOME_UNKNOWN: frozenset(),
}
FINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
_FINAL_IN_ORDER = sorted(str(state) for state in FINAL)  # a constraint must read the same in every process


class Origin(models.TextChoices):
    API = "api"
    LLM = "llm"
    MCP = "mcp"
    SYSTEM = "system"


class WorkClass(models.TextChoices):
    """Which queue a call waits in, by how long it may take."""

    QUICK = "quick"
    LONG = "long"


class Resolution(models.TextChoices):
    """What a person has found out about a call whose outcome was unknown."""

    TOOK_EFFECT = "took_effect"
    NO_EFFECT = "no_effect"


MOVED = "a call that nobody else has moved"


class InvocationQuerySet(models.QuerySet["Invocation"]):
    def visible_to(self, principal: Principal) -> InvocationQuerySet:
        """People see their tenant's calls; an agent sees its own, but for those by persons' accounts that are not its credential's."""
        mine = self.filter(tenant_id=principal.tenant_id)
        return mine.filter(build_shown_filter(principal), agent_id=principal.agent_id) if principal.agent_id else mine

    def by_or_for(self, **agent: object) -> InvocationQuerySet:
        """Those that the agent made, and those that others made under what it had handed on: ``name=…``, ``pk=…``."""
        which = {f"agent__{name}": value for name, value in agent.items()}
        return self.filter(Q(**which) | Q(grant__in=Grant.objects.handed_on_from(**which)))

    def for_work(self) -> InvocationQuerySet:
        """With what running and answering a call need of its version; manifests are kept compiled, and not read again."""
        return self.select_related("version__tool", "values_key__tenant_key").defer(
            *(f"version__{name}" for name in LONG_FIELDS)
        )

    def move(
        self,
        invocation_id: UUID,
        *,
        to: State,
        attempt: int,
        only: Q | None = None,
        later: bool = False,
        **changes: object,
    ) -> bool:
        """Compare-and-set: true when this caller won. ``attempt`` is the fencing token of the run. ``later``: by the next statement of
        this transaction that asks for something, or its end, which fails where somebody else won (``MOVED`` was expected).
        """
        allowed = [str(state) for state, following in TRANSITIONS.items() if to in following]
        asked = {"id": invocation_id, "state__in": allowed, "attempt": attempt}
        changes["state"] = to
        if later:
            expect_updated_row(Invocation, asked, changes, expected=MOVED)
            return True
        if only is None:
            return update_rows(Invocation, asked, changes) == 1
        return self.filter(only, **asked).update(**changes) == 1


class Invocation(models.Model):
    """One call of one tool by one agent."""

    run_rows: RunRows | None = None  # what it is run with, where its claim has read that too

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without indexes of their own: those below begin with them.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="invocations", db_index=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="invocations", db_index=False)
    tool = models.CharField(max_length=128)
    version = models.ForeignKey(ToolVersion, models.PROTECT, null=True, related_name="invocations")
    key_id = models.UUIDField(null=True)  # of the API key that made the call; it may be gone
    connection_id = models.UUIDField(null=True)  # of the program that made the call, if a person has let it
    # No call is looked for by it, and none is ever deleted.
    installation = models.ForeignKey(
        Installation, models.PROTECT, null=True, related_name="invocations", db_index=False
    )
    account_id = models.UUIDField(null=True)  # of the person's account that it uses, or waits for
    origin = models.CharField(max_length=8, choices=Origin, default=Origin.API)
    state = models.CharField(max_length=16, choices=State)
    dry_run = models.BooleanField(default=False)
    work_class = models.CharField(max_length=8, choices=WorkClass, default=WorkClass.QUICK)
    serial = models.BooleanField(default=False)  # the tool takes one call at a time
    serial_key = models.CharField(
        max_length=128, blank=True, default="", db_default=""
    )  # of which calls one runs at a time: the tool, or its group
    keyed = models.BooleanField(default=False)  # the tool honours its key, so the call may run again after a crash
    actors = models.JSONField(default=list)  # whom the agent acts for, the first in the chain first; empty: nobody
    # That it was made for. Its index is the one below, as of what else most calls have none of.
    chain_step = models.ForeignKey(ChainStep, models.PROTECT, null=True, related_name="calls", db_index=False)
    # Of the agent run that it was made for. Its index is the one below.
    run_step = models.ForeignKey(AgentRunStep, models.PROTECT, null=True, related_name="calls", db_index=False)
    # The call of a model whose answer proposed this one. Its index is the one below.
    proposed_by = models.ForeignKey("self", models.PROTECT, null=True, related_name="proposed_calls", db_index=False)
    callback = models.ForeignKey(
        CallbackEndpoint, models.PROTECT, null=True, related_name="+", db_index=False
    )  # told of the end
    request_id = models.CharField(max_length=64)
    user_fingerprint = models.CharField(max_length=80, blank=True)
    values_key = models.ForeignKey(
        SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False
    )  # its values are sealed with this
    idempotency_key = models.CharField(max_length=255, blank=True)
    key_until = models.DateTimeField(null=True)  # afterwards the key may be used for another call
    arguments_fingerprint = models.CharField(max_length=80)
    grant = models.ForeignKey(Grant, models.PROTECT, null=True, related_name="invocations")
    consent = models.ForeignKey(Consent, models.PROTECT, null=True, related_name="invocations", db_index=False)
    policy_version = models.CharField(max_length=64, blank=True)  # labels of the layers: "hub@3 tenant@7"
    policy_hash = models.CharField(max_length=71, blank=True)
    obligations = models.JSONField(default=list)  # what must be done to the output before anybody gets it
    profile_hash = models.CharField(max_length=71, blank=True)  # of what it may reach: see invocations/run_profiles
    limiters = models.JSONField(
        default=dict
    )  # by limit of the profile, who lowered it: see invocations/run/time_limits.py
    steps = StepsField(default=list)  # see invocations/step_log.py
    trace = models.JSONField(default=dict)
    attempt = models.PositiveIntegerField(default=0)  # fencing token: counts claims
    lease_until = models.DateTimeField(null=True)
    held_until = models.DateTimeField(null=True)  # a call that waits for a person ends then
    queue_deadline_at = models.DateTimeField(null=True)
    notified_at = models.DateTimeField(null=True)  # when a message for it was last due to be sent
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)  # the caller has asked for the end of a run
    progress = models.FloatField(null=True)  # 0 to 1, as the tool says while it runs
    reason = models.CharField(max_length=64, blank=True)  # of the problem, when there is one
    ttl_seconds = models.PositiveIntegerField(null=True)
    sources = models.JSONField(default=list)
    input_valid = models.BooleanField(null=True)  # what its schema says of the arguments; None: nobody has looked
    output_valid = models.BooleanField(null=True)  # the same of what the tool returned, before any repair
    output_digest = models.CharField(max_length=71, blank=True)
    budget = BudgetsField(default=list)  # those that the call counts against, as they were before it
    resolution = models.CharField(max_length=16, choices=Resolution, blank=True)
    resolved_by = models.CharField(max_length=64, blank=True)
    resolved_at = models.DateTimeField(null=True)

    objects = InvocationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "user_fingerprint", "tool", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="invocation_idempotency_key_once",
            ),
            models.CheckConstraint(
                condition=Q(state__in=_FINAL_IN_ORDER, finished_at__isnull=False)
                | ~Q(state__in=_FINAL_IN_ORDER) & Q(finished_at=None),
                name="invocation_finished_when_final",
            ),
            models.CheckConstraint(
                condition=Q(resolution="", resolved_by="", resolved_at=None)
                | ~Q(resolution="") & ~Q(resolved_by="") & Q(resolved_at__isnull=False, state="outcome_unknown"),
                name="invocation_resolved_as_a_whole",
            ),
        ]
        # None has to do with what changes while a call waits and runs (state, lease, end): PostgreSQL would write an entry in each of
        # them with each change. By that, calls are found by their narrow rows: invocations/unfinished_calls.
        indexes = [
            models.Index(fields=["tenant", "-id"], name="invocation_newest"),
            models.Index(fields=["tenant", "tool", "-id"], name="invocation_of_tool"),
            models.Index(fields=["agent", "-id"], name="invocation_of_agent"),
            # Of all rows: a statement that is planned once for any request_id cannot use a part of them.
            models.Index(fields=["agent", "request_id"], name="invocation_of_request"),
            models.Index(fields=["proposed_by"], name="invocation_proposed_by", condition=Q(proposed_by__isnull=False)),
            models.Index(fields=["run_step"], name="invocation_of_run", condition=Q(run_step__isnull=False)),
            models.Index(fields=["chain_step"], name="invocation_of_chain", condition=Q(chain_step__isnull=False)),
            models.Index(fields=["callback"], name="invocation_of_callback", condition=Q(callback__isnull=False)),
            models.Index(fields=["consent"], name="invocation_of_consent", condition=Q(consent__isnull=False)),
            models.Index(
                fields=["tenant", "user_fingerprint"], name="invocation_of_user", condition=~Q(user_fingerprint="")
            ),
            # What people search for: calls that met a problem, and the one of a key that was pasted.
            models.Index(fields=["tenant", "reason", "-id"], name="invocation_of_reason", condition=~Q(reason="")),
            models.Index(
                fields=["tenant", "idempotency_key"], name="invocation_of_key", condition=~Q(idempotency_key="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.wire_id} {self.tool} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("inv", self.id)

    @property
    def account_wire_id(self) -> str:
        """Of the person's account that it uses, or waits for; empty: of none."""
        return encode("sac", self.account_id) if self.account_id else ""

    @property
    def trace_id(self) -> str:
        """Empty: of none."""
        return read_trace_id(self.trace)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def was_lost(self) -> bool:
        """Whether a run before the current one was cut off: it may have had the tool's effect."""
        return self.attempt > (self.state == State.RUNNING)

    @property
    def duration_ms(self) -> float | None:
        return (self.finished_at - self.created_at).total_seconds() * 1000 if self.finished_at else None


FOR_WORK = PreparedQuery(lambda pk: Invocation.objects.for_work().filter(pk=pk), pk=UUID)  # the call with this id
# The version of a call as its end needs it.
CALLED_VERSION = PreparedQuery(
    lambda pk: ToolVersion.objects.select_related("tool").defer(*LONG_FIELDS).filter(pk=pk), pk=UUID
)


def build_box_name(invocation: Invocation) -> str:
    """What the sandbox calls the run of the current attempt; unique, so that it can be ended from anywhere."""
    return f"{invocation.wire_id}-{invocation.attempt}"


# What became of an attempt after which the call was queued again: nobody knows what it did, or nothing of its request has left.
LOST, UNSENT = "lost", "unsent"


class Attempt(models.Model):
    """One run of an invocation by one worker."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # The index of the constraint begins with it.
    invocation = models.ForeignKey(Invocation, models.PROTECT, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    worker = models.CharField(max_length=120)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    status = models.CharField(max_length=24, blank=True)  # of the sandbox's outcome
    box = models.CharField(max_length=64, blank=True)
    image = models.CharField(max_length=80, blank=True)
    cpu_ms = models.FloatField(null=True)
    max_rss_bytes = models.BigIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["invocation", "number"], name="attempt_number_once")]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.invocation_id}"


class Tally(models.Model):
    """How often something that gets no fact of its own happened in one minute. Until it is one fact."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()  # NO_TENANT: of the hub itself
    kind = models.CharField(max_length=40)  # of the fact
    agent = models.CharField(max_length=64, blank=True)  # its wire id; empty: of nobody that is known
    tool = models.CharField(max_length=128, blank=True)
    reason = models.CharField(max_length=64, blank=True)  # of the problem, when there is one
    minute = models.BigIntegerField()  # since 1970
    count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["minute", "tenant_id", "agent", "kind", "tool", "reason"], name="tally_once_a_minute"
            )
        ]

    def __str__(self) -> str:
        return f"{self.count} {self.kind} of {self.agent or 'nobody'}"


class StoredFile(models.Model):
    """A file of the tenant that its tools may read or write, at the path that they see. Encrypted, replaced as a whole."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="files")
    path = models.CharField(max_length=400)  # below /data
    size = models.PositiveBigIntegerField()
    fingerprint = models.CharField(max_length=80)  # keyed, of the content
    subject_key = models.ForeignKey(
        SubjectKey, models.PROTECT, null=True, related_name="+", db_index=False
    )  # of the call that wrote it
    key_id = models.CharField(max_length=64, blank=True)
    wrapped_key = models.BinaryField()
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    changed_by = models.CharField(max_length=64)
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "path"], name="file_path_once_in_a_tenant")]

    def __str__(self) -> str:
        return self.path

    @property
    def wire_id(self) -> str:
        return encode("fil", self.id)

    @property
    def below(self) -> str:
        """The path without ``/data/``, as addresses have it."""
        return self.path.removeprefix("/data/")


class Unmapped(models.Model):
    """How often something went wrong in one hour that nobody had thought of, by where and what."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hour = models.DateTimeField()
    place = models.CharField(max_length=64)  # of the log: problems (answers), worker, sweeper, …
    error = models.CharField(max_length=100)  # class of the exception, never its text
    count = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["hour", "place", "error"], name="unmapped_once_an_hour")]

    def __str__(self) -> str:
        return f"{self.count} {self.error} in {self.place}"


class SandboxHost(models.Model):
    """What a process that owns sandboxes has, as it says now and then; the console looks here and asks no engine."""

    name = models.CharField(primary_key=True, max_length=120)  # host and process
    seen_at = models.DateTimeField()
    snapshot = models.JSONField(default=dict)

    def __str__(self) -> str:
        return self.name
