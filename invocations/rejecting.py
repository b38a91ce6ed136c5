"""What witnesses refused calls that came too fast to be written down one by one?

They are counted by agent and minute, each in a transaction of its own; once the minute is over, one fact says how many there
were. A crash loses none that was answered.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.db.models import F

from access.problems import RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from invocations.models import Rejected
from toolhub.kernel.principal import Principal

MINUTE_S = 60


@transaction.atomic
def count_rejected(*, by: Principal) -> None:
    """One more that gets no Begin and End."""
    minute = int(datetime.now(UTC).timestamp()) // MINUTE_S
    row, _ = Rejected.objects.get_or_create(tenant_id=by.tenant_id, agent=by.id, minute=minute)
    Rejected.objects.filter(pk=row.pk).update(count=F("count") + 1)


def _witness(row: Rejected) -> None:
    begun = datetime.fromtimestamp(row.minute * MINUTE_S, UTC)
    evidence.record(
        kind=Kind.REQUEST_REJECTED,
        subject=row.agent,
        actor=Principal.system("sweeper", tenant_id=row.tenant_id),
        outcome="denied",
        reason=RateLimited.reason,
        data={
            "calls": row.count,
            "from": begun.isoformat(),
            "until": (begun + timedelta(seconds=MINUTE_S)).isoformat(),
        },
    )
    row.delete()


@transaction.atomic
def witness_rejected(*, now: datetime, limit: int) -> int:
    """A fact for each agent and each minute that is over, in which there were any; a minute later, when all have counted."""
    last = int(now.timestamp()) // MINUTE_S - 2
    over = Rejected.objects.select_for_update(skip_locked=True).filter(minute__lte=last)
    rows = list(over.order_by("minute")[:limit])
    for row in rows:
        _witness(row)
    return len(rows)
