"""Problem shapes: how an answer that is a problem reads, by the address that was asked.

Most addresses answer with the hub's envelope. Those that speak a format of others answer with that format's own, also where the
request never reaches a view: too large a body, too large a head, no such address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from kernel.problems import Problem

# (Status, body, headers) of a problem.
ProblemShape = Callable[["Problem"], tuple[int, dict[str, Any], dict[str, str]]]

# By how an address begins, how it ends, and a header that has to be there.
_shapes: dict[tuple[str, str, str], ProblemShape] = {}


def add_problem_shape(prefix: str, shape: ProblemShape, *, endings: Iterable[str] = ("",), header: str = "") -> None:
    """Let all addresses that begin like this answer in a shape of their own; of some only those with one of the ``endings``, or
    whoever sends a ``header``.
    """
    _shapes.update(((prefix, each, header), shape) for each in endings)


def find_problem_shape(path: str, headers: Container[str] = ()) -> ProblemShape | None:
    """That of which most is known: the longest beginning first. None for the envelope."""
    known = [
        each
        for each in _shapes
        if path.startswith(each[0]) and path.endswith(each[1]) and (not each[2] or each[2] in headers)
    ]
    return _shapes[max(known, key=lambda each: tuple(map(len, each)))] if known else None
