"""Call figures: how the calls of a day or a week went, as a chart, sums and the busiest, each with the list of what it counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy

from access.models import Agent
from invocations.call_hours.counts import load_call_counts, measure_latency
from invocations.call_hours.rollup import HOUR, floor_to_hour
from invocations.call_links import link_calls, link_slower_calls
from invocations.call_outcomes import TONES, CallOutcome
from invocations.service_levels.call_uses import build_call_use
from kernel.components.moments import head_times, write_moment
from kernel.components.stacked_chart import ChartColumn, Series, StackedChart, lay_out_chart, write_figures
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from datetime import tzinfo

    from django.utils.functional import _StrPromise

    from invocations.call_hours.counts import CallCounts
    from invocations.service_levels.call_uses import CallUse
    from kernel.principal import Principal

BUSIEST, MOST_REASONS = 5, 8
QUARTERS = (0, 6, 12, 18)  # of a day, one a column
ALWAYS = (CallOutcome.SUCCEEDED, CallOutcome.REFUSED, CallOutcome.DENIED, CallOutcome.FAILED, CallOutcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Period:
    """The last ``hours``, an hour in a column; or, of ``days``, today and those before it, as the reader's calendar has them."""

    key: str
    label: str | _StrPromise
    hours: int = 0
    days: int = 0

    def cut(self, now: datetime, zone: tzinfo) -> list[datetime]:
        """The begin of each column, and the end of the last. Calls are counted by whole hours of UTC: a column begins at the first of
        them that does not begin before it.
        """
        if self.hours:
            first = floor_to_hour(now) - HOUR * (self.hours - 1)
            return [first + HOUR * place for place in range(self.hours + 1)]
        today = now.astimezone(zone).date()
        days = (today - timedelta(days=ago) for ago in range(self.days - 1, -2, -1))
        edges = (datetime.combine(day, time(hour), zone) for day in days for hour in QUARTERS)
        found: list[datetime] = []
        for edge in map(ceil_to_hour, edges):
            if not found or edge > found[-1]:  # clocks may skip one
                found.append(edge)
            if edge > now:
                break
        return found


def ceil_to_hour(moment: datetime) -> datetime:
    exact = moment.astimezone(UTC)  # a time that clocks skip equals none of another zone
    floor = floor_to_hour(exact)
    return floor if floor == exact else floor + HOUR


PERIODS = {
    each.key: each
    for each in (Period("24h", gettext_lazy("24 hours"), hours=24), Period("7d", gettext_lazy("7 days"), days=7))
}


def build_call_figures(by: Principal, period: Period, now: datetime) -> dict[str, Any]:
    """Context: chart, calendar (a sentence that says which days they are; empty: the last hours), total,
    figures ({label, n, url, tone} of each outcome), p50_ms, p50_url (of the calls that took longer), p95_ms, p95_url,
    busiest_tools, busiest_agents, reasons ({problem, times, url}), since.
    """
    edges = period.cut(now, timezone.get_current_timezone())
    since = edges[0]
    counts = load_call_counts(tenant_id=by.tenant_id, since=since, now=now)
    latency = measure_latency(tenant_id=by.tenant_id, since=since)
    names = dict(Agent.objects.filter(tenant_id=by.tenant_id, pk__in=list(counts.agents)).values_list("pk", "name"))
    agents = {names[pk]: counted for pk, counted in counts.agents.items() if pk in names}
    return {
        "chart": _draw_chart(counts, period, edges),
        "calendar": describe_days(since) if period.days else "",
        "total": counts.total.total(),
        "all_url": link_calls(since),
        "open": counts.total[CallOutcome.OPEN],
        "p50_ms": latency.p50_ms,
        "p50_url": link_slower_calls(since, latency.p50_ms),
        "p95_ms": latency.p95_ms,
        "p95_url": link_slower_calls(since, latency.p95_ms),
        "busiest_tools": _list_busiest(counts.tools, since, "tool"),
        "busiest_agents": _list_busiest(agents, since, "agent"),
        "reasons": [
            {"problem": find_problem_class(reason), "times": times, "url": link_calls(since, reason=reason)}
            for reason, times in counts.reasons.most_common(MOST_REASONS)
        ],
        "since": since,
    }


def _list_busiest(found: dict[str, Counter[CallOutcome]], since: datetime, filter_name: str) -> list[CallUse]:
    rows = sorted(found.items(), key=lambda each: (-each[1].total(), each[0]))[:BUSIEST]
    return [build_call_use(name, counted, since, **{filter_name: name}) for name, counted in rows]


def describe_days(since: datetime) -> str:
    """Of which moments the days are, in the reader's time zone."""
    first = timezone.localtime(since)
    said = {"zone": timezone.get_current_timezone_name(), "begin": date_format(first, "H:i")}
    if first.hour or first.minute:
        return (
            gettext(
                "Today and the six days before, a quarter of a day in each column. Calls are counted by whole hours of UTC, "
                "so these days begin at %(begin)s in your time zone (%(zone)s)."
            )
            % said
        )
    return (
        gettext("Today and the six days before, from midnight to midnight (%(zone)s), six hours in each column.") % said
    )


def _draw_chart(counts: CallCounts, period: Period, edges: list[datetime]) -> StackedChart:
    total, since = counts.total, edges[0]
    shown = [each for each in CallOutcome if each in ALWAYS or total[each]]
    series = [
        Series(str(each), each.label, TONES[each], total[each], link_calls(since, outcome=str(each))) for each in shown
    ]
    columns = []
    for begin, end in pairwise(edges):
        hours = [counts.hours.get(begin + HOUR * each, Counter()) for each in range((end - begin) // HOUR)]
        amounts: Counter[CallOutcome] = sum(hours, Counter())
        columns.append(_build_column(period, begin, end, amounts, shown))
    return lay_out_chart(
        columns,
        series,
        label=gettext("Calls of the last %(period)s by how they ended: %(figures)s.")
        % {"period": period.label, "figures": write_figures(series)},
        heading=head_times(since, edges[-1]),
        brush_url=reverse("invocations"),
    )


def _build_column(
    period: Period, begin: datetime, end: datetime, amounts: Counter[CallOutcome], shown: list[CallOutcome]
) -> ChartColumn:
    first, last = timezone.localtime(begin), timezone.localtime(end)
    return ChartColumn(
        caption=date_format(first, "H:i") if period.hours else date_format(first, "m-d"),
        title=f"{date_format(first, 'm-d H:i')}–{date_format(last, 'H:i')}",
        begin=write_moment(begin),
        end=write_moment(end),
        url=link_calls(begin, end),
        amounts={str(each): amounts[each] for each in shown},
        urls={str(each): link_calls(begin, end, outcome=str(each)) for each in shown},
    )
