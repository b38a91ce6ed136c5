"""What does one condition of a rule ask, and what is its answer for a call?

A condition is a tree of :class:`Test` under :class:`Not`, :class:`All` and :class:`Either`. Its answer is True, False or
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
class Test:
    """``ask``: equals, in, at_least, at_most, contains, has, or under (a tool whose id starts with ``value``)."""

    attribute: str
    ask: str
    value: Any


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


@dataclass(frozen=True, slots=True)
class All:
    """With no parts it always holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Condition, ...]


Condition = Test | Not | All | Either
ALWAYS = All(())


def condition_of(when: dict[str, Any]) -> All:
    """What the ``when`` of a checked rule asks."""
    return All(tuple(part for name, atom in sorted(when.items()) for part in _parts(name, atom)))


def _parts(name: str, atom: dict[str, Any]) -> Iterator[Condition]:
    for ask, value in sorted(atom.items()):
        match ask:
            case "not":
                yield Not(All(tuple(_parts(name, value))))
            case "matches":
                yield of_expression(expressions.parse(value))
            case "has":
                yield Test(name, "has", True) if value else Not(Test(name, "has", True))
            case "contains" if isinstance(value, list):
                yield from (Test(name, "contains", each) for each in value)
            case "in":
                yield Test(name, "in", tuple(sorted(set(value))))
            case _:
                yield Test(name, ask, value)


def of_expression(expression: expressions.Expression) -> Condition:
    """A tool expression, in terms of the attributes that it asks about."""
    match expression:
        case expressions.Exact():
            return Test("tool", "equals", expression.id)
        case expressions.Prefix():
            return Test("tool", "under", expression.prefix + ".")
        case expressions.Tag():
            return Test("tags", "contains", expression.name)
        case expressions.Effect():
            return Test("side_effect", "equals", expression.name)
        case expressions.Safety():
            return Test("safety_class", "equals", expression.name)
        case expressions.Domain():
            return Test("domains", "contains", expression.name)
        case expressions.Not():
            return Not(of_expression(expression.part))
        case expressions.And():
            return All(tuple(of_expression(part) for part in expression.parts))
        case expressions.Or():
            return Either(tuple(of_expression(part) for part in expression.parts))
        case _:
            return ALWAYS


def tests_of(condition: Condition) -> Iterator[Test]:
    match condition:
        case Test():
            yield condition
        case Not():
            yield from tests_of(condition.part)
        case _:
            for part in condition.parts:
                yield from tests_of(part)


def attributes_of(condition: Condition) -> frozenset[str]:
    return frozenset(test.attribute for test in tests_of(condition))


# Compiling: a tree becomes nested functions once, and is then asked for every call.


def compiled(condition: Condition) -> Asked:
    match condition:
        case Test():
            return _TESTS[condition.ask](condition.attribute, condition.value)
        case Not():
            return _negated(compiled(condition.part))
        case All():
            return _all([compiled(part) for part in condition.parts])
        case Either():
            return _either([compiled(part) for part in condition.parts])


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
