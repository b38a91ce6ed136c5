"""Gemini subset: does a schema in Google's words hold for the same values as a JSON Schema?"""

from __future__ import annotations

from typing import Any

import pytest

from kernel.problems import SchemaInvalid
from llm.output_schemas import find_schema_mistake, get_validator
from llm.served.gemini_subset import MAX_DEPTH, read_subset
from unitools.dialects.renderers.base import Notes
from unitools.dialects.renderers.gemini_schema import Subset

PERSON: dict[str, Any] = {
    "type": "OBJECT",
    "title": "Person",
    "properties": {
        "name": {"type": "STRING", "minLength": "1", "example": "Ada"},
        "age": {"type": "INTEGER", "format": "int32", "nullable": True, "minimum": 0},
        "mood": {"type": "STRING", "format": "enum", "enum": ["good", "bad"], "nullable": True},
        "tags": {"type": "ARRAY", "items": {"type": "STRING"}, "maxItems": "2"},
        "size": {"anyOf": [{"type": "NUMBER"}, {"type": "STRING"}], "nullable": True},
    },
    "required": ["name"],
    "propertyOrdering": ["age", "name"],
}


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ({"name": "Ada"}, True),
        ({"name": "Ada", "age": None, "mood": None, "size": None}, True),
        ({"name": "Ada", "age": 3, "mood": "good", "tags": ["a", "b"], "size": "M"}, True),
        ({"name": ""}, False),
        ({"age": 3}, False),
        ({"name": "Ada", "age": -1}, False),
        ({"name": "Ada", "mood": "odd"}, False),
        ({"name": "Ada", "tags": ["a", "b", "c"]}, False),
        ({"name": None}, False),
        ({"name": "Ada", "size": []}, False),
    ],
)
def test_types_null_bounds_and_choices_hold_as_google_means_them(value: Any, holds: bool) -> None:
    schema = read_subset(PERSON, "")

    assert find_schema_mistake(schema) is None
    assert get_validator(schema).is_valid(value) is holds


@pytest.mark.req("LLM-8")
def test_the_order_of_properties_is_that_which_is_asked_for() -> None:
    assert list(read_subset(PERSON, "")["properties"]) == ["age", "name", "mood", "tags", "size"]


@pytest.mark.req("LLM-8")
@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "TEXT"}, "/type"),
        ({"type": ["STRING"]}, "/type"),
        ({"not": {}}, "/not"),
        ({"properties": {"a/b": {"oneOf": []}}}, "/properties/a~1b/oneOf"),
        ({"items": []}, "/items"),
        ({"any_of": [{"const": 1}]}, "/any_of/0/const"),
        ({"properties": []}, "/properties"),
    ],
)
def test_what_the_subset_has_no_word_for_is_refused_with_its_place(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        read_subset(schema, "")

    assert refused.value.details["findings"][0]["pointer"] == pointer


@pytest.mark.req("LLM-8")
def test_a_schema_without_end_is_refused() -> None:
    deep: dict[str, Any] = {"type": "STRING"}
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "ARRAY", "items": deep}

    with pytest.raises(SchemaInvalid, match="deep"):
        read_subset(deep, "")


@pytest.mark.req("LLM-8", "TOOLS-30")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": ["integer", "null"], "minimum": 1}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}}},
    ],
)
def test_what_the_hub_says_of_a_tool_in_googles_words_is_read_again_as_the_same(schema: dict[str, Any]) -> None:
    again = get_validator(read_subset(Subset(Notes("f")).root(schema), ""))

    values: tuple[Any, ...] = (
        {"a": None},
        {"a": 1},
        {"a": 0},
        {"a": "x"},
        {"a": "xyz"},
        {"a": ["x"]},
        {"a": []},
        {"a": ["z"]},
        {},
    )
    for value in values:
        assert again.is_valid(value) is get_validator(schema).is_valid(value), value
