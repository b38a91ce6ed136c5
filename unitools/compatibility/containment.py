"""Containment: whether everything that one JSON Schema accepts is also accepted by another.

:class:`Prover` says yes only when it has a proof, so a yes can be relied on; no means "not shown". A schema is a conjunction of
claims (one a keyword, or one a name or index within it). ``inner`` is within ``outer`` when each claim of ``outer`` follows from
``inner``: from the keywords beside it, from what it refers to, from one of its ``allOf``, or from every one of its ``anyOf``.

References may be recursive. A goal that comes up again on its own way is taken as proved when a step into the value lies
between (the value is smaller then, so this is induction), and as not shown otherwise. What was proved on the way is forgotten
when the goal fails after all; what failed stays failed. Work is bounded: beyond :data:`MAX_STEPS` it raises
:class:`~unitools.compatibility.schemas.Incomparable`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.compatibility.claims import (
    ALL,
    OBJECTS,
    RULES,
    SPEAKS_OF,
    Claim,
    ClaimQuestion,
    get_named_types,
    get_value_type,
    list_claims,
    make_value_key,
    serialize_value,
)
from unitools.compatibility.schemas import EMPTY, IGNORED, NEVER, Incomparable, Node, SchemaPair, as_node, is_number

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_STEPS = 30_000
MAX_NESTING = 40
EXACT = 2**53

Goal = tuple[int, int, Claim]


class Prover:
    def __init__(self, pair: SchemaPair, max_steps: int = MAX_STEPS) -> None:
        self.pair, self.left = pair, max_steps
        self._proved: dict[Goal, int] = {}  # at which depth of the value; -1: for good
        self._open: set[Goal] = set()
        self._failed: set[Goal] = set()
        self._trail: list[Goal] = []
        self._nesting = 0
        self._types: dict[int, frozenset[str]] = {}
        self._claims: dict[int, list[Claim]] = {}
        self._split: dict[int, list[Node]] = {}

    # Goals.

    def within(self, inner: Any, outer: Any, level: int = 0) -> bool:
        """Is every value that ``inner`` accepts accepted by ``outer``?"""
        inner, outer = as_node(inner), as_node(outer)
        if outer is EMPTY or inner is NEVER or self.pair.same(inner, outer):
            return True
        return all(self.follows(inner, outer, claim, level) for claim in self.claims(outer))

    def claims(self, node: Node) -> list[Claim]:
        if id(node) not in self._claims:
            self._claims[id(node)] = list_claims(node)
        return self._claims[id(node)]

    def follows(self, inner: Node, outer: Node, claim: Claim, level: int = 0) -> bool:
        """Does this claim of ``outer`` hold for every value that ``inner`` accepts?"""
        goal = id(inner), id(outer), claim
        if goal in self._proved:
            return goal not in self._open or level > self._proved[goal]
        if goal in self._failed:
            return False
        self.spend()
        mark = len(self._trail)
        self._proved[goal] = level
        self._open.add(goal)
        self._trail.append(goal)
        self._nesting += 1
        shown = self._show(inner, outer, claim, level)
        self._nesting -= 1
        self._open.discard(goal)
        if not shown:
            self._failed.add(goal)
            for each in self._trail[mark:]:
                self._proved.pop(each, None)
            del self._trail[mark:]
        return shown

    def spend(self, steps: int = 1) -> None:
        self.left -= steps
        if self.left < 0 or self._nesting > MAX_NESTING:
            raise Incomparable

    def _show(self, inner: Node, outer: Node, claim: Claim, level: int) -> bool:
        if inner is NEVER or not self.types(inner) & SPEAKS_OF.get(claim[0], ALL):
            return True
        if claim[0] in RULES and RULES[claim[0]](ClaimQuestion(self, inner, outer, claim[1], level)):
            return True
        if (
            claim[0] not in RULES
            and claim[0] in inner
            and serialize_value(inner[claim[0]]) == serialize_value(outer[claim[0]])
        ):
            return True  # pattern, format and all that is not understood: only the same follows
        return any(
            all(self.follows(part, outer, claim, level) for part in parts) for parts in self._ways(inner, claim[0])
        )

    def _ways(self, inner: Node, keyword: str) -> Iterable[list[Node]]:
        """Lists of subschemas such that each value of ``inner`` is accepted by one of a list."""
        target = self.pair.target(inner) if "$ref" in inner else None
        if target:
            yield [target[1]]
        yield from ([as_node(part)] for part in inner.get("allOf", ()))
        yield from ([as_node(part) for part in inner[word]] for word in ("anyOf", "oneOf") if inner.get(word))
        if keyword in ("anyOf", "oneOf") and isinstance(inner.get("type"), list):
            if id(inner) not in self._split:
                self._split[id(inner)] = [inner | {"type": each} for each in inner["type"]]
                for part in self._split[id(inner)]:
                    if id(inner) in self.pair.owner:
                        self.pair.owner[id(part)] = self.pair.owner[id(inner)]
            yield self._split[id(inner)]

    # What is known of a schema.

    def types(self, node: Any, nesting: int = 0) -> frozenset[str]:
        """The types that its values can have; too many rather than too few."""
        node = as_node(node)
        if node is NEVER:
            return frozenset()
        if id(node) in self._types or nesting > 20:
            return self._types.get(id(node), ALL)
        self._types[id(node)] = ALL  # while it is being found out
        self.spend()
        found = get_named_types(node) if "type" in node else ALL
        if (values := self.values(node)) is not None:
            found &= {get_value_type(value) for value in values}
        if "$ref" in node and (target := self.pair.target(node)):
            found &= self.types(target[1], nesting + 1)
        for part in node.get("allOf", ()):
            found &= self.types(part, nesting + 1)
        for word in ("anyOf", "oneOf"):
            if node.get(word):
                found &= frozenset(each for part in node[word] for each in self.types(part, nesting + 1))
        self._types[id(node)] = found
        return found

    def values(self, node: Node) -> list[Any] | None:
        """All values, or more, when the keywords beside each other leave a listed few; None when they do not."""
        if "const" in node:
            return [node["const"]]
        if "enum" in node:
            return list(node["enum"])
        if "type" in node and get_named_types(node) <= {"null", "boolean"}:
            few: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}
            return [value for each in sorted(get_named_types(node)) for value in few[each]]
        return None

    def bound(self, node: Node, side: str) -> tuple[Any, bool] | None:
        """The tightest limit for its numbers on one side (``min`` or ``max``), and whether the limit itself is out."""
        sign = 1 if side == "min" else -1
        limits = [
            (node[word], word.startswith("e"))
            for word in (f"{side}imum", f"exclusive{side.title()}imum")
            if word in node
        ]
        if (values := self.values(node)) is not None:
            numbers = [value for value in values if is_number(value)]
            limits += [((min if sign > 0 else max)(numbers), False)] if numbers else []
        if not limits:
            return None
        limit, is_out = max(limits, key=lambda each: (sign * each[0], each[1]))
        if "fraction" not in self.types(node) and abs(limit) < EXACT:
            whole = sign * -(-sign * limit // 1)  # the first whole number that is not before the limit
            return (int(whole) + sign if is_out and whole == limit else int(whole)), False
        return limit, is_out

    def most_items(self, node: Node) -> float:
        closed = len(node.get("prefixItems", ())) if as_node(node.get("items", True)) is NEVER else float("inf")
        return min(closed, float(min(node.get("maxItems", EXACT), EXACT)))

    def apart(self, a: Any, b: Any, nesting: int = 0) -> bool:
        """Is there certainly no value that both accept?"""
        self.spend()
        a, b = self.followed(a), self.followed(b)
        if not (shared := self.types(a) & self.types(b)):
            return True
        few, other = self.values(a), self.values(b)
        if few is not None and other is not None:
            return not {make_value_key(value) for value in few} & {make_value_key(value) for value in other}
        if shared <= OBJECTS and nesting < 4:
            both = set(a.get("required", ())) & set(b.get("required", ()))
            first, second = a.get("properties", EMPTY), b.get("properties", EMPTY)
            return any(
                self.apart(first[name], second[name], nesting + 1) for name in both & first.keys() & second.keys()
            )
        return False

    def followed(self, node: Any) -> Node:
        """A subschema, or what it refers to when it says nothing else."""
        here = as_node(node)
        for _ in range(20):
            target = self.pair.target(here) if here.keys() - IGNORED == {"$ref"} else None
            if target is None:
                return here
            here = target[1]
        return here

    def all_apart(self, nodes: list[Any]) -> bool:
        """Exactly one of them is then the same as at least one."""
        return all(self.apart(a, b) for index, a in enumerate(nodes) for b in nodes[:index])
