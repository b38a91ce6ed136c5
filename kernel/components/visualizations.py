"""Visualizations: how a JSON value or a series of numbers is drawn, without a script.

Trees fold by ``<details>``. Charts are SVG whose geometry is in attributes, because the CSP forbids styles.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from kernel.components.diffs import draw_invisible
from kernel.components.limits import limit_amount

if TYPE_CHECKING:
    from collections.abc import Sequence

EMPTY = SafeString("")
UNITS = ("_bytes", "_ms", "_s")  # what a name ends with that says them
MAX_NODES = 2000
MANY_NODES = 200


def json_tree(value: Any, open_depth: int = 2) -> SafeString:
    """A folding tree. More than 200 nodes start folded; after 2,000 the rest is only counted, for the page's sake."""
    total = _count(value)
    budget = [MAX_NODES]
    tree = _node(None, value, 0, min(open_depth, 1) if total > MANY_NODES else open_depth, budget)
    rest = EMPTY
    if total > MAX_NODES:
        rest = format_html(
            '<p class="j-h">{}</p>', _("%(n)s more values are not shown here.") % {"n": total - MAX_NODES}
        )
    return format_html('<div class="json">{}{}</div>', tree, rest)


def _count(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_count(child) for child in children)


def _node(key: str | None, value: Any, depth: int, open_depth: int, budget: list[int]) -> SafeString:
    budget[0] -= 1
    name = EMPTY
    if key is not None:
        name = format_html('<span class="j-p">{}</span><span class="j-c">: </span>', draw_invisible(_json(key)))
    if not isinstance(value, (dict, list)) or not value:
        kind = "s" if isinstance(value, str) else "k" if value is None or isinstance(value, (bool, dict, list)) else "n"
        amount = EMPTY
        if isinstance(value, (int, float)) and kind == "n" and key and key.endswith(UNITS):  # in people's units as well
            amount = format_html(' <span class="j-h">{}</span>', limit_amount(key, value))
        return format_html('{}<span class="j-{}">{}</span>{}', name, kind, draw_invisible(_json(value)), amount)
    items: list[tuple[str | None, Any]]
    if isinstance(value, dict):
        items = [(str(k), v) for k, v in value.items()]
        start, end, hint = "{", "}", ngettext("%(n)s key", "%(n)s keys", len(items))
    else:
        items = [(None, v) for v in value]
        start, end, hint = "[", "]", ngettext("%(n)s item", "%(n)s items", len(items))
    children = []
    for child_key, child in items:
        if budget[0] <= 0:
            children.append(("…",))
            break
        children.append((_node(child_key, child, depth + 1, open_depth, budget),))
    return format_html(
        "<details{}><summary>{}{}"
        '<span class="j-h">{}</span><span class="j-z">{}</span></summary>'
        '<ul>{}</ul><span class="j-e">{}</span></details>',
        SafeString(" open") if depth < open_depth else "",
        name,
        start,
        hint % {"n": len(items)},
        end,
        format_html_join("", "<li>{}</li>", children),
        end,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---- charts: server-rendered SVG, geometry in attributes because the CSP forbids styles ------------------------------


PLOT_HEIGHT, PLOT_TOP, PLOT_BOTTOM = 200, 16, 20
PLOT_COLUMN = 0.7  # of the room between two columns
PLOT_CAPTIONS = 10  # that fit beside each other on a phone


def columns(
    rows: Sequence[tuple[str, float]], label: str, line: float | None = None, line_label: str = ""
) -> SafeString:
    """One column for each (caption, amount), as wide as its place, and a line at a level that they are held against. The figures
    are in a table beside it; ``label`` says in a sentence what it shows.
    """
    step = 100 / max(len(rows), 1)
    base, room = PLOT_HEIGHT - PLOT_BOTTOM, PLOT_HEIGHT - PLOT_BOTTOM - PLOT_TOP
    top = max([amount for _caption, amount in rows] + [line or 0]) or 1
    every = 1 if len(rows) <= PLOT_CAPTIONS else 5  # captions beside each other must not touch
    parts = []
    for place, (caption, amount) in enumerate(rows):
        height = round(amount / top * room, 1)
        over = line is not None and amount > line
        parts.append(
            format_html(
                '<rect class="{}" x="{}%" y="{}" width="{}%" height="{}" rx="2"/>',
                "a" if over else "n",
                round((place + (1 - PLOT_COLUMN) / 2) * step, 3),
                round(base - height, 1),
                round(PLOT_COLUMN * step, 3),
                height,
            )
        )
        if place % every == 0:
            parts.append(
                format_html(
                    '<text x="{}%" y="{}" text-anchor="middle">{}</text>',
                    round((place + 0.5) * step, 3),
                    PLOT_HEIGHT - 5,
                    caption,
                )
            )
    if line is not None:
        y = round(base - line / top * room, 1)
        parts.append(
            format_html(
                '<line class="limit" x1="0" x2="100%" y1="{}" y2="{}" stroke-dasharray="5 4"/><text x="0" y="{}">{}</text>',
                y,
                y,
                y - 4,
                line_label,
            )
        )
    return format_html(
        '<svg class="chart" width="100%" height="{0}" role="img" aria-label="{1}">'
        '<line x1="0" x2="100%" y1="{2}" y2="{2}"/>{3}</svg>',
        PLOT_HEIGHT,
        f"{label} {line_label}".strip(),
        base,
        format_html_join("", "{}", ((part,) for part in parts)),
    )


def share_bar(amount: float, top: float, width: int = 120, height: int = 10) -> SafeString:
    """How much an amount is of the largest one; the figure stands beside it, so it says nothing to a screen reader."""
    filled = round(amount / top * width, 1) if top else 0
    return format_html(
        '<svg class="chart" viewBox="0 0 {0} {1}" width="{0}" height="{1}" aria-hidden="true">'
        '<rect width="{0}" height="{1}" rx="3" fill="currentColor" fill-opacity="0.12"/>'
        '<rect class="n" width="{2}" height="{1}" rx="3"/></svg>',
        width,
        height,
        filled,
    )
