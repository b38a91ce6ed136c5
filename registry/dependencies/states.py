"""Dependency states: how far the dependencies of a version are, and who is at it.

One row a version. Whoever is at it holds a lease under a token of its own, as workers do with calls; each step from one state
to the next is one transaction with its fact.
"""

from __future__ import annotations

import os
import secrets
import socket
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import (
    BuiltDependencies,
    DependenciesOfVersion,
    FailedDependencies,
    LockedDependencies,
    RetriedDependencies,
)
from kernel.database.connections import database_time
from kernel.principal import Principal
from kernel.problems import Conflict
from registry.dependencies import failures
from registry.dependencies.tenant_order import order_by_turn
from registry.models import (
    DEPENDENCY_TRANSITIONS,
    Dependencies,
    DependencyState,
    Installation,
    InstallationState,
    ToolVersion,
    VersionState,
)
from unitools.dependency_locks import compute_lock_digest, normalize_lock_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from registry.dependencies.failures import Failure

LEASE = timedelta(seconds=30)
MAX_ATTEMPTS = 3
KEPT_UNUSED = timedelta(days=7)
BATCH = 20
IN_WORK = (DependencyState.RESOLVING, DependencyState.QUEUED, DependencyState.BUILDING)
RETRIED = {DependencyState.UNRESOLVED: DependencyState.RESOLVING, DependencyState.FAILED: DependencyState.QUEUED}


def _move(
    row: Dependencies,
    to: DependencyState,
    kind: Kind,
    *,
    by: Principal | None = None,
    say: Callable[..., DependenciesOfVersion] = DependenciesOfVersion,
    **more: Any,
) -> None:
    """To another state, with its fact. The row is locked, or new."""
    if to not in DEPENDENCY_TRANSITIONS[row.state]:
        raise Conflict(f"The dependencies are {row.state}; they cannot become {to}.", details={"state": row.state})
    changes = {"state": to, "changed_at": timezone.now(), **more}
    for name, value in changes.items():
        setattr(row, name, value)
    row.save(update_fields=list(changes))
    _witness(row, kind, by=by, say=say)


def _witness(
    row: Dependencies, kind: Kind, *, by: Principal | None = None, say: Callable[..., DependenciesOfVersion]
) -> None:
    """``say``: the type of the leaf, with what it says beside the version."""
    tool = row.version.tool
    evidence.record(
        kind=kind,
        subject=tool.urn,
        actor=by or Principal.system("builder", tenant_id=tool.tenant_id),
        tool=tool.name,
        data=say(version=row.version.version, id=row.version.wire_id, lock=row.lock_digest),
    )


def _of_lock(lines: Sequence[str], source: str) -> Callable[..., DependenciesOfVersion]:
    """What the fact about a lock says."""
    return partial(LockedDependencies, packages=len(lines), source=source)


def note_dependencies(version: ToolVersion, *, by: Principal) -> None:
    """In the transaction that registers the version: what its dependencies are, if it has any."""
    if not version.view.dependencies:
        return
    # What others have made is tried before its lock is believed, also one that the manifest brings.
    lines = normalize_lock_lines(() if version.view.is_tried else version.view.dependency_lock)
    row = Dependencies.objects.create(
        version=version,
        state=DependencyState.LOCKED if lines else DependencyState.RESOLVING,
        lock=lines,
        lock_digest=compute_lock_digest(lines) if lines else "",
    )
    if lines:
        _witness(row, Kind.DEPENDENCIES_LOCKED, by=by, say=_of_lock(lines, "manifest"))


@transaction.atomic
def retry_dependencies(*, version_id: UUID, by: Principal) -> Dependencies:
    """Try again what has failed, by hand of somebody who may enable the version."""
    version = ToolVersion.objects.get(pk=version_id, tool__tenant_id=by.tenant_id)
    rows = Dependencies.objects.select_for_update(of=("self",)).select_related("version__tool")
    row = rows.filter(version=version).first()
    if row is None or row.state not in RETRIED:
        state = row.state if row else "not there"
        raise Conflict(
            f"The dependencies of this version are {state}; there is nothing to try again.",
            details={"state": state},
            remedy="Only what has failed is tried again.",
        )
    to = RETRIED[DependencyState(row.state)]
    _move(
        row,
        to,
        Kind.DEPENDENCIES_RETRIED,
        by=by,
        say=partial(RetriedDependencies, state=str(to)),
        attempt=0,
        progress=[],
        failure={},
    )
    return row


# What the builder does.


def _used() -> Exists:
    """Whether an installation has the version."""
    rows = Installation.objects.filter(version_id=OuterRef("version_id"))
    return Exists(rows.exclude(state=InstallationState.REMOVED))


def queue_wanted() -> int:
    """Whatever somebody uses is built: enabled, staged, pinned or installed, it comes to the same."""
    rows = Dependencies.objects.filter(_used(), state=DependencyState.LOCKED)
    return sum(
        _step(pk, DependencyState.LOCKED, DependencyState.QUEUED, Kind.DEPENDENCIES_QUEUED) for pk in _keys(rows)
    )


def release_unused() -> int:
    """What nobody has used for a week is not kept built. Used again, it is built again."""
    now = database_time()
    built = Dependencies.objects.filter(state__in=(DependencyState.READY, DependencyState.FAILED))
    built.filter(_used(), idle_since__isnull=False).update(idle_since=None)
    built.filter(~_used(), idle_since=None).update(idle_since=now)
    rows = built.filter(idle_since__lte=now - KEPT_UNUSED)
    return sum(
        _step(row.pk, DependencyState(row.state), DependencyState.LOCKED, Kind.DEPENDENCIES_RELEASED)
        for row in rows.order_by("idle_since")[:BATCH]
    )


