"""Assignability: what a JSON Schema says of one place in its values, and whether that fits a place in another's.

A :class:`AssignabilityCheck` knows a schema of what somebody gives and one of what somebody takes. Does the value at a JSON
pointer of the one
always exist, and may it stand at a place of the other? :mod:`~unitools.compatibility.containment` proves it; what has no proof
does not fit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.compatibility.containment import Prover
from unitools.compatibility.schemas import EMPTY, NEVER, Incomparable, Node, Schema, SchemaPair, as_node, format_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OBJECT, ARRAY = frozenset({"object"}), frozenset({"array"})
# What is asked of a whole value and cannot be told of a part of it.
_OF_THE_WHOLE = frozenset(
    {"anyOf", "oneOf", "not", "if", "enum", "const", "dependentSchemas", "unevaluatedProperties"}
    | {"unevaluatedItems", "contains", "uniqueItems", "patternProperties"}
)


class Misfit(NamedTuple):
    """``certain``: no value fits. Otherwise only a proof is missing that every value does."""

    why: str
    certain: bool = False


class AssignabilityCheck:
    """Two documents side by side: what one gives and what the other takes."""

    def __init__(self, given: Any, taken: Any) -> None:
        self.given, self.taken = Schema(given), Schema(taken)
        self.prover = Prover(SchemaPair(self.given, self.taken))
        self._kept: list[Node] = []

    def misfit(self, pointer: Sequence[str], place: Sequence[str | int]) -> Misfit | None:
        """Why the value at ``pointer`` of what is given may not stand at ``place`` of what is taken; None: it always may."""
        for schema, which in ((self.given, "output"), (self.taken, "input")):
            if schema.problem:
                return Misfit(f"The {which} schema cannot be compared: {schema.problem}.")
        try:
            return self._misfit(pointer, place)
        except (Incomparable, RecursionError):
            return Misfit("The schemas are too large to compare.")

    def _misfit(self, pointer: Sequence[str], place: Sequence[str | int]) -> Misfit | None:
        known = [self.given.root]
        for at, token in enumerate(pointer):
            below, why = self._below(known, token, "".join(map(format_step, pointer[:at])))
            if why:
                return why
            known = below
        inner: Node = known[0] if len(known) == 1 else {"allOf": known}
        self._kept.append(inner)  # the prover knows subschemas by where they are in memory
        wanted = [self.taken.root]
        for part in place:
            wanted, undecided = self._asked_below(wanted, part)
            if undecided:
                return Misfit(f"The input asks something of the whole around it ({undecided}).")
        for outer in map(as_node, wanted):
            if self.prover.within(inner, outer):
                continue
            if self.prover.apart(inner, outer):
                a, b = self._types(inner), self._types(outer)
                if a == b:
                    return Misfit("No value of the output is one that the input takes.", certain=True)
                return Misfit(f"The output is {a}, the input takes {b}.", certain=True)
            unproved = sorted(
                {claim[0] for claim in self.prover.claims(outer) if not self.prover.follows(inner, outer, claim)}
            )
            return Misfit(f"The output does not promise what the input asks for: {', '.join(unproved)}.")
        return None

    def _types(self, node: Node) -> str:
        found = sorted(self.prover.types(node))
        return " or ".join(found) or "nothing"

    # What is given.

    def _all_of(self, nodes: Iterable[Any]) -> list[Node]:
        """The subschemas and everything that holds beside them: what they refer to, and the parts of their ``allOf``."""
        found: list[Node] = []
        waiting = [as_node(node) for node in nodes]
        while waiting:
            node = waiting.pop()
            if any(node is each for each in found):
                continue
            self.prover.spend()
            found.append(node)
            waiting += [as_node(part) for part in node.get("allOf", ())]
            target = self.prover.pair.target(node) if "$ref" in node else None
            waiting += [target[1]] if target else []
        return found

    def _below(self, known: list[Node], token: str, where: str) -> tuple[list[Node], Misfit | None]:
        """What is known of the value one step further; where it may be missing, why."""
        nodes, shown = self._all_of(known), where or "the output"
        types = frozenset[str].intersection(*(self.prover.types(node) for node in nodes))
        if not types & (OBJECT | ARRAY):
            return [], Misfit(
                f"{shown} is {' or '.join(sorted(types)) or 'nothing'}, and has no {token!r}.", certain=True
            )
        if types <= OBJECT:
            found = [each for node in nodes for each in _properties(node, token)]
            if any(as_node(each) is NEVER for each in found):
                return [], Misfit(f"{shown} has no {token!r}.", certain=True)
            if not any(token in node.get("required", ()) for node in nodes):
                return [], Misfit(f"{token!r} may be missing in {shown}: the output schema does not require it.")
            return [as_node(each) for each in found] or [EMPTY], None
        if types <= ARRAY:
            if not re.fullmatch(r"0|[1-9][0-9]{0,8}", token):
                return [], Misfit(f"{shown} is a list, and {token!r} is no index.", certain=True)
            index = int(token)
            if max(node.get("minItems", 0) for node in nodes) <= index:
                return [], Misfit(f"{shown} may have no item {index}: the output schema does not promise so many.")
            found = [each for node in nodes for each in _items(node, index)]
            return [as_node(each) for each in found] or [EMPTY], None
        return [], Misfit(f"{shown} need not be an object or a list: the output schema leaves it open.")

    # What is taken.

    def _asked_below(self, wanted: list[Any], part: str | int) -> tuple[list[Any], str]:
        """The subschemas that hold for one part of a value, or the keyword because of which that cannot be told."""
        found: list[Any] = []
        for node in self._all_of(wanted):
            if whole := sorted(node.keys() & _OF_THE_WHOLE):
                return [], whole[0]
            if "$ref" in node and self.prover.pair.target(node) is None:
                return [], "$ref"
            found += _properties(node, part) if isinstance(part, str) else _items(node, part)
        return found, ""


def _properties(node: Node, name: str) -> list[Any]:
    """What a schema says of one property of an object. Which names a pattern matches is not looked into."""
    if name in node.get("properties", EMPTY):
        return [node["properties"][name]]
    return [node["additionalProperties"]] if "additionalProperties" in node and "patternProperties" not in node else []


def _items(node: Node, index: int) -> list[Any]:
    first = node.get("prefixItems", ())
    if index < len(first):
        return [first[index]]
    return [node["items"]] if "items" in node else []
