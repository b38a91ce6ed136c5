"""Schema forms: does a form show every value of a schema, and is what it sends the same value again?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kernel.components.schema_form.builder import MAX_DEPTH, MAX_FIELDS, MAX_ROWS, FormBuilder
from kernel.components.schema_form.fields import ABSENT, SchemaField
from kernel.components.schema_form.shapes import ControlKind, is_same
from kernel.problems import TooLarge
from tests.support.sent_forms import SentForm
from unitools.checks.schemas import check_schema, compile_schema

RECURSIVE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "parts": {"type": "array", "items": {"$ref": "#"}},
        "next": {"$ref": "#"},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def draw(field: SchemaField) -> SentForm:
    return SentForm(render_to_string("components/schema_field.html", {"field": field, "look_again": "/again"}))


def send(schema: dict[str, Any], value: Any) -> SchemaField:
    return FormBuilder(schema).take(draw(FormBuilder(schema).fill(value)).values)


def press(schema: dict[str, Any], field: SchemaField, do: str) -> SchemaField:
    form = draw(field)
    assert do in form.buttons
    return FormBuilder(schema).take(form.values, do=do)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
names = st.one_of(st.sampled_from(["a", "b", "sku", "x y", "a/b", "m~n", "p#0", "q*1", "r!"]), texts)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70)
anything = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def valued_schemas(draw_: Any, depth: int = 3) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    """A schema, and how values of it are made."""
    leaves = ["text", "number", "integer", "boolean", "enum", "const", "any", "date"]
    nested = ["array", "tuple", "object", "map", "oneOf", "anyOf", "nullable", "types", "allOf"]
    kind = draw_(st.sampled_from(leaves + (nested if depth else [])))
    inner = valued_schemas(depth - 1)
    match kind:
        case "text":
            return {"type": "string", "maxLength": draw_(st.sampled_from([8, 200]))}, texts
        case "number":
            return {"type": "number"}, numbers
        case "integer":
            return {"type": "integer", "minimum": -5, "maximum": 5}, st.integers(-5, 5)
        case "boolean":
            return {"type": "boolean"}, st.booleans()
        case "enum":
            values = draw_(st.lists(anything, min_size=1, max_size=4))
            return {"enum": values}, st.sampled_from(values)
        case "const":
            value = draw_(anything)
            return {"const": value}, st.just(value)
        case "any":
            return {}, anything
        case "date":
            return {"type": "string", "format": "date"}, st.dates().map(str)
        case "array":
            schema, values = draw_(inner)
            return {"type": "array", "items": schema}, st.lists(values, max_size=3)
        case "tuple":
            (first, one), (second, other) = draw_(inner), draw_(inner)
            return {"type": "array", "prefixItems": [first, second], "items": False}, st.tuples(one, other).map(list)
        case "object":
            parts = draw_(st.dictionaries(names, inner, max_size=4))
            needed = draw_(st.lists(st.sampled_from(sorted(parts)), unique=True)) if parts else []
            schema = {
                "type": "object",
                "properties": {name: each for name, (each, _) in parts.items()},
                "required": needed,
            }
            if draw_(st.booleans()):
                schema["additionalProperties"] = False
            optional = {name: values for name, (_, values) in parts.items() if name not in needed}
            made = st.fixed_dictionaries({name: parts[name][1] for name in needed}, optional=optional)
            return schema, made
        case "map":
            schema, values = draw_(inner)
            return {"type": "object", "additionalProperties": schema}, st.dictionaries(names, values, max_size=3)
        case "oneOf" | "anyOf":
            parts = draw_(st.lists(inner, min_size=2, max_size=3))
            return {kind: [each for each, _ in parts]}, st.one_of(*(values for _, values in parts))
        case "nullable":
            schema, values = draw_(inner)
            return {"anyOf": [schema, {"type": "null"}]}, values | st.none()
        case "types":
            return {"type": ["string", "integer", "null"]}, texts | st.integers() | st.none()
        case _:
            schema, values = draw_(inner)
            return {"allOf": [schema, {"description": "More about it."}]}, values


@pytest.mark.req("CARD-3")
@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_a_form_shows_of_a_value_is_sent_as_the_same_value(data: st.DataObject) -> None:
    parts = data.draw(st.dictionaries(names, valued_schemas(), min_size=1, max_size=4))
    schema = {"type": "object", "properties": {name: each for name, (each, _) in parts.items()}}
    assume(not [each for each in check_schema("input_schema", schema) if each.severity == "error"])
    value = data.draw(st.fixed_dictionaries({}, optional={name: values for name, (_, values) in parts.items()}))
    assume(compile_schema(schema).is_valid(value))

    sent = send(schema, value)

    assert is_same(sent.read(), value), (schema, value, sent.read())
    assert sent.list_wrong() == []


@given(anything)
def test_values_that_are_not_valid_come_back_as_well(value: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}

    assert is_same(send(schema, value).read(), value)
    assert is_same(
        send(
            {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "boolean"}}}}, {"a": value}
        ).read(),
        {"a": value},
    )


def nest(levels: int) -> dict[str, Any]:
    return (
        {"name": "leaf"}
        if not levels
        else {"name": f"at {levels}", "parts": [nest(levels - 1)], "next": {"name": "one"}}
    )


def test_a_recursive_schema_is_a_form_as_far_as_it_goes_and_json_below() -> None:
    value = nest(MAX_DEPTH + 4)

    first = draw(FormBuilder(RECURSIVE).propose())
    sent = send(RECURSIVE, value)

    assert list(first.values) == ["h:", "t:/name"]
    assert sent.read() == value
    assert any(each.kind is ControlKind.ANY for each in sent.walk() if isinstance(each, SchemaField))


def test_a_list_that_is_too_long_for_a_form_stands_there_as_json() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
    value = {"n": list(range(MAX_ROWS + 1))}

    assert [each for each in draw(FormBuilder(schema).fill(value)).values if each.startswith("j:")] == ["j:/n"]
    assert send(schema, value).read() == value


def branching(ways: int) -> dict[str, Any]:
    """A schema of which each object needs as many of its own kind."""
    names = [f"c{place}" for place in range(ways)]
    node = {
        "type": "object",
        "properties": {name: {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]} for name in names},
        "required": names,
    }
    return {**node, "$defs": {"n": node}}


@pytest.mark.parametrize("ways", [4, 5])
def test_a_form_that_was_sent_has_no_more_fields_than_one_that_is_drawn(ways: int) -> None:
    schema = branching(ways)

    taken = FormBuilder(schema).take({})
    again = FormBuilder(schema).take(draw(FormBuilder(schema).propose()).values)

    for field in (taken, again):
        assert sum(1 for _ in field.walk()) <= MAX_FIELDS + MAX_DEPTH * ways
    assert taken.read()
    assert taken.list_wrong()


def test_a_form_that_counts_more_rows_than_a_page_sends_is_refused() -> None:
    row = {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}
    sent = {"n:": "60"} | {f"{mark}:#{place}": "60" for place in range(60) for mark in "nh"}

    with pytest.raises(TooLarge):
        FormBuilder({"type": "array", "items": row}).take(
            sent | {f"n:#{place}#{inner}": "60" for place in range(60) for inner in range(10)}
        )


def test_entries_are_added_and_removed_by_buttons_and_what_was_typed_stays() -> None:
    schema = {
        "type": "object",
        "properties": {
            "lines": {
                "type": "array",
                "items": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]},
            }
        },
    }
    field = FormBuilder(schema).fill({"lines": [{"sku": "A"}, {"sku": "B"}]})

    field = press(schema, field, "add:/lines")
    assert field.read() == {"lines": [{"sku": "A"}, {"sku": "B"}, {}]} or field.list_wrong()
    typed = draw(field).values | {"t:/lines#2/sku": "C"}
    field = FormBuilder(schema).take(typed, do="remove:/lines#0")

    assert field.read() == {"lines": [{"sku": "B"}, {"sku": "C"}]}
    assert "lines" not in press(schema, field, "drop:/lines").read()


def test_optional_parts_are_added_with_their_defaults() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "object", "properties": {"country": {"type": "string", "default": "DE"}}},
            "n": {"type": "integer", "default": 3},
        },
    }
    field = FormBuilder(schema).propose()

    assert field.read() == {"n": 3}
    assert press(schema, field, "add:/to").read() == {"n": 3, "to": {"country": "DE"}}


def test_another_shape_is_chosen_without_a_script() -> None:
    schema = {
        "type": "object",
        "properties": {
            "by": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "card"}, "number": {"type": "string"}},
                        "required": ["kind", "number"],
                    },
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "bank"}, "iban": {"type": "string"}},
                        "required": ["kind", "iban"],
                    },
                ]
            }
        },
        "required": ["by"],
    }
    form = draw(FormBuilder(schema).propose())
    field = FormBuilder(schema).take(form.values | {"b:/by": "1"}, do="choose:/by")

    field = FormBuilder(schema).take(draw(field).values | {"t:/by!/iban": "DE02"})

    assert field.read() == {"by": {"kind": "bank", "iban": "DE02"}}


@pytest.mark.parametrize(
    ("schema", "typed", "error"),
    [
        ({"type": "integer"}, {"t:/a": "three"}, "Write a number, such as 3 or 2.5."),
        ({"type": "number"}, {"t:/a": "1e999"}, "This number is too large."),
        ({}, {"j:/a": "{"}, "The body is not JSON"),
        ({"type": "string"}, {"t:/a": ""}, "Fill this in."),
        ({"enum": ["x", "y"]}, {"k:/a": ""}, "Choose one."),
    ],
)
def test_what_cannot_be_read_stays_and_is_named_at_its_field(schema: Any, typed: dict[str, str], error: str) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"]}

    field = FormBuilder(whole).take(typed)
    field.read()

    (wrong,) = field.list_wrong()
    assert wrong.errors[0].startswith(error)
    assert draw(field).values.items() >= typed.items()
    assert wrong.id in draw(field).ids


def test_findings_stand_at_the_field_that_their_pointer_names() -> None:
    schema = {
        "type": "object",
        "properties": {"a/b": {"type": "array", "items": {"type": "string"}}, "a": {"type": "string"}},
    }
    field = FormBuilder(schema).fill({"a/b": ["x", "y"], "a": "z"})

    field.place_findings([{"pointer": "/a~1b/1", "message": "Too short."}, {"pointer": "", "message": "Too few."}])

    assert {each.id: each.errors for each in field.list_wrong()} == {
        field.id: ["Too few."],
        field.children[0].children[1].id: ["Too short."],
    }


def test_an_optional_text_is_left_out_unless_the_empty_text_is_meant() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert send(schema, {}).read() == {}
    assert send(schema, {"a": ""}).read() == {"a": ""}
    assert FormBuilder(schema).propose().children[0].read() is ABSENT


@pytest.mark.parametrize("text", ["\nbegins with a line end", "two\nlines", "a\rb", "tab\t", "  spaces  ", "<b>&amp;"])
def test_texts_come_back_letter_by_letter(text: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}

    assert send(schema, {"a": text}).read() == {"a": text}, json.dumps(text)
