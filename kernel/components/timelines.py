"""Timelines: how people read what happened, day by day, the beginning of a thing together with its end.

Works on facts as they are; knows of them only their columns, and what wire ids lead to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.urls import NoReverseMatch, get_script_prefix, reverse
from django.utils import timezone

from kernel.components import labels
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

NIL = UUID(int=0)
GIVEN = ("reason", "note", "purpose")
BEGAN, ENDED = ".began", ".ended"
TOOL_URN = "soul:tool:"
# What a wire id leads to, by its prefix.
PAGES = {
    "inv": "invocation",
    "cns": "consent",
    "chn": "chain",
    "run": "agent_run",
    "grt": "grant",
    "agt": "agent",
    "pol": "policy",
    "bud": "budget",
    "fct": "fact",
    "iss": "issuer",
    "ntf": "notification",
    "imp": "import",
}


@dataclass(slots=True)
class TimelineEntry:
    """``began``: the beginning that stands in the same line as its end. ``took_ms``: since the beginning, where that is known.
    ``again``: what follows and says the same of the same, such as a value that was revealed six times; it is folded.
    """

    fact: Any
    began: Any = None
    took_ms: float | None = None
    again: list[TimelineEntry] = field(default_factory=list)

    @property
    def look(self) -> dict[str, Any]:
        tone, icon, label = labels.FACT.get(self.fact.kind, ("quiet", "circle-dot", self.fact.kind))
        if self.fact.kind.endswith(ENDED) and self.outcome in labels.STATUS:
            tone, icon, _label = labels.STATUS[self.outcome]
        return {"tone": tone, "icon": icon, "label": label}

    @property
    def outcome(self) -> str:
        return labels.read_outcome(self.fact.outcome, self.fact.reason)

    @property
    def why(self) -> str:
        """The reason that a person gave for a decision. Older leaves hold it; it is sealed beside those of today."""
        said, leaf = getattr(self.fact, "words", None), bytes(self.fact.leaf)
        if not said and any(f'"{name}":'.encode() in leaf for name in GIVEN):
            said = self.fact.content.get("data", {})
        return str(next((said[name] for name in GIVEN if said.get(name)), "")) if said else ""

    @property
    def shown(self) -> dict[str, Any]:
        """What its row shows, each worked out once. In a dict, where templates look first."""
        fact, began = self.fact, self.began
        return self.look | {
            "url": find_page_url(encode("fct", fact.pk)),
            "at": fact.occurred_at,
            "actor": fact.actor_id,
            "outcome": self.outcome,
            "reason": fact.reason,
            "why": self.why,
            "problem": getattr(fact, "leaf_problem", None),
            "subject": fact.subject,
            "subject_url": find_page_url(fact.subject),
            "tool": fact.tool if fact.invocation_id else "",
            "began": {"at": began.occurred_at, "actor": began.actor_id} if began else None,
            "took_ms": self.took_ms,
            "hash": fact.leaf_hash,
            "again": [each.shown for each in self.again],
        }

    def repeats(self, other: TimelineEntry) -> bool:
        """Whether the same was done to the same thing by the same."""
        one, two = self.fact, other.fact
        same = (one.kind, one.subject, one.actor_id, one.outcome) == (two.kind, two.subject, two.actor_id, two.outcome)
        return same and not one.kind.endswith((BEGAN, ENDED))


@dataclass(slots=True)
class TimelineDay:
    date: date
    entries: list[TimelineEntry] = field(default_factory=list)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [entry.shown for entry in self.entries]


def find_page_url(subject: str) -> str:
    """The page of what a fact is about; empty where there is none."""
    prefix = subject.partition("_")[0]
    try:
        if subject.startswith(TOOL_URN):
            return reverse("tool", args=[subject.removeprefix(TOOL_URN)])
        if prefix not in PAGES:
            return ""
        decode(prefix, subject)
        return _page_of_nil(prefix, get_script_prefix()).replace(encode(prefix, NIL), subject)
    except (ValueError, NoReverseMatch):
        return ""


@cache
def _page_of_nil(prefix: str, _script: str) -> str:
    """Django looks for an address among all patterns; a page of rows has a hundred of the same form."""
    return reverse(PAGES[prefix], args=[NIL])


def group_by_day(facts: Iterable[Any]) -> list[TimelineDay]:
    """In the order of ``facts``, whichever it is. A beginning and its end that are neighbours become one entry."""
    rows = list(facts)
    begun = {_thing(row): row for row in rows if row.kind.endswith(BEGAN)}
    entries: list[TimelineEntry] = []
    for row in rows:
        entry = TimelineEntry(row)
        if row.kind.endswith(ENDED) and (began := begun.get(_thing(row))):
            entry.took_ms = (row.occurred_at - began.occurred_at).total_seconds() * 1000
        before = entries[-1] if entries else None
        if before is not None and before.began is None and _thing(before.fact) == _thing(row):
            if row.kind.endswith(ENDED) and before.fact.kind.endswith(BEGAN):
                entries.pop()
                entry.began = before.fact
            elif row.kind.endswith(BEGAN) and before.fact.kind.endswith(ENDED):
                before.began = row
                continue
        entries.append(entry)
    days: list[TimelineDay] = []
    for entry in entries:
        date = timezone.localdate(entry.fact.occurred_at)
        if not days or days[-1].date != date:
            days.append(TimelineDay(date))
        neighbour = days[-1].entries[-1] if days[-1].entries else None
        if neighbour is not None and neighbour.repeats(entry):
            neighbour.again.append(entry)
        else:
            days[-1].entries.append(entry)
    return days


def _thing(fact: Any) -> tuple[str, str]:
    """What begins and ends."""
    return fact.kind.rpartition(".")[0], fact.subject
