"""Tool report: how the calls of one tool have gone in the last seven days, for whoever wrote it.

Counted are the newest of them, so that a page does not go through a million.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db.models import Count, Max

from invocations.call_outcomes import CallOutcome, classify_call
from invocations.models import Invocation
from invocations.service_levels.call_health import A_CLOCK_BESIDE
from invocations.service_levels.report import LatencyPercentiles
from kernel.database.connections import database_time
from kernel.ids import lowest_id
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.problems import Problem

WINDOW = timedelta(days=7)
COUNTED = 20_000
MEASURED = 2_000


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Calls that ended for one reason."""

    reason: str
    problem: type[Problem]
    calls: int
    last_at: datetime


@dataclass(slots=True)
class ToolReport:
    """``versions``: calls by the id of the version that they got; ``is_whole``: whether all of the time were counted."""

    since: datetime
    outcomes: Counter[CallOutcome] = field(default_factory=Counter)
    errors: list[ErrorGroup] = field(default_factory=list)
    versions: Counter[UUID] = field(default_factory=Counter)
    latency: LatencyPercentiles = field(default_factory=lambda: LatencyPercentiles.of(()))
    is_whole: bool = True

    @property
    def calls(self) -> int:
        return self.outcomes.total()

    @property
    def shown_outcomes(self) -> list[tuple[CallOutcome, int]]:
        return [(outcome, self.outcomes[outcome]) for outcome in CallOutcome if self.outcomes[outcome]]


def load_tool_report(*, tenant_id: UUID, tool: str) -> ToolReport:
    since = database_time() - WINDOW
    rows = Invocation.objects.filter(
        tenant_id=tenant_id, tool=tool, pk__gte=lowest_id(since - A_CLOCK_BESIDE), created_at__gte=since
    )
    newest = Invocation.objects.filter(pk__in=rows.order_by("-pk").values("pk")[:COUNTED])
    made = ToolReport(since)
    groups = (
        newest.values("state", "reason", "version_id").annotate(calls=Count("pk"), last=Max("created_at")).order_by()
    )
    last: dict[str, datetime] = {}
    reasons: Counter[str] = Counter()
    for group in groups:
        made.outcomes[classify_call(group["state"], group["reason"])] += group["calls"]
        if group["version_id"] is not None:
            made.versions[group["version_id"]] += group["calls"]
        if reason := group["reason"]:
            reasons[reason] += group["calls"]
            last[reason] = max(group["last"], last.get(reason, group["last"]))
    made.errors = [ErrorGroup(each, find_problem_class(each), n, last[each]) for each, n in reasons.most_common()]
    ran = rows.filter(attempt__gt=0, held_until=None, finished_at__isnull=False)
    times = ran.order_by("-pk").values_list("created_at", "finished_at")[:MEASURED]
    made.latency = LatencyPercentiles.of(
        (finished - created).total_seconds() * 1000 for created, finished in times if finished is not None
    )
    made.is_whole = made.calls < COUNTED
    return made
