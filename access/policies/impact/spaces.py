"""Spaces: the calls that a condition holds for, as boxes over finitely many classes of calls.

Atoms compare with constants, so every attribute falls into finitely many classes that no condition at hand can tell apart
inside: a value that is named, any other, a span between two thresholds, absent. A condition is a union of :class:`Box`, each
a product of such classes. ``tool`` and ``group`` are one dimension, since one follows from the other; each member of a set is
a dimension of its own.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from access.policies import conditions
from access.policies.attributes import ATTRIBUTES, Attribute, AttributeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from access.policies.conditions import AttributeTest, Condition

MAX_BOXES = 64
Literal = tuple["AttributeTest", bool]
Dimension = tuple[str, str]  # (attribute, member of the set)
Cell = dict[str, Any]  # the attributes that a class of one dimension has, by example
Box = dict[Dimension, tuple[Literal, ...]]


def count_boxes(condition: Condition, *, holds: bool = True) -> int:
    """At most how many boxes :func:`build_boxes` makes, without making them."""
    match condition:
        case conditions.AttributeTest():
            return 1
        case conditions.Negation():
            return count_boxes(condition.part, holds=not holds)
        case _:
            counts = [count_boxes(part, holds=holds) for part in condition.parts]
            return prod(counts) if isinstance(condition, conditions.AllOf) is holds else sum(counts)


def _choices(condition: Condition, *, holds: bool) -> list[frozenset[Literal]]:
    """Disjunctive normal form."""
    match condition:
        case conditions.AttributeTest():
            return [frozenset({(condition, holds)})]
        case conditions.Negation():
            return _choices(condition.part, holds=not holds)
        case _:
            parts = [_choices(part, holds=holds) for part in condition.parts]
            if isinstance(condition, conditions.AllOf) is holds:
                return [frozenset().union(*chosen) for chosen in product(*parts)]
            return [choice for part in parts for choice in part]


def find_dimension(test: AttributeTest) -> Dimension:
    if test.ask == "contains":
        return test.attribute, test.value
    return ("tool" if test.attribute == "group" else test.attribute), ""


def build_boxes(condition: Condition, *, certainly: bool) -> list[Box]:
    """Where the condition holds: ``certainly``, or where it at least may, for want of an attribute. Empty ones are left out."""
    found = []
    for choice in {*_choices(condition, holds=True)}:
        box: dict[Dimension, list[Literal]] = defaultdict(list)
        for literal in sorted(choice, key=str):
            box[find_dimension(literal[0])].append(literal)
        if all(
            any(
                fits_cell(literals, cell, certainly=certainly)
                for cell in iter_cells(dimension, [test for test, _ in literals])
            )
            for dimension, literals in box.items()
        ):
            found.append({dimension: tuple(literals) for dimension, literals in box.items()})
    return found


def can_hold(condition: Condition, *, certainly: bool) -> bool:
    return bool(build_boxes(condition, certainly=certainly))


def fits_cell(literals: Iterable[Literal], cell: Cell, *, certainly: bool) -> bool:
    return agrees_with(
        literals, {test: conditions.compile_condition(test)(cell) for test, _ in literals}, certainly=certainly
    )


def agrees_with(literals: Iterable[Literal], answers: dict[AttributeTest, bool | None], *, certainly: bool) -> bool:
    """Are the answers those that the literals want? Unknown agrees with both, unless it must be certain."""
    for test, wanted in literals:
        answer = answers[test]
        if answer is not wanted and (certainly or answer is not None):
            return False
    return True


def iter_cells(dimension: Dimension, tests: Iterable[AttributeTest]) -> Iterator[Cell]:
    """One example of every class that the tests can tell apart, and perhaps more than one of some."""
    name, member = dimension
    attribute = ATTRIBUTES[name]
    if attribute.type is AttributeType.SET:
        yield {name: ()}
        if member:
            yield {name: (member,)}
    elif attribute.type is AttributeType.TOOL:
        for tool in _tools(tests):
            yield {"tool": tool, "group": tool.partition(".")[0]}
    else:
        for value in _values(attribute, tests):
            yield {name: value}
    if attribute.optional:
        yield {name: None}


def _constants(tests: Iterable[AttributeTest]) -> set[Any]:
    found: set[Any] = set()
    for test in tests:
        if test.ask == "in":
            found |= set(test.value)
        elif test.ask != "has":
            found.add(test.value)
    return found


def _values(attribute: Attribute, tests: Iterable[AttributeTest]) -> list[Any]:
    if attribute.type is AttributeType.FLAG:
        return [False, True]
    if attribute.values:
        return list(attribute.values)
    named = _constants(tests)
    if attribute.type is AttributeType.TEXT:
        return [_other("another", named), *sorted(named)]
    near = {attribute.least, *(each + off for each in named for off in (-1, 0, 1))}
    if attribute.most is not None:
        near.add(attribute.most)
    return sorted(
        each for each in near if each >= attribute.least and (attribute.most is None or each <= attribute.most)
    )


def _tools(tests: Iterable[AttributeTest]) -> list[str]:
    """The tools that are named, and one more of every group and package that is."""
    exact: set[str] = set()
    groups: set[str] = set()
    packages: set[str] = set()
    for test in tests:
        values = test.value if test.ask == "in" else (test.value,)
        for value in values:
            if test.ask == "has":
                continue
            if test.attribute == "group":
                groups.add(value)
            elif test.ask == "under":
                (packages if value.count(".") > 1 else groups).add(value.rstrip("."))
            else:
                exact.add(value)
    packages |= {tool.rpartition(".")[0] for tool in exact}
    groups |= {package.partition(".")[0] for package in packages}
    other = _other("any", groups)
    found = [f"{other}.other.tool", *sorted(exact)]
    found += [
        f"{package}.{_other('other', {tool.rpartition('.')[2] for tool in exact})}" for package in sorted(packages)
    ]
    free = _other("other", {package.partition(".")[2] for package in packages})
    return found + [f"{group}.{free}.tool" for group in sorted(groups)]


def _other(name: str, taken: set[Any]) -> str:
    while name in taken:
        name += "_"
    return name
