"""Replay models: what was gone through again, who wanted that, and what came of it.

A :class:`Replay` is asked for by a person: of one call, of those of a period, or of a version with arguments that they wrote. It is
worked through in pieces, and ``after`` is how far it has come, so that a worker's death costs a piece. A :class:`Rerun` is one call of
it that was run again. Neither is a call: nothing of a replay counts as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q

from access.models import PolicyVersion, Tenant
from kernel.ids import encode, new_id
from registry.models import ToolVersion

if TYPE_CHECKING:
    from kernel.principal import Principal


class What(models.TextChoices):
    """What is gone through."""

    FACTS = "facts"  # each call is rebuilt from its facts and compared with its row
    DECISIONS = "decisions"  # policy decides again on what it decided on
    RUNS = "runs"  # the tool runs again, in a box that reaches nothing
    TRIAL = "trial"  # a version under review runs with arguments that its reviewer wrote: invocations.trials


OF_PERIODS = (What.FACTS, What.DECISIONS, What.RUNS)


class ReplayState(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"
    FAILED = "failed"


REPLAY_TRANSITIONS: dict[str, frozenset[str]] = {
    ReplayState.QUEUED: frozenset({ReplayState.RUNNING, ReplayState.CANCELLED}),
    ReplayState.RUNNING: frozenset({ReplayState.QUEUED, ReplayState.ENDED, ReplayState.CANCELLED, ReplayState.FAILED}),
    ReplayState.ENDED: frozenset(),
    ReplayState.CANCELLED: frozenset(),
    ReplayState.FAILED: frozenset(),
}
REPLAY_OPEN = (ReplayState.QUEUED, ReplayState.RUNNING)


class ReplayVerdict(models.TextChoices):
    MATCH = "match"
    DIFFERS = "differs"
    NOT_DETERMINISTIC = "not_deterministic"
    CANNOT = "cannot"


class ReplayQuerySet(models.QuerySet["Replay"]):
    def visible_to(self, principal: Principal) -> ReplayQuerySet:
        return self.filter(tenant_id=principal.tenant_id)


class Replay(models.Model):
    """One call, or the calls of a period, gone through again; or a trial, which has no call."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="replays")
    what = models.CharField(max_length=12, choices=What)
    invocation = models.ForeignKey("invocations.Invocation", models.PROTECT, null=True, related_name="replays")
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    tool = models.CharField(max_length=128, blank=True)
    most = models.PositiveIntegerField(default=1)  # calls
    policy = models.ForeignKey(PolicyVersion, models.PROTECT, null=True, related_name="+")  # None: the recorded one
    version = models.ForeignKey(ToolVersion, models.PROTECT, null=True, related_name="+")  # None: the recorded one
    todays_image = models.BooleanField(default=False)  # instead of the recorded one
    reason = models.CharField(max_length=500)
    asked_by = models.CharField(max_length=64)
    state = models.CharField(max_length=12, choices=ReplayState, default=ReplayState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)  # fencing token: counts claims
    crashes = models.PositiveSmallIntegerField(default=0)  # in a row, without a call done in between
    lease_until = models.DateTimeField(null=True)
    notified_at = models.DateTimeField()
    cancel_asked_at = models.DateTimeField(null=True)
    after = models.UUIDField(null=True)  # the Begin fact of the last call that is done
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=1)
    result = models.JSONField(default=dict)
    verdict = models.CharField(max_length=20, choices=ReplayVerdict, blank=True)  # of one call
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects = ReplayQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(invocation__isnull=False, what="runs", since=None, until=None)
                | Q(invocation=None, what__in=["facts", "decisions", "runs"], since__isnull=False, until__isnull=False)
                | Q(invocation=None, what="trial", version__isnull=False, since=None, until=None),
                name="replay_of_a_call_a_period_or_a_version",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["queued", "running"], finished_at=None)
                | ~Q(state__in=["queued", "running"]) & Q(finished_at__isnull=False),
                name="replay_finished_when_final",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "-id"], name="replay_newest"),
            models.Index(fields=["notified_at"], name="replay_open", condition=Q(state__in=["queued", "running"])),
        ]

    def __str__(self) -> str:
        return f"{self.wire_id} ({self.state})"

    @property
    def wire_id(self) -> str:
        return encode("rpl", self.id)

    @property
    def is_final(self) -> bool:
        return self.state not in REPLAY_OPEN


class Rerun(models.Model):
    """One call that was run again in a replay. What it said lies sealed beside the call's own values, under ``number``."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    replay = models.ForeignKey(Replay, models.PROTECT, related_name="reruns")
    invocation = models.ForeignKey("invocations.Invocation", models.PROTECT, related_name="reruns")
    number = models.PositiveIntegerField()  # of the call's reruns, from 1
    verdict = models.CharField(max_length=20, choices=ReplayVerdict)
    why = models.CharField(max_length=32, blank=True)  # it cannot be run again
    notes = models.JSONField(
        default=list
    )  # what was another thing than in the call: words of invocations.replays.labels
    version = models.CharField(max_length=64)
    image = models.CharField(max_length=80, blank=True)
    runs = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=16, blank=True)  # of the call, had it been one
    problem = models.CharField(max_length=64, blank=True)  # its reason
    differences = models.PositiveIntegerField(default=0)  # places of the output
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["replay", "invocation"], name="rerun_once_in_a_replay"),
            models.UniqueConstraint(fields=["invocation", "number"], name="rerun_number_once"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} of {self.invocation_id}"
