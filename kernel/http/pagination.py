"""Pagination: how a list continues, without counting and without skipping.

Rows are ordered by id, newest first; a UUIDv7 sorts by time. The cursor is the wire id of the last row seen.
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


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """``next`` is the cursor of the following page; empty on the last one."""

    rows: list[M]
    next: str


def fetch_page(queryset: QuerySet[M], *, prefix: str, after: str = "", limit: int = PAGE_SIZE) -> Page[M]:
    if after:
        try:
            queryset = queryset.filter(pk__lt=decode(prefix, after))
        except ValueError as error:
            raise SchemaInvalid(
                "The page cursor `after` is not one that this list gave out.",
                details={"findings": [{"pointer": "/after", "message": str(error)}]},
            ) from error
    rows = list(queryset.order_by("-pk")[: limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    return Page(rows=rows, next=encode(prefix, rows[-1].pk) if more else "")
