"""Conditions: do conditions on arguments hold exactly when they are met, and never by accident?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.grants.conditions import MAX_CONDITIONS, OPS, VALUES, is_met, list_unmet_conditions, validate_conditions

ARGUMENTS = {
    "currency": "EUR",
    "total": 12.5,
    "count": 1,
    "really": True,
    "nothing": None,
    "path": "/data/reports/may.csv",
    "a/b": {"~": "tilde"},
    "items": [{"price": 5, "sku": "A-1"}, {"price": 9}],
    "none": [],
}


def condition(pointer: str, op: str, *value: Any) -> dict[str, Any]:
    return {"pointer": pointer, "op": op} | ({"value": value[0]} if value else {})


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("pointer", "op", "value", "met"),
    [
        ("/currency", "equals", "EUR", True),
        ("/currency", "equals", "eur", False),
        ("/count", "equals", 1.0, True),
        ("/count", "equals", True, False),
        ("/really", "equals", 1, False),
        ("/really", "equals", True, True),
        ("/nothing", "equals", None, True),
        ("/gone", "equals", None, False),
        ("/nothing", "equals", False, False),
        ("/currency", "in", ["USD", "EUR"], True),
        ("/count", "in", ["1", True], False),
        ("/total", "at_most", 12.5, True),
        ("/total", "at_most", 12, False),
        ("/really", "at_most", 5, False),
        ("/currency", "at_most", 5, False),
        ("/total", "at_least", 12, True),
        ("/gone", "at_least", 0, False),
        ("/currency", "starts_with", "EU", True),
        ("/count", "starts_with", "1", False),
        ("/path", "within", "/data/reports", True),
        ("/path", "within", "/data/reports/", True),
        ("/path", "within", "/data/rep", False),
        ("/path", "within", "/", True),
        ("/currency", "length_at_most", 3, True),
        ("/items", "length_at_most", 1, False),
        ("/a~1b/~0", "equals", "tilde", True),
        ("/items/0/sku", "equals", "A-1", True),
        ("/items/00/sku", "equals", "A-1", False),
        ("/items/-1/price", "equals", 9, False),
        ("/items/2/price", "at_most", 9, False),
        ("/items/*/price", "at_most", 9, True),
        ("/items/*/price", "at_most", 8, False),
        ("/items/*/sku", "equals", "A-1", False),
        ("/none/*", "at_most", 9, False),
        ("/none/*/x", "absent", None, True),
        ("/items/*/sku", "absent", None, False),
        ("/gone", "absent", None, True),
        ("/nothing", "absent", None, False),
        ("/nothing", "present", None, True),
        ("/items/*/sku", "present", None, False),
        ("/gone/below", "present", None, False),
    ],
)
def test_a_condition_is_met_only_by_a_value_of_its_type(pointer: str, op: str, value: Any, met: bool) -> None:
    assert is_met(condition(pointer, op, value), ARGUMENTS) is met


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("path", ["/data/../etc/passwd", "/data/./x", "data/x", "/data\0/x", "/data\\..\\x", 5, None])
def test_a_path_that_could_lead_elsewhere_is_within_nothing(path: Any) -> None:
    assert not is_met(condition("/path", "within", "/data"), {"path": path})
    assert not is_met(condition("/path", "within", "/"), {"path": path})


@pytest.mark.req("TOOLS-15")
def test_an_operator_that_is_not_known_is_not_met() -> None:
    assert not is_met({"pointer": "/currency", "op": "resembles", "value": "EUR"}, ARGUMENTS)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("arguments", [None, [], "text", 5])
def test_arguments_that_are_no_object_meet_nothing(arguments: Any) -> None:
    assert not is_met(condition("/currency", "equals", "EUR"), arguments)


@pytest.mark.req("TOOLS-15")
def test_what_is_unmet_says_what_is_asked_and_not_what_was_given() -> None:
    secret = "4111-1111-1111-1111"
    asked = [condition("/card", "in", ["a", 2, None]), condition("/total", "at_most", 5), condition("/ok", "present")]

    found = list_unmet_conditions(asked, {"card": secret, "total": 987654, "ok": 1})

    assert [each["pointer"] for each in found] == ["/card", "/total"]
    assert found[0]["message"] == "/card must be one of “a”, 2, null."
    assert found[1]["message"] == "/total must be a number up to 5."
    assert secret not in json.dumps(found)
    assert "987654" not in json.dumps(found)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("conditions", "pointer"),
    [
        ({}, ""),
        (["x"], "/0"),
        ([{"op": "present"}], "/0/pointer"),
        ([condition("currency", "present")], "/0/pointer"),
        ([condition("", "present")], "/0/pointer"),
        ([condition("/a~2", "present")], "/0/pointer"),
        ([condition("/" + "a" * 300, "present")], "/0/pointer"),
        ([condition("/a", "present"), condition("/a", "like", "x")], "/1/op"),
        ([{"pointer": "/a", "op": ["in"]}], "/0/op"),
        ([condition("/a", "equals", {})], "/0/value"),
        ([condition("/a", "equals", float("nan"))], "/0/value"),
        ([condition("/a", "in", "text")], "/0/value"),
        ([condition("/a", "in", [])], "/0/value"),
        ([condition("/a", "in", [[]])], "/0/value"),
        ([condition("/a", "at_most", "5")], "/0/value"),
        ([condition("/a", "at_least", True)], "/0/value"),
        ([condition("/a", "starts_with", "")], "/0/value"),
        ([condition("/a", "within", "/a/../b")], "/0/value"),
        ([condition("/a", "length_at_most", -1)], "/0/value"),
        ([condition("/a", "present", 1)], "/0/value"),
        ([condition("/a", "present") | {"note": 1}], "/0/note"),
        ([condition("/a", "present")] * (MAX_CONDITIONS + 1), ""),
        ([condition("/a", "equals", "x" * 3000)], ""),
    ],
)
def test_a_condition_that_means_nothing_is_refused_at_its_place(conditions: Any, pointer: str) -> None:
    assert [finding["pointer"] for finding in validate_conditions(conditions)] == [pointer]


@pytest.mark.req("TOOLS-15")
def test_every_operator_says_what_its_value_is() -> None:
    assert set(VALUES) == set(OPS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab*0"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("TOOLS-15")
@given(arguments=JSON, pointer=st.lists(st.sampled_from("ab*0"), min_size=1, max_size=3), number=st.integers())
def test_something_is_never_both_present_and_absent_and_a_missing_value_meets_nothing_else(
    arguments: Any, pointer: list[str], number: int
) -> None:
    place = "/" + "/".join(pointer)
    present, absent = (is_met(condition(place, op), arguments) for op in ("present", "absent"))

    assert not (present and absent)
    if absent:
        met = [op for op in ("equals", "at_most", "at_least") if is_met(condition(place, op, number), arguments)]
        assert met == []


@pytest.mark.req("TOOLS-15")
@given(arguments=JSON, limit=st.integers(-5, 5))
def test_a_wider_limit_is_met_whenever_a_narrower_one_is(arguments: Any, limit: int) -> None:
    if is_met(condition("/a", "at_most", limit), arguments):
        assert is_met(condition("/a", "at_most", limit + 1), arguments)