def _keys(rows: QuerySet[Dependencies]) -> list[UUID]:
    return list(rows.order_by("changed_at").values_list("pk", flat=True)[:BATCH])


@transaction.atomic
def _step(pk: UUID, at: DependencyState, to: DependencyState, kind: Kind) -> bool:
    row = _locked(Q(pk=pk, state=at))
    if row is not None:
        _move(row, to, kind, attempt=0, progress=[], failure={}, idle_since=None, size_bytes=None)
    return row is not None


def _locked(which: Q) -> Dependencies | None:
    rows = Dependencies.objects.select_for_update(of=("self",), skip_locked=True)
    return rows.select_related("version__tool").filter(which).first()


def _free() -> Q:
    return Q(lease_until=None) | Q(lease_until__lte=database_time())


def claim_next() -> Dependencies | None:
    """The next version to resolve or build, for this process alone until its lease runs out."""
    waiting = Dependencies.objects.filter(_free(), state__in=IN_WORK)
    waiting = waiting.exclude(version__review_state=VersionState.REFUSED)
    served = Dependencies.objects.exclude(state__in=IN_WORK)
    waiting = order_by_turn(waiting, tenant="version__tool__tenant_id", served=served, served_at="changed_at")
    for pk in waiting.values_list("pk", flat=True)[:BATCH]:
        claimed = _claim(pk)
        if claimed is not None:
            return claimed
    return None


@transaction.atomic
def _claim(pk: UUID) -> Dependencies | None:
    row = _locked(Q(_free(), pk=pk, state__in=IN_WORK))
    if row is None:
        return None
    if row.attempt >= MAX_ATTEMPTS:
        _fail(row, failures.worker_lost(row.attempt))
        return None
    row.attempt = F("attempt") + 1
    row.builder = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(8)}"
    row.lease_until, row.progress = database_time() + LEASE, []
    row.save(update_fields=["attempt", "builder", "lease_until", "progress"])
    row.refresh_from_db(fields=["attempt"])
    if row.state == DependencyState.QUEUED:
        _move(row, DependencyState.BUILDING, Kind.DEPENDENCIES_STARTED)
    return row


def report_progress(claimed: Dependencies, progress: Sequence[str]) -> bool:
    """Renew the lease, and say what is being done. False when somebody else has it."""
    mine = Dependencies.objects.filter(pk=claimed.pk, builder=claimed.builder)
    return bool(mine.update(lease_until=database_time() + LEASE, progress=list(progress)))


def give_back(claimed: Dependencies) -> None:
    """Not done, and not failed either: the next who looks takes it."""
    mine = Dependencies.objects.filter(pk=claimed.pk, builder=claimed.builder)
    mine.update(lease_until=None, builder="", attempt=F("attempt") - 1, progress=[])


def put_off(claimed: Dependencies, pause: timedelta, why: str) -> None:
    """Not done, and not failed yet: who looks after the pause takes it. The attempt counts."""
    mine = Dependencies.objects.filter(pk=claimed.pk, builder=claimed.builder)
    mine.update(lease_until=database_time() + pause, builder="", progress=[why])


@transaction.atomic
def write_lock(claimed: Dependencies, lines: Sequence[str]) -> bool:
    """What was resolved. It is never changed again."""
    row = _locked(Q(pk=claimed.pk, builder=claimed.builder))
    if row is None:
        return False
    lock = normalize_lock_lines(lines)
    row.lock, row.lock_digest = lock, compute_lock_digest(lock)
    said = _of_lock(lock, "index")
    _move(
        row, DependencyState.LOCKED, Kind.DEPENDENCIES_LOCKED, say=said, **DONE, lock=lock, lock_digest=row.lock_digest
    )
    return True


@transaction.atomic
def write_built(claimed: Dependencies, *, size_bytes: int) -> bool:
    row = _locked(Q(pk=claimed.pk, builder=claimed.builder))
    if row is None:
        return False
    said = partial(BuiltDependencies, bytes=size_bytes)
    _move(row, DependencyState.READY, Kind.DEPENDENCIES_BUILT, say=said, **DONE, size_bytes=size_bytes)
    return True


@transaction.atomic
def write_failed(claimed: Dependencies, failure: Failure) -> bool:
    row = _locked(Q(pk=claimed.pk, builder=claimed.builder))
    if row is None:
        return False
    _fail(row, failure)
    return True


DONE: dict[str, Any] = {"progress": [], "failure": {}, "lease_until": None, "builder": "", "attempt": 0}


def _fail(row: Dependencies, failure: Failure) -> None:
    resolving = row.state == DependencyState.RESOLVING
    if row.state == DependencyState.QUEUED:  # claimed too often without ever getting as far
        _move(row, DependencyState.BUILDING, Kind.DEPENDENCIES_STARTED)
    to = DependencyState.UNRESOLVED if resolving else DependencyState.FAILED
    kind = Kind.DEPENDENCIES_UNRESOLVED if resolving else Kind.DEPENDENCIES_FAILED
    _move(row, to, kind, say=partial(FailedDependencies, code=failure.code), **(DONE | {"failure": failure.to_json()}))


def list_needed_locks() -> list[str]:
    """The digests of the locks that each worker host needs built."""
    rows = Dependencies.objects.filter(_used(), state=DependencyState.READY)
    return list(rows.values_list("lock_digest", flat=True).distinct())


def list_kept_locks() -> list[str]:
    """The digests of all locks whose folder is there, or is about to be, for somebody."""
    states = (DependencyState.QUEUED, DependencyState.BUILDING, DependencyState.READY, DependencyState.FAILED)
    return list(Dependencies.objects.filter(state__in=states).values_list("lock_digest", flat=True).distinct())
