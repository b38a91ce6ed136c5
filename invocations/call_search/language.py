"""Language of call search: that of facts, and what only calls have: how long they took, what they cost, what they ran as.

A qualifier of both means the same in both. Those that only facts have are known too, so that a query for them is told where to look.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evidence.search.language import QUALIFIERS, Qualifier, Query, parse
from invocations.call_outcomes import CallOutcome
from invocations.models import Origin, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MILLIONTHS = 1_000_000
_LENGTH = re.compile(r"([<>])([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h)")
_LENGTH_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
}
LONGEST = timedelta(days=3_650)  # longer than any call; databases know no time that is a million years away
_AMOUNT = re.compile(r"([<>])([0-9]{1,9}(?:\.[0-9]{1,6})?)")


def _one_of(values: Iterable[str]) -> Callable[[str], str]:
    known = list(dict.fromkeys(str(value) for value in values))

    def check(value: str) -> str:
        if value.lower() in known:
            return value.lower()
        near = get_close_matches(value.lower(), known, n=1, cutoff=0.5)
        raise ValueError(near[0] if near else _("one of: %(words)s") % {"words": ", ".join(known)})

    return check


def _length(value: str) -> str:
    if not _LENGTH.fullmatch(value):
        raise ValueError(_("more or less than a time: >30s, <200ms, >5m"))
    return value


def _amount(value: str) -> str:
    if not _AMOUNT.fullmatch(value):
        raise ValueError(_("more or less than an amount of money: >0.50"))
    return value


def read_length(value: str) -> tuple[bool, timedelta]:
    """Whether more is meant, and than what."""
    found = _LENGTH.fullmatch(value)
    assert found is not None  # it was checked
    return found[1] == ">", min(float(found[2]) * _LENGTH_UNITS[found[3]], LONGEST)


def read_amount(value: str) -> tuple[bool, int]:
    """Whether more is meant, and than how many millionths."""
    found = _AMOUNT.fullmatch(value)
    assert found is not None
    return found[1] == ">", round(float(found[2]) * MILLIONTHS)


OF_BOTH = (
    *("tool", "agent", "code", "chain", "run", "consent", "grant", "proposed_by", "user", "trace"),
    *("after", "before", "tenant"),
)
OF_CALLS: Mapping[str, Qualifier] = {
    "outcome": Qualifier(
        gettext_lazy("how it ended: a state, or faulty, tool_refused, abandoned, under_way"),
        "outcome:faulty",
        _one_of([*CallOutcome.values, *State.values]),
    ),
    "state": Qualifier(gettext_lazy("state of the call"), "state:queued", _one_of(State.values)),
    "problem": Qualifier(gettext_lazy("words of the problem that it met"), 'problem:"no grant"'),
    "version": Qualifier(gettext_lazy("version of the tool"), "version:2.1.*", start=str),
    "took": Qualifier(gettext_lazy("how long it took, more or less than that"), "took:>30s", _length),
    "cost": Qualifier(gettext_lazy("what it cost, more or less than that"), "cost:>0.50", _amount),
    "for": Qualifier(gettext_lazy("agent that called, or that had handed on the grant"), "for:shopper"),
    "origin": Qualifier(gettext_lazy("the way in that it came by"), "origin:mcp", _one_of(Origin.values)),
    "dry": Qualifier(gettext_lazy("whether it was a dry run: yes or no"), "dry:yes", _one_of(["yes", "no"])),
    **{name: QUALIFIERS[name] for name in OF_BOTH},
    "call": replace(QUALIFIERS["call"], means=gettext_lazy("one call")),
}
_KNOWN: Mapping[str, Qualifier] = {**QUALIFIERS, **OF_CALLS}


def parse_calls(text: str) -> Query:
    """The query that ``text`` says; raises :class:`evidence.problems.SearchInvalid`."""
    return parse(text, _KNOWN)
