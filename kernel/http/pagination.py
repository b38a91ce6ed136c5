"""Pagination: how a list continues, without counting and without skipping.

Rows are ordered by id, newest first; a UUIDv7 sorts by time. The cursor is the wire id of the last row seen, or its name where a list
is in the order of names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kernel.ids import decode, encode
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet

PAGE_SIZE, MAX_LIMIT = 50, 200
M = TypeVar("M", bound="Model")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """``next`` is the cursor of the following page; empty on the last one. ``by_name``: in the order of names, else newest first."""

    rows: list[M]
    next: str
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[R]):
    """The first rows of a list without pages. Where it ``is_cut`` there are more, which the page must say."""

    rows: list[R]
    is_cut: bool


def fetch_excerpt(queryset: QuerySet[M], most: int) -> Excerpt[M]:
    rows = list(queryset[: most + 1])
    return Excerpt(rows=rows[:most], is_cut=len(rows) > most)


def fetch_page_by_name(queryset: QuerySet[M], *, name: str, after: str = "", limit: int = PAGE_SIZE) -> Page[M]:
    """In the order of the column ``name``, which no two rows of the list have alike."""
    if after:
        queryset = queryset.filter(**{f"{name}__gt": after})
    found = fetch_excerpt(queryset.order_by(name), limit)
    return Page(rows=found.rows, next=getattr(found.rows[-1], name) if found.is_cut else "", by_name=True)


def fetch_page(queryset: QuerySet[M], *, prefix: str, after: str = "", limit: int = PAGE_SIZE) -> Page[M]:
    if after:
        try:
            queryset = queryset.filter(pk__lt=decode(prefix, after))
        except ValueError as error:
            raise SchemaInvalid(
                "The page cursor `after` is not one that this list gave out.",
                details={"findings": [{"pointer": "/after", "message": str(error)}]},
            ) from error
    found = fetch_excerpt(queryset.order_by("-pk"), limit)
    return Page(rows=found.rows, next=encode(prefix, found.rows[-1].pk) if found.is_cut else "")
