"""Comparisons: the ways in which a value before and after is compared, whatever field it stands in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from unitools.changes.kinds import ManifestChange, make_change

if TYPE_CHECKING:
    from collections.abc import Iterable

Changes = Iterator[ManifestChange]
Judge = Callable[[Any, Any], Changes]
Keyed = dict[str, tuple[int, Any]]  # where each stands in its list


def name_direction(kind: str, *, is_up: bool, words: tuple[str, str] = ("raised", "lowered")) -> str:
    return f"{kind}.{words[0] if is_up else words[1]}"


def compare_as_value(kind: str, pointer: str) -> Judge:
    """A value that is only the same or another."""

    def judge(old: Any, new: Any) -> Changes:
        yield make_change(kind, pointer, old, new)

    return judge


def ignore_field(old: Any, new: Any) -> Changes:
    """Where another field says it already."""
    del old, new
    yield from ()


def compare_as_set(kind: str, pointer: str) -> Judge:
    """A set, written as a list."""

    def judge(old: list[Any], new: list[Any]) -> Changes:
        yield from (
            make_change(f"{kind}.added", f"{pointer}/{at}", None, each)
            for at, each in enumerate(new)
            if each not in old
        )
        yield from (
            make_change(f"{kind}.removed", f"{pointer}/{at}", each, None)
            for at, each in enumerate(old)
            if each not in new
        )

    return judge


def compare_as_number(kind: str, pointer: str) -> Judge:
    """A number."""

    def judge(old: Any, new: Any) -> Changes:
        if old != new:
            yield make_change(name_direction(kind, is_up=new > old), pointer, old, new)

    return judge


def compare_as_flag(kind: str, pointer: str, on: str, off: str) -> Judge:
    """Yes or no."""

    def judge(old: bool, new: bool) -> Changes:
        if old is not new:
            yield make_change(f"{kind}.{on if new else off}", pointer, old, new)

    return judge


def compare_keyed_entries(kind: str, pointer: str, before: Keyed, after: Keyed) -> Changes:
    """Entries that a name tells apart."""
    for name, (index, entry) in after.items():
        if name not in before:
            yield make_change(f"{kind}.added", f"{pointer}/{index}", None, entry)
        elif before[name][1] != entry:
            yield make_change(f"{kind}.changed", f"{pointer}/{index}", before[name][1], entry)
    for name, (index, entry) in before.items():
        if name not in after:
            yield make_change(f"{kind}.removed", f"{pointer}/{index}", entry, None)


def compare_unknown_members(pointer: str, old: dict[str, Any], new: dict[str, Any], known: Iterable[str]) -> Changes:
    """Members of an object that are not known here."""
    for word in sorted((old.keys() | new.keys()) - set(known)):
        if old.get(word) != new.get(word):
            yield make_change("field.changed", f"{pointer}/{word}", old.get(word), new.get(word))
