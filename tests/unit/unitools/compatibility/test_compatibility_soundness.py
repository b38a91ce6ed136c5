"""Compatibility soundness: does a value that was valid stay valid when the change is called compatible? Asked of random pairs of
schemas.

The judge is the validator that the hub runs on calls. The pairs and the values near their limits are in tests/support/schema_pairs.py.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.schema_pairs import judge, pair
from unitools.compatibility import claims, compare_schemas, is_compatible

if TYPE_CHECKING:
    from collections.abc import Iterator

seeds = st.integers(0, 2**64)


def outcome(seed: int) -> tuple[Any, Any, list[Any], list[Any], int]:
    """Two schemas, the values that only one of them accepts, and how many the old one accepts."""
    old, new, values = pair(Random(seed))
    before, after = judge(old), judge(new)
    judged = [(value, before.is_valid(value), after.is_valid(value)) for value in values]
    lost = [value for value, was, is_now in judged if was and not is_now]
    gained = [value for value, was, is_now in judged if is_now and not was]
    return old, new, lost, gained, sum(was for _, was, _ in judged)


@pytest.mark.req("TOOLS-9")
@given(seeds)
def test_a_compatible_input_takes_all_that_was_taken(seed: int) -> None:
    old, new, lost, _, _ = outcome(seed)

    assert not (is_compatible(old, new, "input") and lost), (old, new, lost[:3])


@pytest.mark.req("TOOLS-9")
@given(seeds)
def test_a_compatible_output_gives_nothing_that_was_not_promised(seed: int) -> None:
    old, new, _, gained, _ = outcome(seed)

    assert not (is_compatible(old, new, "output") and gained), (old, new, gained[:3])


@given(seeds)
def test_a_schema_differs_from_every_other_and_not_from_itself(seed: int) -> None:
    old, new, *_ = outcome(seed)

    assert compare_schemas(old, old) == []
    assert (compare_schemas(old, new) == []) == (old == new and repr(sorted_deep(old)) == repr(sorted_deep(new)))


def sorted_deep(value: Any) -> Any:
    """With the names of objects in one order; 1, 1.0 and true stay different."""
    if isinstance(value, dict):
        return {name: sorted_deep(value[name]) for name in sorted(value)}
    return [sorted_deep(each) for each in value] if isinstance(value, list) else value


@given(seeds)
def test_taking_back_is_judged_in_the_mirror(seed: int) -> None:
    old, new, *_ = outcome(seed)

    assert is_compatible(old, new, "input") == is_compatible(new, old, "output")


@given(seeds)
def test_the_random_schemas_are_schemas(seed: int) -> None:
    old, new, *_ = outcome(seed)

    Draft202012Validator.check_schema(old)
    Draft202012Validator.check_schema(new)


# Are these tests able to fail?


@pytest.fixture(scope="module")
def outcomes() -> Iterator[list[tuple[Any, Any, list[Any], list[Any], int]]]:
    yield [outcome(seed) for seed in range(2000)]


def test_the_pairs_are_of_every_sort(outcomes: list[tuple[Any, Any, list[Any], list[Any], int]]) -> None:
    """Without this the properties above could hold because nothing is ever called compatible, or nothing ever breaks."""
    seen: Counter[str] = Counter()
    for old, new, lost, gained, valid in outcomes:
        verdict = "compatible" if is_compatible(old, new, "input") else "breaking"
        seen[verdict] += 1
        seen[f"{verdict}, a value is lost"] += bool(lost)
        seen[f"{verdict}, with valid values"] += valid > 0
        seen[f"{verdict}, more is accepted"] += bool(gained) and not lost

    assert seen["compatible"] > 800
    assert seen["compatible, with valid values"] > 800
    assert seen["compatible, more is accepted"] > 200
    assert seen["breaking"] > 450
    assert seen["breaking, a value is lost"] > 250  # and so about half of the refusals are shown to be right
    assert seen["compatible, a value is lost"] == 0


WRONG_IF_ALWAYS_YES = {
    "type", "enum", "const", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
    "minItems", "maxItems", "minProperties", "maxProperties", "required", "dependentRequired", "properties", "patternProperties",
    "prefixItems", "items", "contains", "$ref", "anyOf", "oneOf", "not", "if", "unevaluatedProperties", "dependentSchemas",
}  # fmt: skip


@pytest.mark.req("TOOLS-9")
def test_a_rule_that_said_yes_too_often_would_be_found(
    outcomes: list[tuple[Any, Any, list[Any], list[Any], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule in turn is replaced by one that agrees with everything; some pair must show that it is wrong."""
    telling = [(old, new) for old, new, lost, _, _ in outcomes if lost]
    telling += [(new, old) for old, new, _, gained, _ in outcomes if gained]
    found = set()
    for name in WRONG_IF_ALWAYS_YES:
        with monkeypatch.context() as patch:
            patch.setitem(claims.RULES, name, lambda _: True)
            if any(is_compatible(old, new, "input") for old, new in telling):
                found.add(name)

    assert WRONG_IF_ALWAYS_YES - found == set()
