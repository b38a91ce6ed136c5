"""Counts of call hours: how calls of a time went, by hour, tool, agent and reason, without looking at each.

Hours that are rolled up are read from there; the others (this one, and those that nobody has come to) are counted as they are. An hour
without a row for the tenant costs nothing to count: it has no calls, or was not rolled up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncHour

from invocations.call_hours.models import CallHour
from invocations.call_hours.rollup import HOUR, floor_to_hour
from invocations.call_outcomes import CallOutcome, classify_call
from invocations.models import Invocation
from invocations.service_levels.call_health import A_CLOCK_BESIDE
from invocations.service_levels.report import LatencyPercentiles
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

MEASURED = 2_000  # of the newest calls that ran, whose time is looked at
LOOKED_AT = 20_000  # of the newest calls, to find those: a million that were denied are not gone through


@dataclass(slots=True)
class CallCounts:
    """By outcome within each: an hour, a tool, an agent (its id); and by reason."""

    hours: dict[datetime, Counter[CallOutcome]] = field(default_factory=dict)
    tools: dict[str, Counter[CallOutcome]] = field(default_factory=dict)
    agents: dict[UUID, Counter[CallOutcome]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> Counter[CallOutcome]:
        return sum(self.hours.values(), Counter())

    def add(self, into: dict[Any, Counter[CallOutcome]], of: Any, row: dict[str, Any]) -> None:
        into.setdefault(of, Counter())[classify_call(row["state"], row["reason"])] += row["calls"]


def load_call_counts(*, tenant_id: UUID, since: datetime, now: datetime) -> CallCounts:
    """Of the calls made since the beginning of the hour ``since``."""
    since = floor_to_hour(since)
    rolled = CallHour.objects.filter(tenant_id=tenant_id, hour__gte=since)
    found = CallCounts()
    ways = ("state", "reason")
    by_tool, by_agent = rolled.filter(agent=None), rolled.filter(tool="")
    for row in by_tool.values("hour", *ways).annotate(calls=Sum("calls")).order_by():
        found.add(found.hours, row["hour"], row)
        found.reasons[row["reason"]] += row["calls"]
    known = set(found.hours)
    for row in by_tool.values("tool", *ways).annotate(calls=Sum("calls")).order_by():
        found.add(found.tools, row["tool"], row)
    for row in by_agent.values("agent_id", *ways).annotate(calls=Sum("calls")).order_by():
        found.add(found.agents, row["agent_id"], row)
    for row in _count_live(tenant_id, _list_gaps(known, since, now)):
        found.add(found.hours, row["made_in"], row)
        found.add(found.tools, row["tool"], row)
        found.add(found.agents, row["agent_id"], row)
        found.reasons[row["reason"]] += row["calls"]
    del found.reasons[""]
    return found


def count_found_hours(
    condition: Q, *, tenant_id: UUID, by_agent: bool, since: datetime, now: datetime
) -> dict[datetime, Counter[CallOutcome]]:
    """Of the calls made since the beginning of the hour ``since`` that ``condition`` finds: it asks for tool, state and reason, or
    ``by_agent`` for agent, state and reason.
    """
    since = floor_to_hour(since)
    kind = {"tool": ""} if by_agent else {"agent": None}
    rolled = CallHour.objects.filter(tenant_id=tenant_id, hour__gte=since, **kind).order_by()
    found = CallCounts()
    for counted in rolled.filter(condition).values("hour", "state", "reason").annotate(calls=Sum("calls")):
        found.add(found.hours, counted["hour"], dict(counted))
    # An hour in which nothing was found may be one that nobody has come to.
    known = set(rolled.values_list("hour", flat=True).distinct()) if condition else set(found.hours)
    for row in _count_live(tenant_id, _list_gaps(known, since, now), condition):
        found.add(found.hours, row["made_in"], row)
    return found.hours


def _list_gaps(known: set[datetime], since: datetime, now: datetime) -> list[tuple[datetime, datetime]]:
    """What is not rolled up, hours beside each other as one stretch."""
    gaps: list[tuple[datetime, datetime]] = []
    hour = since
    while hour <= now:
        if hour not in known:
            begin = gaps.pop()[0] if gaps and gaps[-1][1] == hour else hour
            gaps.append((begin, hour + HOUR))
        hour += HOUR
    return gaps


def _count_live(
    tenant_id: UUID, gaps: list[tuple[datetime, datetime]], condition: Q | None = None
) -> list[dict[str, Any]]:
    stretches = (
        Q(
            pk__gte=lowest_id(begin - A_CLOCK_BESIDE),
            pk__lt=lowest_id(end + A_CLOCK_BESIDE),
            created_at__gte=begin,
            created_at__lt=end,
        )
        for begin, end in gaps
    )
    within = reduce(or_, stretches)  # there is one: an hour that goes on is not rolled up
    found = Invocation.objects.filter(within, condition or Q(), tenant_id=tenant_id)
    rows = found.annotate(made_in=TruncHour("created_at", tzinfo=UTC))
    groups = rows.values("made_in", "tool", "agent_id", "state", "reason").annotate(calls=Count("pk")).order_by()
    return [dict(each) for each in groups]


def measure_latency(*, tenant_id: UUID, since: datetime) -> LatencyPercentiles:
    """How long the newest calls took that ran and waited for nobody."""
    newest = Invocation.objects.filter(tenant_id=tenant_id, pk__gte=lowest_id(since)).order_by("-pk").values("pk")
    rows = Invocation.objects.filter(
        pk__in=newest[:LOOKED_AT], attempt__gt=0, held_until=None, finished_at__isnull=False
    )
    times = rows.order_by("-pk").values_list("created_at", "finished_at")[:MEASURED]
    return LatencyPercentiles.of((finished - created).total_seconds() * 1000 for created, finished in times if finished)
