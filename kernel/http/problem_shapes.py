"""Problem shapes: how an answer that is a problem reads, by the address that was asked.

Most addresses answer with the hub's envelope. Those that speak a format of others answer with that format's own, also where the
request never reaches a view: too large a body, too large a head, no such address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel.problems import Problem

# (Status, body, headers) of a problem.
ProblemShape = Callable[["Problem"], tuple[int, dict[str, Any], dict[str, str]]]

_shapes: dict[str, ProblemShape] = {}


def add_problem_shape(prefix: str, shape: ProblemShape) -> None:
    """Let all addresses that begin like this answer in a shape of their own."""
    _shapes[prefix] = shape


def find_problem_shape(path: str) -> ProblemShape | None:
    """That of the longest beginning; None for the envelope."""
    found = max((prefix for prefix in _shapes if path.startswith(prefix)), key=len, default="")
    return _shapes[found] if found else None
