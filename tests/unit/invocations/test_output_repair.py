"""A tool's output is brought into the shape of its schema where that has one meaning, and nothing is made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invocations.end.output_repair import COERCE, DROP_UNKNOWN, WRAP, RepairedOutput, repair_output
from unitools.checks import compile_schema

ALL = (WRAP, COERCE, DROP_UNKNOWN)
ITEM = {
    "type": "object",
    "required": ["sku"],
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}, "open": {"type": "boolean"}},
    "additionalProperties": False,
}
OF_NUMBER = {
    "type": "object",
    "required": ["total"],
    "properties": {"total": {"type": "number"}, "note": {"type": "string"}},
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "integer"},
    {"type": "string"},
    {"type": ["number", "null"]},
    {"type": "array", "items": {"type": "integer"}},
    ITEM,
    OF_NUMBER,
    {"type": "array", "items": ITEM, "maxItems": 3},
    {"type": "object", "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}}, "$defs": {"item": ITEM}},
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
    {"allOf": [{"properties": {"a": {"type": "string"}}}], "type": "object", "unevaluatedProperties": False},
    {"type": "array", "items": {"$ref": "#"}},
]  # fmt: skip
NAMES = st.sampled_from(["sku", "count", "open", "total", "items", "a", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["12", "-1", "true", "false", "1e3", "0.5", "x", "", "007", "1e999"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=4),
    max_leaves=8,
)  # fmt: skip


def repaired(value: Any, schema: dict[str, Any], *allowed: str) -> RepairedOutput | None:
    return repair_output(value, schema, compile_schema(schema), allowed or ALL)


def texts_of(value: Any) -> set[str]:
    """What is said in a value: each leaf as JSON writes it, a text as it is."""
    if isinstance(value, dict):
        return set().union(*(texts_of(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(texts_of(each) for each in value))
    return {value if isinstance(value, str) else json.dumps(value)}


def same_numbers(text: str) -> set[str]:
    """ "1e3" and 1000.0 say the same."""
    try:
        return {text, json.dumps(float(text))}
    except ValueError:
        return {text}


@pytest.mark.req("TOOLS-23")
@given(VALUES, st.sampled_from(SCHEMAS), st.sets(st.sampled_from(ALL)))
def test_what_is_repaired_is_valid_and_says_nothing_that_was_not_there(
    value: Any, schema: dict[str, Any], allowed: set[str]
) -> None:
    validator = compile_schema(schema)
    before = json.dumps(value)

    found = repair_output(value, schema, validator, allowed)

    assert json.dumps(value) == before  # nothing is changed in place
    if found is not None:
        assert validator.is_valid(found.value)
        assert not validator.is_valid(value)
        assert {repair.kind for repair in found.repairs} <= allowed
        said = set().union(*map(same_numbers, texts_of(value)))
        assert all(same_numbers(text) & said for text in texts_of(found.value))


@pytest.mark.req("TOOLS-23")
@given(VALUES, st.sampled_from(SCHEMAS))
def test_what_is_valid_is_never_touched(value: Any, schema: dict[str, Any]) -> None:
    found = repaired(value, schema)

    assert found is None or not compile_schema(schema).is_valid(value)


@pytest.mark.req("TOOLS-23")
@pytest.mark.parametrize(
    ("value", "schema", "expected", "repairs"),
    [
        ("12", {"type": "integer"}, 12, [("", COERCE)]),
        ("true", {"type": "boolean"}, True, [("", COERCE)]),
        (12, {"type": "string"}, "12", [("", COERCE)]),
        ("0.5", {"type": "number"}, 0.5, [("", COERCE)]),
        (3, {"type": "array"}, [3], [("", WRAP)]),
        ("A-1", ITEM, {"sku": "A-1"}, [("", WRAP)]),
        ({"sku": "A", "secret": 1}, ITEM, {"sku": "A"}, [("", DROP_UNKNOWN)]),
        ({"sku": "A", "count": "2", "x": 1}, ITEM, {"sku": "A", "count": 2}, [("/count", COERCE), ("", DROP_UNKNOWN)]),
        ("A", {"type": "array", "items": ITEM}, [{"sku": "A"}], [("", WRAP), ("/0", WRAP)]),
        ({"items": {"sku": 7}}, SCHEMAS[7], {"items": [{"sku": "7"}]}, [("/items", WRAP), ("/items/0/sku", COERCE)]),
    ],
)  # fmt: skip
def test_each_repair_does_what_its_name_says(
    value: Any, schema: dict[str, Any], expected: Any, repairs: list[tuple[str, str]]
) -> None:
    found = repaired(value, schema)

    assert found is not None
    assert found.value == expected
    assert type(found.value) is type(expected)
    assert [tuple(each) for each in found.repairs] == repairs


@pytest.mark.req("TOOLS-23")
@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (None, {"type": "integer"}),
        (None, {"type": "array"}),
        ("0x12", {"type": "integer"}),
        ("1.5", {"type": "integer"}),
        ("007", {"type": "integer"}),
        ("1e999", {"type": "number"}),
        ("0.1000000000000000055", {"type": "number"}),  # would be rounded
        ("yes", {"type": "boolean"}),
        (True, {"type": "string"}),
        (1, {"type": "boolean"}),
        ("12", {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ("x", {"type": ["array", "object"]}),
        ("x", {"type": "object", "required": ["a", "b"]}),
        (3, ITEM),  # its one required property is a text
        ("12", {"type": "integer", "maximum": 11}),
        ({}, ITEM),
    ],
)
def test_what_has_no_one_meaning_is_left_alone(value: Any, schema: dict[str, Any]) -> None:
    assert repaired(value, schema) is None


@pytest.mark.req("TOOLS-23")
@pytest.mark.parametrize(("value", "schema", "needed"), [
    ("12", {"type": "integer"}, COERCE), (3, {"type": "array"}, WRAP), ({"sku": "A", "x": 1}, ITEM, DROP_UNKNOWN),
])  # fmt: skip
def test_only_what_the_manifest_allows_is_done(value: Any, schema: dict[str, Any], needed: str) -> None:
    assert repaired(value, schema, needed) is not None
    assert repaired(value, schema, *(set(ALL) - {needed})) is None


@pytest.mark.req("TOOLS-23")
def test_names_that_the_schema_does_not_declare_are_not_told() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}

    found = repaired({"john@example.com": "1", "n": "2"}, schema)

    assert found is not None
    assert {repair.pointer for repair in found.repairs} == {"/*", "/n"}


SHARED = {
    "type": "object",
    "$defs": {"counted": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    "allOf": [{"$ref": "#/$defs/counted"}],
    "properties": {"name": {"type": "string"}},
    "unevaluatedProperties": False,
}


@pytest.mark.req("TOOLS-23")
def test_what_is_declared_and_does_not_fit_is_not_dropped_as_unknown() -> None:
    """A property that fails its schema counts as unevaluated as well."""
    found = repaired({"n": "1", "name": "x", "more": 1}, SHARED)

    assert found is not None
    assert found.value == {"n": 1, "name": "x"}
    assert repaired({"n": "one", "name": "x"}, SHARED) is None
