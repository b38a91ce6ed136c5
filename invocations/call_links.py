"""Call links: the address of the list of the calls that a figure counts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse

from kernel.components.moments import write_moment

if TYPE_CHECKING:
    from datetime import datetime


def link_calls(since: datetime, until: datetime | None = None, **filters: str) -> str:
    """The list of the calls of a time."""
    asked = {"from": write_moment(since)} | ({"to": write_moment(until)} if until else {}) | filters
    return f"{reverse('invocations')}?{urlencode(asked)}"


def link_slower_calls(since: datetime, ms: float | None, **filters: str) -> str:
    """Those that took longer than that; all of them, where that is not known."""
    slower = {} if ms is None else {"q": f"took:>{round(ms)}ms"}
    return link_calls(since, None, **slower, **filters)
