"""Offers: what a source has to choose from, as a list that is searched, filtered and paged by its address."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PAGE_ROWS = 50
MOST_TAGS = 200


@dataclass(frozen=True, slots=True)
class Offers:
    """``rows`` of page ``number``, ``found`` in all; ``filters`` as they were asked; ``tags`` of the whole source."""

    rows: list[dict[str, Any]]
    found: int
    total: int
    number: int
    filters: dict[str, str]
    tags: list[tuple[str, int]]

    @property
    def before(self) -> int:
        """The page before; 0: there is none."""
        return self.number - 1

    @property
    def after(self) -> int:
        return self.number + 1 if self.number * PAGE_ROWS < self.found else 0

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE_ROWS + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return (self.number - 1) * PAGE_ROWS + len(self.rows)


def select_offers(offered: Sequence[dict[str, Any]], asked: Mapping[str, str]) -> Offers:
    filters = {name: str(asked.get(name, ""))[:200] for name in ("q", "tag", "effect")}
    rows = filter_offers(offered, filters)
    text = str(asked.get("page", ""))
    pages = max(1, -(-len(rows) // PAGE_ROWS))
    number = min(pages, max(1, int(text))) if text.isascii() and text.isdigit() and len(text) < 7 else 1
    tags = Counter(tag for each in offered for tag in each["tags"])
    start = (number - 1) * PAGE_ROWS
    return Offers(
        rows[start : start + PAGE_ROWS],
        len(rows),
        len(offered),
        number,
        filters,
        sorted(tags.most_common(MOST_TAGS)),
    )


def filter_offers(offered: Sequence[dict[str, Any]], filters: Mapping[str, str]) -> list[dict[str, Any]]:
    """``filters``: q, tag and effect; an empty one asks for nothing."""
    words = filters["q"].lower().split()
    return [each for each in offered if _fits(each, words, filters)]


def _fits(offer: Mapping[str, Any], words: Sequence[str], filters: Mapping[str, str]) -> bool:
    if filters["tag"] and filters["tag"] not in offer["tags"]:
        return False
    if filters["effect"] and filters["effect"] != offer["effect"]:
        return False
    text = " ".join([offer["name"], offer["place"], offer["text"]]).lower()
    return all(word in text for word in words)
