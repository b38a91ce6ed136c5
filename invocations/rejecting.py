"""What witnesses requests that come too often, or too early, for a fact each?

Requests that never become a call (no valid key, not readable, no such tool, refused too fast), and preflights. They are counted
by agent, reason and minute, each in a transaction of its own; once the minute is over, one fact says how many there were. A
crash loses none that was answered.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F

from access.authentication import NotInForce
from access.problems import RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from invocations.models import Tally
from toolhub.kernel.api import caller
from toolhub.kernel.handlers import problem_of, respond
from toolhub.kernel.principal import Principal
from toolhub.kernel.problems import Unauthenticated
from toolhub.kernel.tenancy import NO_TENANT, acting_for

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpResponse
    from rest_framework.request import Request

    from toolhub.kernel.problems import Problem

log = logging.getLogger("toolhub.rejected")
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


def api_exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponse:
    """What a view of the API raises becomes its answer; where no call came of it, it is counted."""
    request: Request = context["request"]
    problem = problem_of(exception, request._request)
    takes_calls = getattr(context["view"], "takes_calls", False) and not isinstance(problem, Unauthenticated)
    note_rejected(problem, by=caller(request) if takes_calls else None)
    return respond(request._request, problem)


def note_rejected(problem: Problem, *, by: Principal | None) -> None:
    """Count what was refused without a call. ``by``: who wanted one; what else holders of keys ask for is not counted."""
    try:
        _note(problem, by)
    except DatabaseError as error:
        log.warning("A refused request could not be counted: %s", error)


def _note(problem: Problem, by: Principal | None) -> None:
    """Without a valid key: whatever was asked for. With one: what was to become a call. What came too fast is not written down at
    all, or has been counted where it was refused.
    """
    if isinstance(problem, RateLimited) or problem.status >= 500:
        return
    if isinstance(problem, Unauthenticated):
        behind = problem.__cause__
        if isinstance(behind, NotInForce):
            agent = behind.agent
            count(Kind.REQUEST_REJECTED, tenant_id=agent.tenant_id, agent=agent.wire_id, reason=problem.reason)
        else:
            count(Kind.REQUEST_REJECTED, reason=problem.reason)
    elif by is not None:
        count_rejected(by=by, reason=problem.reason)


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
