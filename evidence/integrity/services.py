"""Verifications: who may have a log verified now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.custody import RequestedVerification
from evidence.log.origins import parse_log_name
from evidence.models import Log, Verification, VerificationState
from evidence.problems import NotSealed
from kernel.database.connections import database_now
from kernel.database.tenancy import acting_for, hub_wide
from kernel.problems import Conflict, StateUnfit

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

MOST_OPEN = 3


@transaction.atomic
def ask_verification(*, start: int = 0, stop: int | None = None, name: str = "", by: Principal) -> Verification:
    """Have the leaves ``start`` … ``stop`` - 1 of a log verified; without ``stop`` all that are sealed, and the end.

    ``name``: of one of the logs that all tenants share, which those may name who manage the hub; else it is the tenant's own.
    """
    if name:
        by.check("hub.manage")
    with hub_wide() if name else acting_for(by.tenant_id):
        row, upto, origin = _ask(parse_log_name(name) if name else by.tenant_id, start, stop, by)
    evidence.record(
        kind=Kind.VERIFICATION_ASKED,
        subject=row.wire_id,
        actor=by,
        data=RequestedVerification(log=origin, from_=start, to=upto),
    )
    return row


def _ask(tenant_id: UUID, start: int, stop: int | None, by: Principal) -> tuple[Verification, int, str]:
    """With the leaf before which it ends, and the name of the log."""
    log = Log.objects.filter(pk=tenant_id).first()
    if log is None:
        raise NotSealed("No fact is in this log yet.", remedy="Try again in a few seconds.")
    upto = log.size if stop is None else stop
    if not 0 <= start < upto <= log.size:
        raise StateUnfit.at("/stop", f"The range begins at 0 or later and ends at {log.size} or before.")
    asked = Verification.objects.filter(tenant_id=tenant_id, state=VerificationState.RUNNING).exclude(asked_by="")
    if asked.count() >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} verifications are running already.", remedy="Wait until one of them is done.")
    row = Verification.objects.create(
        tenant_id=tenant_id, asked_by=by.id, start=start, stop=stop, position=start, begun_at=database_now()
    )
    row.refresh_from_db(fields=["begun_at"])
    return row, upto, log.origin
