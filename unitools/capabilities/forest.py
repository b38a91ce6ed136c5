"""Forest: what may be done where, as a function on a forest of nodes.

The value at a node is the union of what the rules on it and on everything that covers it say. Two functions meet node by node.
The normal form keeps a node only where its value differs from the nearest node that covers it, so there is one for each
function, and ``==`` on rules is equality of meaning.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from unitools.capabilities.nodes import (
    HostNode,
    PathNode,
    RangeNode,
    host_depth,
    host_line,
    path_depth,
    path_line,
    range_depth,
    range_line,
    range_sibling,
)
from unitools.capabilities.values import Actions, NetworkAccess, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

N = TypeVar("N")
V = TypeVar("V", bound=Value)


@dataclass(frozen=True, slots=True)
class ForestKind(Generic[N, V]):
    """One sort of forest. ``sibling`` only where two nodes can make up a third: the halves of an address range."""

    line: Callable[[N, tuple[int, ...]], Iterator[N]]
    depth: Callable[[N], int]
    zero: V
    sibling: Callable[[N], tuple[N, N] | None] | None = None


class Forest(Generic[N, V]):
    """Immutable. ``rules`` is the normal form: each node with its whole value, inherited parts included."""

    __slots__ = ("_hash", "depths", "kind", "rules")

    def __init__(self, kind: ForestKind[N, V], rules: Iterable[tuple[N, V]] = ()) -> None:
        own: dict[N, V] = {}
        for node, value in rules:
            own[node] = own[node].join(value) if node in own else value
        self.kind = kind
        self.rules = own
        self.depths = self._depths(own)
        if len(own) > 1:
            full = {node: self._union(node) for node in own}
            self.rules = full if kind.sibling is None else self._lifted(full)
            self.depths = self._depths(self.rules)
        self.rules = self._pruned(self.rules)
        self.depths = self._depths(self.rules)
        self._hash: int | None = None

    @classmethod
    def _of_normal(cls, kind: ForestKind[N, V], rules: dict[N, V]) -> Forest[N, V]:
        made: Forest[N, V] = cls(kind)
        made.rules, made.depths = rules, made._depths(rules)
        return made

    def _depths(self, rules: dict[N, V]) -> tuple[int, ...]:
        return tuple(sorted({self.kind.depth(node) for node in rules}, reverse=True))

    def _union(self, node: N) -> V:
        """The value at a node while ``rules`` are still what somebody wrote."""
        value = self.kind.zero
        for cover in self.kind.line(node, self.depths):
            if cover in self.rules:
                value = value.join(self.rules[cover])
        return value

    def _lifted(self, full: dict[N, V]) -> dict[N, V]:
        """What both halves of a range have, the range has. Whatever lies in a half has it already."""
        sibling = self.kind.sibling
        assert sibling is not None
        by_depth: defaultdict[int, set[N]] = defaultdict(set)
        for node in full:
            by_depth[self.kind.depth(node)].add(node)
        for depth in range(max(by_depth), 0, -1):
            for node in by_depth.get(depth, ()):
                pair = sibling(node)
                if pair is None or pair[0] not in full:
                    continue
                shared = full[node].meet(full[pair[0]])
                if shared:
                    whole = pair[1]
                    full[whole] = full[whole].join(shared) if whole in full else shared
                    by_depth[depth - 1].add(whole)
        return full

    def _pruned(self, full: dict[N, V]) -> dict[N, V]:
        """Without nodes that say what the nearest cover says. ``full`` holds whole values."""
        if len(full) == 1:
            return {node: value for node, value in full.items() if value}
        kept = {}
        depths = self._depths(full)
        for node, value in full.items():
            line = self.kind.line(node, depths)
            next(line)
            cover = next((full[each] for each in line if each in full), self.kind.zero)
            if value != cover:
                kept[node] = value
        return kept

    def at(self, node: N) -> V:
        """What may be done at a node: what the nearest rule says."""
        for cover in self.kind.line(node, self.depths):
            value = self.rules.get(cover)
            if value is not None:
                return value
        return self.kind.zero

    def cover(self, node: N) -> N | None:
        """The node whose rule says what may be done at this one; None when no rule does."""
        return next((each for each in self.kind.line(node, self.depths) if each in self.rules), None)

    def meet(self, other: Forest[N, V]) -> Forest[N, V]:
        if self.rules == other.rules or not self.rules:
            return self
        if not other.rules:
            return other
        full = {node: value.meet(other.at(node)) for node, value in self.rules.items()}
        for node, value in other.rules.items():
            if node not in full:
                full[node] = value.meet(self.at(node))
        return self._of_normal(self.kind, self._pruned(full))

    def own(self) -> list[tuple[N, V]]:
        """Each node with only what it adds to what covers it."""
        return [(node, value.minus(self._covering(node))) for node, value in self.rules.items()]

    def _covering(self, node: N) -> V:
        line = self.kind.line(node, self.depths)
        next(line)
        return next((self.rules[each] for each in line if each in self.rules), self.kind.zero)

    def below(self, node: N) -> Iterator[tuple[N, V]]:
        """The rules strictly under a node."""
        depths = (*self.depths, self.kind.depth(node))
        for each, value in self.rules.items():
            if each != node and node in self.kind.line(each, depths):
                yield each, value

    def __le__(self, other: Forest[N, V]) -> bool:
        return all(not value.minus(other.at(node)) for node, value in self.rules.items())

    def __bool__(self) -> bool:
        return bool(self.rules)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.rules == other.rules

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.rules.items()))
        return self._hash

    def __repr__(self) -> str:
        return f"Forest({self.rules})"


Paths = Forest[PathNode, Actions]
Hosts = Forest[HostNode, NetworkAccess]
Ranges = Forest[RangeNode, NetworkAccess]
Browsers = Forest[HostNode, Actions]

PATHS: ForestKind[PathNode, Actions] = ForestKind(path_line, path_depth, Actions())
HOSTS: ForestKind[HostNode, NetworkAccess] = ForestKind(host_line, host_depth, NetworkAccess())
RANGES: ForestKind[RangeNode, NetworkAccess] = ForestKind(range_line, range_depth, NetworkAccess(), range_sibling)
BROWSERS: ForestKind[HostNode, Actions] = ForestKind(host_line, host_depth, Actions())
