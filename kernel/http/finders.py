"""Finders: how the things of a noun are found by a part of a name, or by an id that somebody has pasted.

A package offers its noun by a module ``finder`` with a ``FINDER``; nothing else has to be told of it. Its rows are those that the one
who asks may see, so nothing that is hidden on a page can be found in another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.db.models import Q

from kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.db.models import Model, QuerySet
    from django.utils.functional import _StrPromise

    from kernel.principal import Principal

M = TypeVar("M", bound="Model")
SHORTEST = 2  # characters of a name: one letter is in most of them
MOST_WORDS = 6  # each is looked for in every column of every row


@dataclass(frozen=True, slots=True)
class FoundThing:
    """``note``: what tells it from others of its name."""

    label: str
    url: str
    note: str | _StrPromise = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finder(Generic[M]):
    """Asked on behalf of who holds ``permission``. ``rows``: those that they may see; ``match``: which of them a text means, None:
    none, and a noun without one is found by its id alone; ``show``: how a row is offered.
    """

    noun: str | _StrPromise
    icon: str
    permission: str
    order: int
    rows: Callable[[Principal], QuerySet[M]]
    show: Callable[[M], FoundThing]
    prefix: str = ""
    match: Callable[[str, Principal], Q | None] | None = None
    sort: tuple[str, ...] = ("-pk",)

    def find(self, text: str, *, by: Principal, most: int) -> list[FoundThing]:
        """By a pasted id exactly, otherwise by name."""
        if not by.may(self.permission):
            return []
        if (id := self._read_id(text)) is not None:
            return [self.show(row) for row in self.rows(by).filter(pk=id)]
        if self.match is None or len(text) < SHORTEST or (meant := self.match(text, by)) is None:
            return []
        return [self.show(row) for row in self.rows(by).filter(meant).order_by(*self.sort)[:most]]

    def _read_id(self, text: str) -> UUID | None:
        try:
            return decode(self.prefix, text) if self.prefix else None
        except ValueError:
            return None


AnyFinder = Finder[Any]


def match_words(*columns: str) -> Callable[[str, Principal], Q]:
    """Each of the first six words of the text is a part of one of the columns."""

    def match(text: str, _by: Principal) -> Q:
        words = text.split()[:MOST_WORDS]
        return reduce(and_, (reduce(or_, (Q(**{f"{each}__icontains": word}) for each in columns)) for word in words))

    return match
