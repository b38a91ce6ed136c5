"""Request tallies: what witnesses requests that come too often, or too early, for a fact each.

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

from access.authentication.bearer import NotInForce
from access.budgets.rate_limits import check_refused_call
from access.problems import RateLimited
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.calls import RequestTally
from invocations.models import Tally
from kernel.database.tenancy import NO_TENANT, acting_for
from kernel.http.api_requests import get_caller
from kernel.http.exception_handlers import build_problem_response, translate_exception
from kernel.principal import Principal
from kernel.problems import Unauthenticated

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request

    from kernel.problems import Problem

log = logging.getLogger("toolhub.rejected")
MINUTE_S = 60


def tally_request(
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
    tally_request(Kind.REQUEST_REJECTED, tenant_id=by.tenant_id, agent=by.id, reason=reason)


def check_is_recorded(problem: Problem, *, by: Principal) -> None:
    """Whether one more refusal of the agent's gets a fact of its own. One too many is counted and raises :class:`RateLimited`."""
    try:
        check_refused_call(by.id, because=problem)
    except RateLimited as too_many:
        count_rejected(by=by, reason=too_many.reason)
        raise


def api_exception_handler(exception: Exception, context: dict[str, Any]) -> HttpResponse:
    """What a view of the API raises becomes its answer; where no call came of it, it is counted."""
    request: Request = context["request"]
    problem = translate_exception(exception, request._request)
    takes_calls = getattr(context["view"], "takes_calls", False) and not isinstance(problem, Unauthenticated)
    return answer_rejected(request._request, problem, by=get_caller(request) if takes_calls else None)


def answer_rejected(request: HttpRequest, problem: Problem, *, by: Principal | None) -> HttpResponse:
    """``by``: as :func:`note_rejected` takes it."""
    note_rejected(problem, by=by)
    return build_problem_response(request, problem)


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
            tally_request(Kind.REQUEST_REJECTED, tenant_id=agent.tenant_id, agent=agent.wire_id, reason=problem.reason)
        else:
            tally_request(Kind.REQUEST_REJECTED, reason=problem.reason)
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
        data=RequestTally(
            calls=row.count,
            from_=begun.isoformat(),
            until=(begun + timedelta(seconds=MINUTE_S)).isoformat(),
        ),
    )
    row.delete()


@transaction.atomic
def record_tallies(*, now: datetime, limit: int) -> int:
    """A fact for each sort and each minute that is over, in which there were any; a minute later, when all have counted."""
    last = int(now.timestamp()) // MINUTE_S - 2
    over = Tally.objects.select_for_update(skip_locked=True).filter(minute__lte=last)
    rows = list(over.order_by("minute")[:limit])
    for row in rows:
        _witness(row)
    return len(rows)
