"""Stacked chart: amounts over a time, each column split by what became of them, each part a link to what it counts.

Laid out here, drawn as SVG by ``components/stacked_chart.html``: across in per cent, so that it fills any width, up in units of the
drawing. Geometry is in attributes, for the CSP forbids styles. The same figures stand in a table behind it, for who does not see it,
uses no pointer, or prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.components.labels import MARKS
from kernel.components.numbers import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.utils.functional import _StrPromise

HEIGHT, TOP, BOTTOM = 220, 14, 22
LEFT = 4.5  # per cent, for the figures of the lines
GAP = 0.18  # of a column's width, between it and the next
LEAST = 1.5  # a part is never flatter than this, or nobody would see it
MOST_CAPTIONS = 8


@dataclass(frozen=True, slots=True)
class Series:
    """What the parts of one kind stand for. ``tone``: its colour; ``url``: all of it."""

    key: str
    label: str | _StrPromise
    tone: str
    total: int
    url: str


@dataclass(frozen=True, slots=True)
class ChartColumn:
    """``amounts`` and ``urls``: by series. ``begin`` and ``end``: as a list is asked for that time."""

    caption: str
    title: str
    begin: str
    end: str
    url: str
    amounts: dict[str, int]
    urls: dict[str, str]

    @property
    def total(self) -> int:
        return sum(self.amounts.values())


@dataclass(frozen=True, slots=True)
class ChartPart:
    series: Series
    amount: int
    url: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    column: ChartColumn
    x: float
    width: float
    step_x: float
    step: float
    parts: tuple[ChartPart, ...]
    captioned: bool

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 3)

    @property
    def cells(self) -> list[tuple[int, str]]:
        """For the table: amount and link, in the order of the series."""
        return [(self.column.amounts.get(key, 0), url) for key, url in self.column.urls.items()]


@dataclass(frozen=True, slots=True)
class StackedChart:
    """``label``: in a sentence what it shows. ``brush_url``: the list that a chosen stretch of time is asked of."""

    label: str
    heading: str
    series: tuple[Series, ...]
    columns: tuple[PlacedColumn, ...]
    lines: tuple[tuple[float, int], ...]
    brush_url: str
    height: int
    base: int
    room: int
    top: int = field(default=TOP)

    @property
    def total(self) -> int:
        return sum(each.column.total for each in self.columns)


def lay_out_chart(
    columns: Sequence[ChartColumn],
    series: Sequence[Series],
    *,
    label: str,
    heading: str,
    brush_url: str = "",
    height: int = HEIGHT,
) -> StackedChart:
    """``heading``: of the column of the table that says when."""
    base, room = height - BOTTOM, height - TOP - BOTTOM
    top = _round_up(max((column.total for column in columns), default=0))
    step = (100 - LEFT) / max(len(columns), 1)
    every = -(-len(columns) // MOST_CAPTIONS)
    placed = []
    for place, column in enumerate(columns):
        parts, y = [], float(base)
        for each in series:
            amount = column.amounts.get(each.key, 0)
            if not amount:
                continue
            flat = max(amount / top * room, LEAST)
            y -= flat
            parts.append(ChartPart(each, amount, column.urls[each.key], round(max(y, 0), 2), round(flat, 2)))
        placed.append(
            PlacedColumn(
                column,
                x=round(LEFT + (place + GAP / 2) * step, 3),
                width=round(step * (1 - GAP), 3),
                step_x=round(LEFT + place * step, 3),
                step=round(step, 3),
                parts=tuple(parts),
                captioned=place % every == every // 2,
            )
        )
    lines = tuple((round(base - share * room, 1), round(top * share)) for share in (0.5, 1.0))
    return StackedChart(
        label=label,
        heading=heading,
        series=tuple(series),
        columns=tuple(placed),
        lines=lines if top > 1 else lines[1:],
        brush_url=brush_url,
        height=height,
        base=base,
        room=room,
    )


def write_figures(series: Sequence[Series]) -> str:
    """What a chart shows, in words."""
    return str(MARKS["comma"]).join(f"{each.label} {format_number(each.total)}" for each in series)


def _round_up(amount: int) -> int:
    """The 1, 2, 4, 6 or 8 times a power of ten that is not below it: a half of each is a whole number from 2 on."""
    power = 1
    while power * 10 < amount:
        power *= 10
    return next((power * factor for factor in (1, 2, 4, 6, 8, 10) if power * factor >= amount), power * 10)
