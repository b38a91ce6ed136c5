"""Holders: the parts of the hub that keep values of persons, and who takes them away.

Evidence knows no calls. Each part that keeps values says so here when it is loaded: how many there are of a person, how they go,
and, by classes that a tenant may set a time for, how they go when they are old. Whatever is removed is counted by its name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from evidence.models import SnapshotKind, SubjectKey
    from kernel.principal import Principal


@dataclass(frozen=True, slots=True)
class ErasureSubject:
    """A person of a tenant by keyed hash. ``key``: theirs, once it is destroyed; calls that were made since are not meant.

    ``erasure``: by which they go, as facts name it; empty when they are only counted.
    """

    tenant_id: UUID
    subject: str
    key: SubjectKey | None = None
    erasure: str = ""


class Holder(Protocol):
    def count(self, who: ErasureSubject) -> Counter[str]:
        """What there is now."""

    def end_open(self, who: ErasureSubject, *, by: Principal) -> bool:
        """Ask for the end of what goes on; true while something does."""

    def remove(self, who: ErasureSubject, *, limit: int) -> Counter[str]:
        """Take the next rows away, in the transaction of the caller; nothing when none is left."""


@dataclass(frozen=True, slots=True)
class RetentionClass:
    """A class of values with a time of its own. ``remove``: at most so many of a tenant that are older; returns how many went.

    ``kinds``: which stored values are of it, if any are.
    """

    label: str
    remove: Callable[[UUID, datetime, int], int]
    kinds: tuple[SnapshotKind, ...] = ()


ERASED = "(erased)"  # stands where somebody had written something
HOLDERS: list[Holder] = []
CLASSES: dict[str, RetentionClass] = {}
# What goes without a time that a tenant sets, once it may: how much of it went now.
AFTERWARDS: list[Callable[[], int]] = []


def count_holdings(who: ErasureSubject) -> Counter[str]:
    return sum((each.count(who) for each in HOLDERS), Counter[str]())
