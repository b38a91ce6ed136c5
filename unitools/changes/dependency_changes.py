"""Dependency changes: what changed in what a tool asks for, and in the lock of what it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.changes.comparisons import Changes, Keyed, compare_keyed_entries
from unitools.changes.kinds import make_change
from unitools.dependency_locks import LockedPackage, read_dependency_name, read_lock_entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unitools.npm_locks import NpmPackage


def compare_dependencies(old: list[str], new: list[str]) -> Changes:
    def named(requirements: list[str]) -> Keyed:
        return {read_dependency_name(each): (at, each) for at, each in enumerate(requirements)}

    yield from compare_keyed_entries("dependencies", "/dependencies", named(old), named(new))


def compare_dependency_lock(old: list[str], new: list[str]) -> Changes:
    """Lines of locks, from wherever: what was found by the hub is compared by this, too."""
    before, after = _entries(old), _entries(new)
    for key, (at, entry) in after.items():
        pointer = f"/dependency_lock/{at}"
        if key not in before:
            yield make_change("lock.added", pointer, None, entry.line)
            continue
        former = before[key][1]
        if former != entry:
            yield make_change(_kind_of_lock(former, entry), pointer, former.line, entry.line)
    for key, (at, entry) in before.items():
        if key not in after:
            yield make_change("lock.removed", f"/dependency_lock/{at}", entry.line, None)


def _entries(lines: Iterable[str]) -> dict[tuple[str, str], tuple[int, LockedPackage | NpmPackage]]:
    return {(entry.name, entry.marker): (at, entry) for at, entry in enumerate(map(read_lock_entry, lines))}


def _kind_of_lock(old: LockedPackage | NpmPackage, new: LockedPackage | NpmPackage) -> str:
    if old.version != new.version:
        return "lock.changed"
    was, is_now = set(old.hashes), set(new.hashes)
    return "lock.files_added" if was < is_now else "lock.files_removed" if is_now < was else "lock.files_replaced"


def is_lock(value: Any) -> bool:
    try:
        return (
            isinstance(value, list)
            and all(isinstance(each, str) for each in value)
            and len(_entries(value)) == len(value)
        )
    except ValueError:
        return False
