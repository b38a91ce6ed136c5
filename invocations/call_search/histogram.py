"""Histogram of a search: when the calls were made that it finds, and how they ended.

Where the terms allow it, hours that were counted before are added up (:mod:`invocations.call_hours`); otherwise the sample is drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext

from evidence.search.language import Query, Term, parse_moment
from invocations.call_hours.counts import count_found_hours
from invocations.call_hours.rollup import HOUR, KEPT, floor_to_hour
from invocations.call_outcomes import TONES, CallOutcome
from invocations.call_search.selectors import OF_TIME, build_condition
from kernel.components.moments import begin_of_day, head_times, write_moment
from kernel.components.stacked_chart import ChartColumn, Series, StackedChart, lay_out_chart, write_figures

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo
    from uuid import UUID

    from invocations.call_search.sample import CallSample

DAY = timedelta(days=1)
USUAL = 7 * DAY  # drawn when the search says no time
MOST_COLUMNS = 48
HEIGHT = 130
STEPS = tuple(timedelta(minutes=each) for each in (1, 5, 15, 60, 180, 360, 1440, 7 * 1440, 30 * 1440, 365 * 1440))
IN_HOURS = ("tool", "agent", "outcome", "state", "code")  # qualifiers of which counted hours know
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time that is drawn: columns from each of its ``edges`` to the next. ``asked``: the search says it.

    ``step`` is the length of a column; one of days is shorter or longer when clocks are changed in it.
    """

    edges: tuple[datetime, ...]
    step: timedelta
    asked: bool

    @property
    def since(self) -> datetime:
        return self.edges[0]

    @property
    def until(self) -> datetime:
        return self.edges[-1]

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    def place_of(self, moment: datetime) -> int | None:
        """The column into which a moment falls."""
        return bisect_right(self.edges, moment) - 1 if self.since <= moment < self.until else None


def choose_stretch(query: Query, *, now: datetime, zone: tzinfo) -> Stretch:
    """Whole columns, at most 48; of days, from midnight to midnight. No call was made before :data:`EARLIEST`, or will have been."""
    after = [parse_moment(term.value, now=now, zone=zone) for term in query.of("after")]
    before = [parse_moment(term.value, now=now, zone=zone) for term in query.of("before")]
    until = max(min([*before, now]), EARLIEST)
    since = min(max([*after, EARLIEST]), until) if after else until - USUAL
    span = max(until - since, STEPS[0])
    step = next((each for each in STEPS if span <= each * (MOST_COLUMNS - 1)), STEPS[-1])
    return Stretch(_cut(_floor(since, step, zone), until, step, zone), step, bool(after))


def _cut(begin: datetime, until: datetime, step: timedelta, zone: tzinfo) -> tuple[datetime, ...]:
    edges, first = [begin], begin.astimezone(zone).date()
    # Each day is counted from the first: the edge before it may be at 01:00, where clocks have skipped midnight.
    later = (begin_of_day(first + n * step, zone) if step >= DAY else begin + n * step for n in count(1))
    while len(edges) == 1 or (edges[-1] < until and len(edges) <= MOST_COLUMNS):
        if (edge := next(later)) > edges[-1]:  # a zone may skip a whole day
            edges.append(edge)
    return tuple(edges)


def _floor(moment: datetime, step: timedelta, zone: tzinfo) -> datetime:
    local = moment.astimezone(zone)
    if step >= DAY:
        return begin_of_day(local.date(), zone)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight + (local - midnight) // step * step).astimezone(UTC)


def can_count_hours(query: Query, stretch: Stretch, now: datetime) -> bool:
    names = {term.name for term in query.terms} - set(OF_TIME)
    # Each of the edges: clocks may be changed by half an hour between two of them.
    whole = stretch.step >= HOUR and all(floor_to_hour(edge) == edge for edge in stretch.edges)
    return whole and names <= set(IN_HOURS) and not {"tool", "agent"} <= names and stretch.since > now - KEPT + HOUR


def count_columns(
    query: Query, sample: CallSample, stretch: Stretch, *, tenant_id: UUID, now: datetime
) -> list[Counter[CallOutcome]]:
    """By column; exact where counted hours say it, otherwise of the sample. The edges of a time within an hour are not cut off."""
    columns: list[Counter[CallOutcome]] = [Counter() for _ in range(stretch.count)]
    if can_count_hours(query, stretch, now):
        by_agent = any(term.name == "agent" for term in query.terms)
        hours = count_found_hours(
            build_condition(query, tenant_id), tenant_id=tenant_id, by_agent=by_agent, since=stretch.since, now=now
        )
        for hour, counted in hours.items():
            if (place := stretch.place_of(hour)) is not None:
                columns[place].update(counted)
        return columns
    for made_at, outcome in sample.times:
        if (place := stretch.place_of(made_at)) is not None:
            columns[place][outcome] += 1
    return columns


def at_time(query: Query, since: datetime, until: datetime) -> Query:
    """The same search within another time."""
    others = [term for term in query.terms if term.name not in ("after", "before")]
    return Query((*others, Term("after", write_moment(since)), Term("before", write_moment(until))))


def draw_histogram(
    query: Query, columns: list[Counter[CallOutcome]], stretch: Stretch, *, link: Callable[[Query], str]
) -> StackedChart:
    total: Counter[CallOutcome] = sum(columns, Counter())
    shown = [each for each in CallOutcome if total[each]] or [CallOutcome.SUCCEEDED]
    everything = at_time(query, stretch.since, stretch.until)
    series = [
        Series(str(each), each.label, TONES[each], total[each], link(with_outcome(everything, each))) for each in shown
    ]
    return lay_out_chart(
        [_build_column(query, stretch, place, amounts, shown, link) for place, amounts in enumerate(columns)],
        series,
        label=gettext("When the calls that were found were made, by how they ended: %(figures)s.")
        % {"figures": write_figures(series)},
        heading=head_times(stretch.since, stretch.until),
        height=HEIGHT,
        brush_url=link(Query(tuple(term for term in query.terms if term.name not in ("after", "before")))),
    )


def with_outcome(query: Query, outcome: CallOutcome) -> Query:
    others = tuple(term for term in query.terms if term.name != "outcome" or term.negated)
    return Query((*others, Term("outcome", str(outcome))))


def _build_column(
    query: Query,
    stretch: Stretch,
    place: int,
    amounts: Counter[CallOutcome],
    shown: list[CallOutcome],
    link: Callable[[Query], str],
) -> ChartColumn:
    begin, end = stretch.edges[place], stretch.edges[place + 1]
    first, last = timezone.localtime(begin), timezone.localtime(end)
    in_days, of_it = stretch.step >= DAY, at_time(query, begin, end)
    return ChartColumn(
        caption=date_format(first, _choose_caption(stretch)),
        title=date_format(first, "Y-m-d")
        if stretch.step == DAY
        else f"{date_format(first, 'm-d H:i')}–{date_format(last, 'm-d' if in_days else 'H:i')}",
        begin=write_moment(begin),
        end=write_moment(end),
        url=link(of_it),
        amounts={str(each): amounts[each] for each in shown},
        urls={str(each): link(with_outcome(of_it, each)) for each in shown},
    )


def _choose_caption(stretch: Stretch) -> str:
    """As much as tells one column from the next that has a caption."""
    whole = stretch.count * stretch.step
    return "H:i" if whole <= DAY + HOUR else "m-d H:i" if whole <= 4 * DAY else "m-d"
