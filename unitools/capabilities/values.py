"""Values: what may be done at one node, as actions, or as ports by scheme and method.

Both are plain sets with a finite description. They meet, join and differ exactly, and equal sets compare equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Span = tuple[int, int]
Spans = tuple[Span, ...]  # sorted, disjoint, with a gap between neighbours
Lane = tuple[str, str]  # (scheme, method)

SCHEMES = ("http", "https")
PROTOCOLS = ("tcp", "udp")  # of addresses, which have no methods
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
PORTS: Span = (1, 65535)


class Value(Protocol):
    """A set of things that may be done. Empty is false."""

    def __bool__(self) -> bool: ...
    def meet(self, other: Self) -> Self: ...
    def join(self, other: Self) -> Self: ...
    def minus(self, other: Self) -> Self: ...
    def pieces(self) -> list[Self]:
        """What is named by a text of its own, in the order of the texts."""


class Actions:
    """A set of words, for example ``read`` and ``write``."""

    __slots__ = ("words",)

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.words = frozenset(words)

    def __bool__(self) -> bool:
        return bool(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Actions) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"Actions({sorted(self.words)})"

    def meet(self, other: Self) -> Self:
        return type(self)(self.words & other.words)

    def join(self, other: Self) -> Self:
        return type(self)(self.words | other.words)

    def minus(self, other: Self) -> Self:
        return type(self)(self.words - other.words)

    def pieces(self) -> list[Self]:
        return [type(self)((word,)) for word in sorted(self.words)]


def merge_spans(pairs: Iterable[Span]) -> Spans:
    """The normal form: neighbours are one span, and an inverted pair is none."""
    found: list[Span] = []
    for low, high in sorted(pairs):
        if low > high:
            continue
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def _common(a: Spans, b: Spans) -> Spans:
    if a == b:
        return a
    return merge_spans((max(low, start), min(high, end)) for low, high in a for start, end in b)


def _without(a: Spans, b: Spans) -> Spans:
    left = list(a)
    for start, end in b:
        left = [
            piece
            for low, high in left
            for piece in ((low, min(high, start - 1)), (max(low, end + 1), high))
            if piece[0] <= piece[1]
        ]
    return merge_spans(left)


class NetworkAccess:
    """For each (scheme, method) the ports that may be used."""

    __slots__ = ("lanes",)

    def __init__(self, lanes: Mapping[Lane, Spans] | None = None) -> None:
        self.lanes: dict[Lane, Spans] = {lane: ports for lane, ports in (lanes or {}).items() if ports}

    @classmethod
    def over(cls, schemes: Iterable[str], methods: Iterable[str], ports: Iterable[Span]) -> Self:
        methods, ports = tuple(methods), merge_spans(ports)
        return cls({(scheme, method): ports for scheme in schemes for method in methods})

    def __bool__(self) -> bool:
        return bool(self.lanes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NetworkAccess) and self.lanes == other.lanes

    def __hash__(self) -> int:
        return hash(frozenset(self.lanes.items()))

    def __repr__(self) -> str:
        return f"NetworkAccess({self.lanes})"

    def meet(self, other: Self) -> Self:
        theirs = other.lanes
        if self.lanes == theirs:
            return self
        return type(self)({lane: _common(ports, theirs[lane]) for lane, ports in self.lanes.items() if lane in theirs})

    def join(self, other: Self) -> Self:
        joined = dict(self.lanes)
        for lane, ports in other.lanes.items():
            mine = joined.get(lane)
            joined[lane] = ports if mine is None or mine == ports else merge_spans((*mine, *ports))
        return type(self)(joined)

    def minus(self, other: Self) -> Self:
        return type(self)({lane: _without(ports, other.lanes.get(lane, ())) for lane, ports in self.lanes.items()})

    def has(self, scheme: str, method: str, port: int) -> bool:
        return any(low <= port <= high for low, high in self.lanes.get((scheme, method), ()))

    def groups(self) -> list[tuple[str, tuple[str, ...], Spans]]:
        """The same, said shortly: (scheme, methods, ports), sorted; methods with the same ports stand together."""
        by: dict[tuple[str, Spans], list[str]] = {}
        for (scheme, method), ports in self.lanes.items():
            by.setdefault((scheme, ports), []).append(method)
        return sorted((scheme, tuple(sorted(methods)), ports) for (scheme, ports), methods in by.items())

    def pieces(self) -> list[Self]:
        return [type(self).over([scheme], methods, ports) for scheme, methods, ports in self.groups()]


ANY_REACH = NetworkAccess.over(SCHEMES, METHODS, [PORTS])
ANY_PROTOCOL = NetworkAccess.over(PROTOCOLS, [""], [PORTS])
