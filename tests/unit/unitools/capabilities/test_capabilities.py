"""Capabilities: is the intersection of capabilities one that nobody can trick into giving more?"""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.capability_reference import (
    Reference,
    answers_of,
    answers_of_reference,
    documents,
    range_rules,
    values,
)
from unitools.capabilities import BOTTOM, TOP, Capabilities, explain, meet_cached


@pytest.mark.req("TOOLS-16")
@given(values, values)
def test_the_intersection_does_not_depend_on_the_order(a: Capabilities, b: Capabilities) -> None:
    assert a & b == b & a


@pytest.mark.req("TOOLS-16")
@given(values, values, values)
def test_the_intersection_does_not_depend_on_the_grouping(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    assert (a & b) & c == a & (b & c) == meet_cached(a, b, c)


@given(values)
def test_a_set_with_itself_is_itself(a: Capabilities) -> None:
    assert a & a == a
    assert a & TOP == a
    assert a & BOTTOM == BOTTOM
    assert BOTTOM <= a <= TOP


@given(values, values, values)
def test_who_narrows_one_side_never_widens_the_result(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    assert (a & b) & c <= a & c


@pytest.mark.req("TOOLS-16")
@given(values, values)
def test_the_intersection_is_within_both(a: Capabilities, b: Capabilities) -> None:
    assert a & b <= a
    assert a & b <= b


@given(values, values, values)
def test_to_be_within_is_to_lose_nothing_in_the_intersection(a: Capabilities, b: Capabilities, c: Capabilities) -> None:
    for small, large in ((a, b), (a & b, a), (a & b, b), (a & b, c), (a, a & b)):
        assert (small <= large) == (small & large == small)


@pytest.mark.req("TOOLS-16")
@given(documents, documents)
def test_the_intersection_allows_exactly_what_both_allow(a: dict[str, Any], b: dict[str, Any]) -> None:
    met = Capabilities.from_json(a) & Capabilities.from_json(b)

    both = zip(answers_of_reference(Reference(a)), answers_of_reference(Reference(b)), strict=True)
    assert list(answers_of(met)) == [mine and theirs for mine, theirs in both]


@given(documents, documents)
def test_two_are_equal_exactly_when_they_allow_the_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    one, other = Capabilities.from_json(a), Capabilities.from_json(b)
    same = list(answers_of_reference(Reference(a))) == list(answers_of_reference(Reference(b)))

    assert (one == other) == same
    assert (one.to_json() == other.to_json()) == same
    assert (one <= other and other <= one) == same


one_port = range_rules.map(lambda rule: {"cidr": rule["cidr"], "ports": ["443"]})


@given(st.lists(one_port, max_size=8), st.lists(one_port, max_size=8))
def test_two_halves_of_a_range_are_the_range(a: list[Any], b: list[Any]) -> None:
    one, other = Capabilities.from_json({"cidr": a}), Capabilities.from_json({"cidr": [*a, *b]})
    same = list(answers_of_reference(Reference({"cidr": a}))) == list(
        answers_of_reference(Reference({"cidr": [*a, *b]}))
    )

    assert (one == other) == same
    assert one <= other


@given(st.integers(24, 32), st.integers(0, 4), st.lists(one_port, max_size=3), st.randoms())
def test_a_range_in_small_pieces_is_the_range(length: int, cuts: int, more: list[Any], random: Any) -> None:
    whole = ipaddress.ip_network(f"10.0.0.0/{length}")
    pieces = [{"cidr": str(piece), "ports": ["443"]} for piece in whole.subnets(min(cuts, 32 - length))]
    random.shuffle(pieces)

    written = Capabilities.from_json({"cidr": [*pieces, *more]})
    assert written == Capabilities.from_json({"cidr": [*more, {"cidr": str(whole), "ports": ["443"]}]})
    assert Capabilities.from_json({"cidr": pieces[1:]}) != Capabilities.from_json({"cidr": pieces})


@given(values, values)
def test_the_normal_form_of_an_intersection_is_the_only_one(a: Capabilities, b: Capabilities) -> None:
    met = a & b

    again = Capabilities.from_json(met.to_json())
    assert (again, again.to_json()) == (met, met.to_json())
    assert hash(again) == hash(met)


@given(documents, st.randoms())
def test_the_order_in_which_rules_are_written_means_nothing(document: dict[str, Any], random: Any) -> None:
    shuffled = {name: list(part) if isinstance(part, list) else part for name, part in document.items()}
    for part in shuffled.values():
        if isinstance(part, list):
            random.shuffle(part)

    assert Capabilities.from_json(shuffled).to_json() == Capabilities.from_json(document).to_json()


@given(values, values)
def test_an_explanation_is_empty_exactly_when_nothing_was_lost(a: Capabilities, b: Capabilities) -> None:
    asked = a.replaced(ceilings={name: most for name, most in a.ceilings.items() if name in b.ceilings})
    bound = b.replaced(ceilings={name: most for name, most in b.ceilings.items() if name in a.ceilings})

    assert (explain(asked, policy=bound) == []) == (asked <= bound)
    assert explain(asked, policy=None) == []


def test_everything_and_nothing_survive_being_written_down() -> None:
    assert Capabilities.from_json(TOP.to_json()) == TOP
    assert Capabilities.from_json(BOTTOM.to_json()) == BOTTOM
    assert TOP != BOTTOM
    assert Capabilities.from_json({}).names() == []
    halves = [{"cidr": half, "ports": ["443"]} for half in ("10.0.0.0/9", "10.128.0.0/9")]
    assert Capabilities.from_json({"cidr": halves}).names() == ["cidr:tcp://10.0.0.0/8:443"]
