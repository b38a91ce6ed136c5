"""Conditions: what one condition of a rule asks, and its answer for a call.

A condition is a tree of :class:`AttributeTest` under :class:`Negation`, :class:`AllOf` and :class:`AnyOf`. Its answer is
True, False or
None: *unknown*, because the call lacks an attribute that would decide. Unknown spreads as in Kleene's logic, so neither
the order of the atoms nor an attribute that cannot change the answer matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unitools import expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Answer = bool | None
    Asked = Callable[[dict[str, Any]], Answer]


@dataclass(frozen=True, slots=True)
class AttributeTest:
    """``ask``: equals, in, at_least, at_most, contains, has, or under (a tool whose id starts with ``value``)."""

    attribute: str
    ask: str
    value: Any


@dataclass(frozen=True, slots=True)
class Negation:
    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """With no parts it always holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


Condition = AttributeTest | Negation | AllOf | AnyOf
ALWAYS = AllOf(())


def build_condition(when: dict[str, Any]) -> AllOf:
    """What the ``when`` of a checked rule asks."""
    return AllOf(tuple(part for name, atom in sorted(when.items()) for part in _parts(name, atom)))


def _parts(name: str, atom: dict[str, Any]) -> Iterator[Condition]:
    for ask, value in sorted(atom.items()):
        match ask:
            case "not":
                yield Negation(AllOf(tuple(_parts(name, value))))
            case "matches":
                yield convert_expression(expressions.parse(value))
            case "has":
                yield AttributeTest(name, "has", True) if value else Negation(AttributeTest(name, "has", True))
            case "contains" if isinstance(value, list):
                yield from (AttributeTest(name, "contains", each) for each in value)
            case "in":
                yield AttributeTest(name, "in", tuple(sorted(set(value))))
            case _:
                yield AttributeTest(name, ask, value)


def convert_expression(expression: expressions.Expression) -> Condition:
    """A tool expression, in terms of the attributes that it asks about."""
    match expression:
        case expressions.Exact():
            return AttributeTest("tool", "equals", expression.id)
        case expressions.Prefix():
            return AttributeTest("tool", "under", expression.prefix + ".")
        case expressions.Tag():
            return AttributeTest("tags", "contains", expression.name)
        case expressions.Effect():
            return AttributeTest("side_effect", "equals", expression.name)
        case expressions.Safety():
            return AttributeTest("safety_class", "equals", expression.name)
        case expressions.Domain():
            return AttributeTest("domains", "contains", expression.name)
        case expressions.Not():
            return Negation(convert_expression(expression.part))
        case expressions.And():
            return AllOf(tuple(convert_expression(part) for part in expression.parts))
        case expressions.Or():
            return AnyOf(tuple(convert_expression(part) for part in expression.parts))
        case _:
            return ALWAYS


def iter_tests(condition: Condition) -> Iterator[AttributeTest]:
    match condition:
        case AttributeTest():
            yield condition
        case Negation():
            yield from iter_tests(condition.part)
        case _:
            for part in condition.parts:
                yield from iter_tests(part)


def collect_attributes(condition: Condition) -> frozenset[str]:
    return frozenset(test.attribute for test in iter_tests(condition))


# Compiling: a tree becomes nested functions once, and is then asked for every call.


def compile_condition(condition: Condition) -> Asked:
    match condition:
        case AttributeTest():
            return _TESTS[condition.ask](condition.attribute, condition.value)
        case Negation():
            return _negated(compile_condition(condition.part))
        case AllOf():
            return _all([compile_condition(part) for part in condition.parts])
        case AnyOf():
            return _either([compile_condition(part) for part in condition.parts])


def _equals(name: str, value: Any) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else bool(found == value)

    return ask


def _in(name: str, values: tuple[Any, ...]) -> Asked:
    among = frozenset(values)

    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else found in among

    return ask


def _at_least(name: str, value: int) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else bool(found >= value)

    return ask


def _at_most(name: str, value: int) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else bool(found <= value)

    return ask


def _contains(name: str, value: str) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else value in found

    return ask


def _under(name: str, prefix: str) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = attributes.get(name)
        return None if found is None else found.startswith(prefix)

    return ask


def _has(name: str, value: bool) -> Asked:
    return lambda attributes: (attributes.get(name) is not None) is value


_TESTS: dict[str, Callable[[str, Any], Asked]] = {
    "equals": _equals,
    "in": _in,
    "at_least": _at_least,
    "at_most": _at_most,
    "contains": _contains,
    "under": _under,
    "has": _has,
}


def _negated(inner: Asked) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        found = inner(attributes)
        return None if found is None else not found

    return ask


def _all(parts: list[Asked]) -> Asked:
    if len(parts) == 1:
        return parts[0]

    def ask(attributes: dict[str, Any]) -> Answer:
        answer: Answer = True
        for part in parts:
            found = part(attributes)
            if found is False:
                return False
            if found is None:
                answer = None
        return answer

    return ask


def _either(parts: list[Asked]) -> Asked:
    def ask(attributes: dict[str, Any]) -> Answer:
        answer: Answer = False
        for part in parts:
            found = part(attributes)
            if found:
                return True
            if found is None:
                answer = None
        return answer

    return ask
