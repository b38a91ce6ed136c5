"""Progress: how far the unfinished things of a tenant are. What is another thing than at the last look is news.

Only what is unfinished is read, so that a look costs little on a quiet hub, and at most so many rows of a kind on a busy one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidence.models import Erasure, ErasureState, ExportJob, Snapshot, SnapshotKind, Verification, VerificationState
from evidence.models.exports import OPEN
from invocations.models import Invocation
from invocations.replays.models import REPLAY_OPEN, Replay, What
from invocations.unfinished_calls.models import build_unfinished_filter

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

MOST = 200


def _read_calls(tenant_id: UUID) -> list[Any]:
    """With the sealed snapshots of what runs said last: each time that is a new one."""
    calls = list(
        Invocation.objects.filter(build_unfinished_filter(tenant_id=tenant_id), tenant_id=tenant_id)
        .order_by("-pk")
        .values_list("pk", "state", "attempt", "progress")[:MOST]
    )
    live = Snapshot.objects.filter(invocation_id__in=[pk for pk, *_ in calls], kind=SnapshotKind.LIVE)
    return [*calls, *(sorted(live.values_list("pk", flat=True)) if calls else ())]


def _read_exports(tenant_id: UUID) -> list[Any]:
    jobs = ExportJob.objects.filter(tenant_id=tenant_id, state__in=OPEN).order_by("-pk")
    return list(jobs.values_list("pk", "state", "position", "rows")[:MOST])


def _read_verifications(tenant_id: UUID) -> list[Any]:
    """Those that somebody asked for: the continuous one is never finished."""
    rows = Verification.objects.filter(tenant_id=tenant_id, state=VerificationState.RUNNING).exclude(asked_by="")
    return list(rows.order_by("-pk").values_list("pk", "position", "found")[:MOST])


def _read_erasures(tenant_id: UUID) -> list[Any]:
    rows = Erasure.objects.filter(tenant_id=tenant_id).exclude(state=ErasureState.DONE).order_by("-pk")
    return [(pk, state, str(counts)) for pk, state, counts in rows.values_list("pk", "state", "counts")[:MOST]]


def _read_replays(tenant_id: UUID) -> list[Any]:
    rows = Replay.objects.filter(tenant_id=tenant_id, state__in=REPLAY_OPEN).order_by("-pk")
    return list(rows.values_list("pk", "state", "done")[:MOST])


def _read_trials(tenant_id: UUID) -> list[Any]:
    """For reviewers, who need not see other replays."""
    rows = Replay.objects.filter(tenant_id=tenant_id, state__in=REPLAY_OPEN, what=What.TRIAL).order_by("-pk")
    return list(rows.values_list("pk", "state")[:MOST])


READERS: dict[str, Callable[[UUID], list[Any]]] = {
    "calls": _read_calls,
    "exports": _read_exports,
    "verifications": _read_verifications,
    "erasures": _read_erasures,
    "replays": _read_replays,
    "trials": _read_trials,
}


def read_progress(tenant_id: UUID) -> dict[str, list[Any]]:
    """By topic, how far what is unfinished is."""
    return {topic: read(tenant_id) for topic, read in READERS.items()}
