"""Turns: what takes a web process long, of which a tenant has one at a time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.cache import cache

from kernel.problems import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

TURN_S = 60  # longer than anything takes that has one; for a process that ends before it gives its turn back


@contextmanager
def taking_turn(what: str, tenant_id: UUID, *, busy: str) -> Iterator[None]:
    """So that one tenant does not hold all web processes. ``busy``: the sentence for whoever comes meanwhile."""
    key = f"{what}:{tenant_id}"
    if not cache.add(key, True, timeout=TURN_S):
        raise Conflict(busy, remedy="Try again in half a minute.")
    try:
        yield
    finally:
        cache.delete(key)
