"""Chain plans: what may stand in a plan of calls, and what is a reference in it?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.chains.plan import ChainPlan, MissingValue, format_pointer, read_plan, resolve_pointer
from kernel.problems import SchemaInvalid
from tests.support.chains import of, step, undo


def plan(*steps: dict[str, Any]) -> ChainPlan:
    return read_plan({"steps": list(steps)})


def refusal(*steps: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(SchemaInvalid) as refused:
        plan(*steps)
    [finding] = refused.value.details["findings"]
    return finding["pointer"], finding["message"]


@pytest.mark.req("TOOLS-32")
def test_a_reference_names_an_earlier_step_and_a_place_in_what_it_delivers() -> None:
    found = plan(step("one"), step("two", text={"deep": [1, of("one", "/a~1b/0")]}))

    [reference] = found.steps[1].references
    assert (reference.step, reference.pointer, reference.place) == ("one", ("a/b", "0"), ("text", "deep", 1))
    assert found.steps[1].filled(lambda _: "here") == {"text": {"deep": [1, "here"]}}


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("steps", "pointer"),
    [
        ([step("one", text=of("one"))], "/plan/steps/0/arguments/text/$from"),
        ([step("one", text=of("two")), step("two")], "/plan/steps/0/arguments/text/$from"),
        ([step("one"), step("one")], "/plan/steps/1/id"),
        ([step("One")], "/plan/steps/0/id"),
        ([step("one"), step("two", text=of("one", "total"))], "/plan/steps/1/arguments/text/pointer"),
        ([step("one"), step("two", text=of("one", "/a~2"))], "/plan/steps/1/arguments/text/pointer"),
        ([step("one"), step("two", text=of("one", 7))], "/plan/steps/1/arguments/text/pointer"),
        ([step("one"), step("two", text=of("one", default=1))], "/plan/steps/1/arguments/text"),
        (
            [step("one"), step("two", text=of("one", assume_compatible="yes"))],
            "/plan/steps/1/arguments/text/assume_compatible",
        ),
        ([step("one"), step("two", text={"$from": ["one"]})], "/plan/steps/1/arguments/text/$from"),
        ([step("one", text={"$data": 1, "more": 2})], "/plan/steps/0/arguments/text"),
        ([step("one"), {"id": "two", "tool": "x", "arguments": of("one")}], "/plan/steps/1/arguments"),
        ([step("one", compensate=undo(text=of("two"))), step("two")], "/plan/steps/0/compensate/arguments/text/$from"),
    ],
)
def test_what_is_not_right_is_said_with_its_place(steps: list[dict[str, Any]], pointer: str) -> None:
    assert refusal(*steps)[0] == pointer


@pytest.mark.req("TOOLS-32")
def test_what_undoes_a_step_may_use_what_the_step_has_delivered() -> None:
    [undoing] = plan(step("one", compensate=undo(text=of("one")))).compensations

    assert undoing.references[0].step == "one"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "$from", "$data", "pointer", "~/"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.req("TOOLS-32")
@given(JSON)
def test_whatever_is_put_into_data_comes_out_as_it_was(value: Any) -> None:
    [only] = plan(step("one", text={"$data": value})).steps

    assert only.references == ()
    assert only.filled(lambda _: "never") == {"text": value}


@pytest.mark.req("TOOLS-32")
@given(JSON)
def test_arguments_are_refused_or_data_or_references(value: Any) -> None:
    """Nothing in between: what has no reference and no $data comes out as it went in."""
    try:
        found = plan(step("one"), step("two", text=value))
    except SchemaInvalid:
        return
    if "$" not in str(value):
        assert found.steps[1].filled(lambda _: None) == {"text": value}


@pytest.mark.req("TOOLS-32")
@given(JSON)
def test_a_pointer_finds_what_it_was_made_of(value: Any) -> None:
    def places(value: Any, at: tuple[str, ...] = ()) -> Any:
        yield at, value
        children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, each in children:
            yield from places(each, (*at, str(name)))

    for place, found in places(value):
        assert resolve_pointer(value, place) == found
    with pytest.raises(MissingValue):
        resolve_pointer(value, ("nowhere", "to", "be", "found"))


@pytest.mark.req("TOOLS-32")
def test_a_place_is_written_as_a_pointer() -> None:
    assert format_pointer(("a/b", 0, "~")) == "/a~1b/0/~0"
