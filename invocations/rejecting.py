"""What witnesses requests that come too often, or too early, for a fact each?

Requests that never become a call (no valid key, not readable, no such tool, refused too fast), and preflights. They are counted
by agent, reason and minute, each in a transaction of its own; once the minute is over, one fact says how many there were. A
crash loses none that was answered.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F

from evidence import services as evidence
from evidence.kinds import Kind
from invocations.models import Tally
from toolhub.kernel.principal import Principal
from toolhub.kernel.tenancy import NO_TENANT, acting_for

if TYPE_CHECKING:
    from uuid import UUID

MINUTE_S = 60


def count(
    kind: Kind, *, tenant_id: UUID = NO_TENANT, agent: str = "", tool: str = "", reason: str = "", times: int = 1
) -> None:
    """One statement, but for the first of its sort in a minute."""
    minute = int(datetime.now(UTC).timestamp()) // MINUTE_S
    sort = {"minute": minute, "tenant_id": tenant_id, "agent": agent, "kind": kind, "tool": tool, "reason": reason}
    with acting_for(tenant_id):
        while not Tally.objects.filter(**sort).update(count=F("count") + times):
            try:
                with transaction.atomic():
                    Tally.objects.create(**sort)
            except IntegrityError:
                continue  # another one was first


def count_rejected(*, by: Principal, reason: str) -> None:
    """One more that gets no Begin and End."""
    count(Kind.REQUEST_REJECTED, tenant_id=by.tenant_id, agent=by.id, reason=reason)


def _witness(row: Tally) -> None:
    begun = datetime.fromtimestamp(row.minute * MINUTE_S, UTC)
    evidence.record(
        kind=Kind(row.kind),
        subject=row.agent or "nobody",
        actor=Principal.system("sweeper", tenant_id=row.tenant_id),
        tool=row.tool,
        outcome="denied" if row.reason else "",
        reason=row.reason,
        data={
            "calls": row.count,
            "from": begun.isoformat(),
            "until": (begun + timedelta(seconds=MINUTE_S)).isoformat(),
        },
    )
    row.delete()


@transaction.atomic
def witness_counted(*, now: datetime, limit: int) -> int:
    """A fact for each sort and each minute that is over, in which there were any; a minute later, when all have counted."""
    last = int(now.timestamp()) // MINUTE_S - 2
    over = Tally.objects.select_for_update(skip_locked=True).filter(minute__lte=last)
    rows = list(over.order_by("minute")[:limit])
    for row in rows:
        _witness(row)
    return len(rows)
