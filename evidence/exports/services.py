"""Exports: who may have which evidence made into a file, and how that is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.exports.selection import read_query
from evidence.exports.storage import forget_content
from evidence.kinds import Kind
from evidence.leaves.custody import Export, RequestedExport
from evidence.log.reader import checkpoint_at, latest_checkpoint
from evidence.models import ExportFormat, ExportJob, ExportState
from evidence.models.exports import OPEN
from evidence.problems import ExportsFull, NotSealed, RevealReasonTooShort
from kernel.database.connections import database_time
from kernel.problems import Conflict, SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

MOST_OPEN = 5
MOST_KEPT = 100


@transaction.atomic
def make_export(
    *,
    format: str,
    query: str = "",
    start: int = 0,
    stop: int | None = None,
    older: int | None = None,
    opens: bool = False,
    reason: str = "",
    by: Principal,
) -> ExportJob:
    """Queue an export of the leaves ``start`` … ``stop`` - 1 that ``query`` finds; without ``stop`` of all that are sealed by now.

    ``opens`` puts the values of calls into a bundle, for who may reveal them. ``older`` is the size of a checkpoint that the bundle
    proves to be continued.
    """
    tree = latest_checkpoint(by.tenant_id)
    if tree is None:
        raise NotSealed("No fact of this tenant is in its log yet.", remedy="Try again in a few seconds.")
    stop = tree.size if stop is None else stop
    if not 0 <= start <= stop <= tree.size:
        raise StateUnfit.at("/stop", f"The range begins at 0 or later and ends at {tree.size} or before.")
    if format != ExportFormat.BUNDLE and (opens or older is not None):
        raise SchemaInvalid.at("/format", "Only a bundle holds opened values and older checkpoints.")
    if opens:
        by.check("evidence.reveal")
        if len(reason.strip()) < evidence.MIN_REASON:
            raise RevealReasonTooShort()
    if older is not None and checkpoint_at(by.tenant_id, older).size > tree.size:
        raise StateUnfit.at("/older", "The older checkpoint is not older.")
    kept = read_query(query, by.tenant_id)
    _check_room(by.tenant_id)
    job = ExportJob.objects.create(
        tenant_id=by.tenant_id,
        actor_kind=str(by.kind),
        actor_id=by.id,
        query=str(kept),
        start=start,
        stop=stop,
        position=start,
        format=ExportFormat(format),
        opens=opens,
        reason=reason.strip()[:500],
        progress={"tree": tree.size} | ({"older": older} if older else {}),
        created_at=timezone.now(),
    )
    said = RequestedExport(
        format=job.format,
        from_=start,
        to=stop,
        opens=opens,
        # What somebody looked for may name somebody: its keyed hash.
        query=evidence.compute_fingerprint(job.query.encode(), tenant_id=by.tenant_id) if job.query else None,
        reason=job.reason or None,
    )
    evidence.record(kind=Kind.EXPORT_MADE, subject=job.wire_id, actor=by, data=said)
    return job


def _check_room(tenant_id: UUID) -> None:
    rows = ExportJob.objects.filter(tenant_id=tenant_id)
    if rows.filter(state__in=OPEN).count() >= MOST_OPEN:
        raise ExportsFull(f"{MOST_OPEN} exports of this tenant are being made already.")
    if rows.filter(state=ExportState.DONE).count() >= MOST_KEPT:
        raise ExportsFull(f"{MOST_KEPT} exports of this tenant are kept already.")


@transaction.atomic
def cancel_export(*, job_id: UUID, by: Principal) -> ExportJob:
    """Stop one that is not done; what there is of it goes."""
    job = ExportJob.objects.get(pk=job_id, tenant_id=by.tenant_id)
    now = database_time()
    won = ExportJob.objects.filter(pk=job_id, state__in=OPEN).update(
        state=ExportState.CANCELLED, finished_at=now, lease_until=None, size=0, chunks=0, key_id="", wrapped_key=b""
    )
    if not won:
        raise Conflict(f"This export is {job.state}; there is nothing to cancel.", details={"state": job.state})
    forget_content(job)
    job.refresh_from_db()
    evidence.record(kind=Kind.EXPORT_CANCELLED, subject=job.wire_id, actor=by, data=Export(format=job.format))
    return job
