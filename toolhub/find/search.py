"""Search for anything: what the finders of all nouns offer for a text, the console's own pages, and where to search on.

Each noun offers a few: who does not see the thing writes more of its name, or searches its list. It is asked with every key that is
pressed, so a noun that is not looked through in its time is named instead, and the others still answer.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from kernel.database.statement_limits import StatementTooLong, limit_statements
from kernel.http.finders import SHORTEST, AnyFinder, FoundThing
from toolhub.addresses import collect_navigation
from toolhub.packages import find_paths

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    from kernel.principal import Principal

MOST = 5  # of one noun
MAX_CHARACTERS = 300
NOUN_MS, ALL_MS = 500, 2_000  # that one noun may take, and all together


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """``is_too_broad``: it was not looked through in the time there is."""

    noun: str | _StrPromise
    icon: str
    things: list[FoundThing]
    is_too_broad: bool = False


@cache
def load_finders() -> list[AnyFinder]:
    """In the order in which they answer."""
    modules = [import_module(f"{package}.{path.stem}") for package, path in find_paths("finder.py")]
    found: list[AnyFinder] = [module.FINDER for module in modules]
    return sorted(found, key=lambda finder: finder.order)


def find_anything(text: str, *, by: Principal) -> list[FoundGroup]:
    """The pages first, which nobody has many of. Without a text, all pages."""
    text = " ".join(text.split())[:MAX_CHARACTERS]
    groups = [FoundGroup(gettext_lazy("Pages"), "layout-dashboard", find_pages(text, by=by))]
    if text:
        ends = time.monotonic() + ALL_MS / 1000
        groups += [_ask(finder, text, by, ends) for finder in load_finders() if by.may(finder.permission)]
        groups.append(FoundGroup(gettext_lazy("Search on"), "search", list_searches(text, by=by)))
    return [group for group in groups if group.things or group.is_too_broad]


def _ask(finder: AnyFinder, text: str, by: Principal, ends: float) -> FoundGroup:
    left_ms = min(NOUN_MS, int((ends - time.monotonic()) * 1000))
    if left_ms > 0:
        with suppress(StatementTooLong), limit_statements(left_ms):
            return FoundGroup(finder.noun, finder.icon, finder.find(text, by=by, most=MOST))
    return FoundGroup(finder.noun, finder.icon, [], is_too_broad=True)


def find_pages(text: str, *, by: Principal) -> list[FoundThing]:
    entries = [entry for _, pages in collect_navigation() for entry in pages if by.may(entry.permission)]
    return [
        FoundThing(str(entry.label), reverse(entry.address), entry.job.label)
        for entry in entries
        if text.lower() in str(entry.label).lower()
    ][: MOST if len(text) >= SHORTEST else None]


def list_searches(text: str, *, by: Principal) -> list[FoundThing]:
    """The lists that take the text as a search."""
    quoted = {"text": text[:60]}
    lists = (
        ("invocations", "invocations.view", gettext("Calls with “%(text)s”") % quoted),
        ("facts", "evidence.view", gettext("Facts with “%(text)s”") % quoted),
        ("tools", "tools.view", gettext("Tools with “%(text)s”") % quoted),
    )
    return [
        FoundThing(label, f"{reverse(name)}?{urlencode({'q': text})}")
        for name, needed, label in lists
        if by.may(needed)
    ]
