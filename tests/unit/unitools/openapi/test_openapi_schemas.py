"""Schemas of OpenAPI documents: do they become those of a manifest, with what is lost said, and in what size?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.openapi_documents import (
    body_of,
    make,
    of_schemas,
)
from unitools.checks import check_manifest
from unitools.openapi.arguments import MAX_INPUT_BYTES
from unitools.openapi.documents import DocumentUnfit


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("said", "made"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        (
            {"allOf": [{"type": "string"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"exclusiveMaximum": True, "maximum": 9, "type": "integer"}, {"type": "integer", "exclusiveMaximum": 9}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "format": "int64", "maximum": 9223372036854775807}, {"type": "integer"}),
        ({"type": "string", "example": "x", "x-a": 1, "xml": {}, "externalDocs": {}}, {"type": "string"}),
        ({"type": "any"}, {}),
        ({"type": "array", "items": [{"type": "string"}]}, {"type": "array", "prefixItems": [{"type": "string"}]}),
        ({"type": "string", "required": True, "enum": []}, {"type": "string"}),
        ({"type": "string", "enum": ["a", "a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "string", "pattern": "(?=a)b"}, {"type": "string"}),
        ({"type": "string", "maxLength": 10.0}, {"type": "string", "maxLength": 10}),
        ({"type": "string", "minLength": "3"}, {"type": "string"}),
        ({"anyOf": []}, {}),
        ("text", {}),
    ],
)
def test_a_schema_of_3_0_becomes_one_of_2020_12(said: Any, made: dict[str, Any]) -> None:
    assert body_of(said) == made


@pytest.mark.req("BRING-1")
def test_what_is_lost_is_told_with_its_place() -> None:
    said = of_schemas(
        {},
        body={
            "type": "object",
            "properties": {"v": {"type": "odd", "pattern": "(?=a)", "discriminator": {}, "enum": []}},
        },
    )

    notes = make(said)[1]

    assert {each.pointer.rpartition("/")[2] for each in notes} == {"type", "pattern", "discriminator", "enum"}
    assert all(each.pointer.startswith("/paths/~1items/post/requestBody") for each in notes)


@pytest.mark.req("BRING-1")
def test_what_stands_beside_a_reference_counts_since_3_1() -> None:
    other = {"$ref": "#/components/schemas/a", "maxLength": 3, "description": "Short."}

    assert body_of(other, a={"type": "string"}) == {"$ref": "#/$defs/a", "description": "Short."}
    assert body_of(other, openapi="3.1.0", a={"type": "string"}) == {
        "$ref": "#/$defs/a",
        "description": "Short.",
        "maxLength": 3,
    }
    assert body_of({"type": ["string", "null"], "exclusiveMinimum": 1, "const": "a"}, openapi="3.1.0") == {
        "type": ["string", "null"],
        "exclusiveMinimum": 1,
        "const": "a",
    }


@pytest.mark.req("BRING-1")
def test_a_schema_within_itself_stays_one_definition() -> None:
    node = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/node"}}},
    }

    made, _ = make(
        of_schemas(
            {"node": node}, body={"$ref": "#/components/schemas/node"}, answer={"$ref": "#/components/schemas/node"}
        )
    )

    reference = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    assert made["input_schema"]["properties"] == {"children": reference}
    assert made["input_schema"]["$defs"] == {"node": {"type": "object", "properties": {"children": reference}}}
    assert list(made["output_schema"]["$defs"]) == ["node"]


@pytest.mark.req("BRING-1")
def test_references_that_multiply_are_not_expanded() -> None:
    def level(number: int) -> dict[str, Any]:
        next_one = {"$ref": f"#/components/schemas/d{number + 1}"}
        return {"type": "object", "properties": dict.fromkeys("abcdefgh", next_one)}

    schemas = {f"d{number}": level(number) for number in range(30)} | {"d30": {"type": "string"}}
    said = of_schemas(
        schemas,
        body={"type": "object", "properties": {"v": {"$ref": "#/components/schemas/d0"}}},
        answer={"$ref": "#/components/schemas/d0"},
    )

    with pytest.raises(DocumentUnfit, match="No manifest can be made of it: References multiply"):
        make(said)
    said["paths"]["/items"]["post"].pop("requestBody")
    made, notes = make(said)
    assert len(json.dumps(made)) < 8_000
    assert "not described" in " ".join(each.message for each in notes)


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("loop", [{"$ref": "#/components/schemas/a"}, {"allOf": [{"$ref": "#/components/schemas/a"}]}])
def test_a_schema_that_is_nothing_but_itself_is_refused_where_it_is_sent(loop: dict[str, Any]) -> None:
    body = {"type": "object", "properties": {"v": {"$ref": "#/components/schemas/a"}}}

    with pytest.raises(DocumentUnfit, match="for ever"):
        make(of_schemas({"a": loop}, body=body))
    made, notes = make(of_schemas({"a": loop}, answer={"$ref": "#/components/schemas/a"}))
    assert made["output_schema"]["properties"]["body"] == {}
    assert "The answer is not described" in notes[-1].message


@pytest.mark.req("BRING-1")
def test_deep_nesting_gets_definitions_of_its_own() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for number in range(25):
        deep = {"type": "object", "properties": {f"p{number}": deep}}

    made, _ = make(of_schemas({}, body=deep, answer=deep))

    assert not [each for each in check_manifest(made) if each.severity == "error"]
    assert "p0" in json.dumps(made["input_schema"])


@pytest.mark.req("BRING-1")
def test_of_a_large_body_what_is_deepest_is_not_described() -> None:
    wide: dict[str, dict[str, Any]] = {
        f"s{number}": {
            "type": "object",
            "properties": {f"p{at}": {"type": "string", "description": "x" * 90} for at in range(30)},
        }
        for number in range(60)
    }
    body = {"type": "object", "properties": {name: {"$ref": f"#/components/schemas/{name}"} for name in wide}}

    made, notes = make(of_schemas(wide, body=body))

    assert len(json.dumps(made["input_schema"])) < 2 * MAX_INPUT_BYTES
    assert {"What is nested deeper is not described: any value will do there, and the service judges."} <= {
        each.message for each in notes
    }
    huge = {
        name: said
        | {
            "description": "y" * 300,
            "properties": {f"{key}{n}": value for key, value in said["properties"].items() for n in range(5)},
        }
        for name, said in wide.items()
    }
    with pytest.raises(DocumentUnfit, match="more than 256 KiB") as caught:
        make(of_schemas(huge, body=body))
    assert "requestBody" in caught.value.pointer


DEEP = 40


def of_levels(make_level: Any) -> dict[str, Any]:
    """Each level has the next one twice, so that whoever wrote it out would write a million millions."""
    levels = {f"L{n}": make_level({"$ref": f"#/components/schemas/L{n + 1}"}) for n in range(DEEP)}
    return levels | {f"L{DEEP}": {"type": "object", "properties": {"x": {"type": "string"}}}}


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "level",
    [
        lambda below: {"allOf": [below, below]},
        lambda below: {"anyOf": [below, below]},
        lambda below: {"oneOf": [below, below]},
        lambda below: {"type": "object", "properties": {"a": below, "b": below}},
        lambda below: {"allOf": [{"$ref": "#/components/schemas/L0"}, below]},
    ],
    ids=["allOf", "anyOf", "oneOf", "properties", "back"],
)
def test_references_that_multiply_are_refused_as_a_body_and_left_out_of_an_answer(level: Any) -> None:
    first = {"$ref": "#/components/schemas/L0"}

    with pytest.raises(DocumentUnfit) as refused:
        make(of_schemas(of_levels(level), body=first))
    made, notes = make(of_schemas(of_levels(level), answer=first))

    assert refused.value.pointer
    assert refused.value.remedy
    assert len(json.dumps(made)) < 4000
    assert notes
