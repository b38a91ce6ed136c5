"""Export jobs: how an export gets made.

Piece by piece: each is one transaction that holds the bytes and the position in the log behind them, so a keeper that is killed has
written a piece or none of it, and whoever claims the job next goes on there.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_noop

from evidence import services as evidence
from evidence.exports.formats import FORMATS
from evidence.exports.selection import select_facts
from evidence.exports.storage import compute_digest, forget_content, keep_piece, new_key
from evidence.kinds import Kind
from evidence.leaves.custody import ExpiredExport, Export, FailedExport, FinishedExport
from evidence.models import ExportJob, ExportState
from evidence.models.exports import OPEN
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable, KeyUnavailable
from kernel.database.connections import database_time
from kernel.fault_injection import inject_fault
from kernel.leases import renew_lease
from kernel.loops import Rest, repeat_work
from kernel.observability.telemetry import PROCESS
from kernel.principal import Principal

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from typing import Any
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.exports.selection import SelectedFact

log = logging.getLogger("toolhub.exporter")
EVERY_S = 1.0
MIB = 1024 * 1024
LOST = (
    "The archive lacks facts that it would hold, or has them otherwise than they were sealed. Operators: `manage.py verify_log` "
    "names them; restore the archive's objects. Then ask for it again."
)
FORGOTTEN = gettext_noop("A person was forgotten meanwhile. Ask for it again.")


class ClaimLost(Exception):
    """The job was cancelled, or another keeper has it."""


def advance_next() -> ExportJob | None:
    """One piece of a job that waits; None when none does. The one that was served longest ago first."""
    now = database_time()
    waiting = ExportJob.objects.filter(Q(lease_until=None) | Q(lease_until__lte=now), state__in=OPEN)
    for row in waiting.order_by(F("lease_until").asc(nulls_first=True), "id")[:20]:
        job = _claim(row)
        if job is not None:
            return _advance(job)
    return None


def _lease() -> Any:
    return database_time() + timedelta(seconds=settings.TOOLHUB_LEASE_S)


def _claim(row: ExportJob) -> ExportJob | None:
    mine = ExportJob.objects.filter(pk=row.pk, state__in=OPEN, lease_until=row.lease_until)
    token = f"{PROCESS}:{secrets.token_hex(4)}"[:80]
    if not mine.update(state=ExportState.RUNNING, exporter=token, lease_until=_lease()):
        return None
    job = ExportJob.objects.get(pk=row.pk)
    if not job.key_id:
        job.key_id, job.wrapped_key = new_key(job.tenant_id.bytes)
        if not _mine(job).update(key_id=job.key_id, wrapped_key=job.wrapped_key):
            return None
    return job


def _mine(job: ExportJob) -> Any:
    return ExportJob.objects.filter(pk=job.pk, state=ExportState.RUNNING, exporter=job.exporter)


def _renew(job: ExportJob) -> bool:
    return bool(_mine(job).update(lease_until=_lease()))


def _advance(job: ExportJob) -> ExportJob:
    try:
        with renew_lease(lambda: _renew(job), every_s=settings.TOOLHUB_LEASE_S / 3):
            # In no transaction: facts stay as they are, and old ones may have to be read from an archive first.
            rows, upto = select_facts(job)
        with transaction.atomic():
            _piece(job, rows, upto)
            inject_fault("export.before_commit")
        inject_fault("export.committed")
    except ClaimLost:
        log.info("%s was taken up by another keeper, or cancelled", job.wire_id)
    except ArchivedFactLost as problem:
        log.warning("%s failed: %s", job.wire_id, problem.detail)
        _fail(job, LOST)
    except (KeyUnavailable, ArchivedFactUnavailable) as problem:
        log.warning("%s waits: %s", job.wire_id, problem.detail)  # the lease runs out, then it is tried again
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("%s failed", job.wire_id)
        _fail(job, f"It could not be made ({type(error).__name__}). Ask for it again.")
    return job


def _piece(job: ExportJob, rows: list[SelectedFact], upto: int) -> None:
    format = FORMATS[job.format]
    if not _renew(job):  # also locks the row: cancelling waits for the piece
        raise ClaimLost
    content = format.begin(job) if job.chunks == 0 and job.position == job.start else b""
    job.rows += len(rows)
    content += format.facts(job, rows)
    job.position = upto
    if job.rows > settings.TOOLHUB_EXPORT_MAX_ROWS:
        _fail(job, f"It would hold more than {settings.TOOLHUB_EXPORT_MAX_ROWS} facts. Narrow the query or the range.")
        return
    if job.size + len(content) > settings.TOOLHUB_EXPORT_MAX_MB * MIB:
        _fail(job, f"It would be larger than {settings.TOOLHUB_EXPORT_MAX_MB} MiB. Narrow the query or the range.")
        return
    keep_piece(job, content)
    if job.position == job.stop:
        keep_piece(job, format.end(job))
        job.digest = compute_digest(job)
        job.expires_at = database_time() + timedelta(days=settings.TOOLHUB_EXPORT_DAYS)
        _end(job, ExportState.DONE, Kind.EXPORT_FINISHED)
        return
    names = ("position", "rows", "size", "chunks", "progress")
    if not _mine(job).update(**{name: getattr(job, name) for name in names}, lease_until=None):
        raise ClaimLost


@transaction.atomic
def _fail(job: ExportJob, problem: str) -> None:
    job.refresh_from_db()
    _end(job, ExportState.FAILED, Kind.EXPORT_FAILED, problem=problem)


def _end(job: ExportJob, state: ExportState, kind: Kind, *, problem: str = "") -> None:
    """In the transaction of the last piece."""
    if state is ExportState.FAILED:
        forget_content(job)
        job.rows = job.size = job.chunks = 0
    job.problem, job.finished_at = problem, timezone.now()
    job.progress = {}
    names = (
        *("position", "rows", "size", "chunks", "progress", "digest", "problem", "key_id", "wrapped_key"),
        *("finished_at", "expires_at"),
    )
    values = {name: getattr(job, name) for name in names}
    if not _mine(job).update(state=state, lease_until=None, **values):
        raise ClaimLost
    job.state = state
    said = (
        FailedExport(format=job.format, problem=problem)
        if problem
        else FinishedExport(format=job.format, rows=job.rows, bytes=job.size, digest=job.digest)
    )
    record_job_fact(job, kind, said)


def record_job_fact(job: ExportJob, kind: Kind, said: Export) -> None:
    by = Principal.system("exporter", tenant_id=job.tenant_id)
    evidence.record(kind=kind, subject=job.wire_id, actor=by, data=said)


def expire_due(*, limit: int = 20) -> int:
    """Remove the content of exports whose time is over; returns of how many."""
    due = ExportJob.objects.filter(state=ExportState.DONE, expires_at__lte=database_time())
    return sum(expire_export(pk) for pk in due.order_by("expires_at").values_list("pk", flat=True)[:limit])


@transaction.atomic
def expire_export(pk: Any) -> bool:
    won = ExportJob.objects.filter(pk=pk, state=ExportState.DONE).update(state=ExportState.EXPIRED)
    if won:
        job = ExportJob.objects.get(pk=pk)
        forget_content(job)
        job.save(update_fields=["key_id", "wrapped_key"])
        record_job_fact(job, Kind.EXPORT_EXPIRED, ExpiredExport(format=job.format, bytes=job.size, digest=job.digest))
    return bool(won)


def with_opened_values(tenant_id: Any) -> QuerySet[ExportJob]:
    """Those that hold, or will hold, values of calls."""
    return ExportJob.objects.filter(tenant_id=tenant_id, opens=True, state__in=[*OPEN, ExportState.DONE])


def forget_opened_exports(tenant_id: Any) -> int:
    """Take them away; returns how many went."""
    return forget_exports([job.pk for job in with_opened_values(tenant_id)])


def forget_exports(pks: Iterable[UUID]) -> int:
    """Take away what is made of them, or will be; returns of how many."""
    return sum(expire_export(pk) or _give_up(pk) for pk in pks)


@transaction.atomic
def _give_up(pk: Any) -> bool:
    won = ExportJob.objects.filter(pk=pk, state__in=OPEN).update(
        state=ExportState.FAILED, problem=FORGOTTEN, finished_at=timezone.now(), lease_until=None
    )
    if won:
        job = ExportJob.objects.get(pk=pk)
        forget_content(job)
        job.save(update_fields=["key_id", "wrapped_key"])
        record_job_fact(job, Kind.EXPORT_FAILED, FailedExport(format=job.format, problem=FORGOTTEN))
    return bool(won)


def _pass() -> Rest | None:
    """A piece of an export; when there is none to make, what has expired goes."""
    if advance_next() is not None:
        return Rest(0)
    expire_due()
    return None


def run_exports(stop: threading.Event) -> None:
    """Make exports until told to stop."""
    repeat_work(_pass, stop, every_s=EVERY_S, what="Exports were not made", log=log)
