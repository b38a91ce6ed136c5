"""JSON differences: where two JSON values differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.redaction.pointers import PointerVisit, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST = 200  # places that are written down; all are counted
IGNORED = "(not compared)"
_SCALARS = (str, bool, type(None))


def mask_pointers(value: Any, pointers: Sequence[str]) -> Any:
    """The value with the same thing at each place that is not compared. A place that is not there stays so."""
    for pointer in pointers:
        value = PointerVisit().change(value, parse_pointer(pointer), lambda _: IGNORED)
    return value


def find_differences(recorded: Any, replayed: Any) -> tuple[list[dict[str, Any]], int]:
    """``{pointer, recorded, replayed}`` of the first of them, one side left out where it has no such place; and how many there are."""
    found: list[dict[str, Any]] = []
    count = 0
    for each in _between(recorded, replayed, ""):
        count += 1
        if count <= MOST:
            found.append(each)
    return found, count


def _between(one: Any, other: Any, at: str) -> Iterator[dict[str, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}):
            yield from _under(one, other, name, name in one, name in other, at)
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            yield from _under(one, other, index, index < len(one), index < len(other), at)
    elif not _same(one, other):
        yield {"pointer": at, "recorded": one, "replayed": other}


def _under(one: Any, other: Any, name: Any, here: bool, there: bool, at: str) -> Iterator[dict[str, Any]]:
    pointer = f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}"
    if here and there:
        yield from _between(one[name], other[name], pointer)
    else:
        yield {"pointer": pointer} | ({"recorded": one[name]} if here else {"replayed": other[name]})


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: 1 and 1.0 are one number, true is none."""
    if isinstance(one, _SCALARS) or isinstance(other, _SCALARS):
        return type(one) is type(other) and bool(one == other)
    return bool(one == other)
