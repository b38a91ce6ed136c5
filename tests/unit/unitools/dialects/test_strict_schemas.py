"""Strict schemas: does a strict schema accept exactly what the original accepts, or is strict off and said to be?"""

from __future__ import annotations

import json
from datetime import datetime
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema_rs
import pytest
from anthropic import transform_schema
from hypothesis import given
from hypothesis import strategies as st
from openai.lib._pydantic import _ensure_strict_json_schema
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from tests.support.schema_pairs import POOL, any_schema, judge, value_of
from tests.support.sdk_calls import dispatched
from unitools import Status, Universe
from unitools.calls import ToolSpec
from unitools.dialects import RenderOptions, Unrenderable, render
from unitools.dialects.left_out import drop_left_out
from unitools.dialects.schemas import CannotSay
from unitools.dialects.strict_schemas import OPENAI, make_strict


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Address(Closed):
    city: str
    zip: Annotated[str, Field(pattern="^[0-9]{5}$")] | None = None


class Node(Closed):
    value: int
    next: Node | None = None


class Open(BaseModel):
    city: str


def told(dialect: str = "openai", strict: Any = "auto", /, **fields: Any) -> tuple[dict[str, Any], bool, str]:
    """The schema of a tool with these parameters, whether it is strict, and what was said about it."""
    model = create_model("Model", __base__=Closed, **fields)
    rendered = render([ToolSpec("t", "T", model.model_json_schema())], dialect, RenderOptions(strict=strict))
    function = rendered.payload[0].get("function", rendered.payload[0])
    schema = function.get("parameters") or function.get("input_schema")
    return schema, function.get("strict", False), " ".join(each.message for each in rendered.diagnostics)


LOSSLESS: dict[str, dict[str, Any]] = {
    "plain": {"symbol": (str, ...), "n": (int, ...), "at": (float, ...), "ok": (bool, ...)},
    "choices": {"ccy": (Literal["EUR", "USD"], ...), "only": (Literal["a"], ...)},
    "nullable that may be left out": {"q": (str, ...), "limit": (int | None, None)},
    "bounds": {"n": (Annotated[int, Field(ge=1, lt=10)], ...)},
    "lists": {"tags": (Annotated[list[str], Field(max_length=3)], ...)},
    "models": {"where": (Address, Field(description="of the house")), "others": (list[Address], ...)},
    "recursive": {"node": (Node, ...)},
    "nothing": {},
}
LOSSY: dict[str, tuple[dict[str, Any], str]] = {
    "a free map": ({"counts": (dict[str, int], ...)}, "further properties"),
    "a default": ({"ccy": (str, "EUR")}, "null would not mean the same"),
    "a deeper default": ({"where": (create_model("Inner", __base__=Closed, n=(int, 3)), ...)}, "null would not mean"),
    "anything": ({"value": (Any, ...)}, "any value will do"),
    "an open model": ({"where": (Open, ...)}, "further properties"),
    "a short text": ({"name": (Annotated[str, Field(max_length=3)], ...)}, "maxLength is not taken"),
    "a tuple": ({"pair": (tuple[int, str], ...)}, "is not taken"),
    "a set": ({"tags": (set[str], ...)}, "uniqueItems is not taken"),
    "a nullable without a default that is null": ({"n": (int | None, 5)}, "null would not mean the same"),
    "a pattern that looks ahead": (
        {"n": (Annotated[str, Field(json_schema_extra={"pattern": "(?=a)b"})], ...)},
        "looks around",
    ),
}

VALUES: list[Any] = [
    {},
    {"symbol": "A", "n": 1, "at": 1.5, "ok": True},
    {"symbol": "A", "n": 1, "at": 1.5},
    {"symbol": 1, "n": 1, "at": 1.5, "ok": True},
    {"ccy": "EUR", "only": "a"},
    {"ccy": "GBP", "only": "a"},
    {"q": "x", "limit": None},
    {"q": "x", "limit": 3},
    {"q": "x", "limit": "3"},
    {"n": 9},
    {"n": 10},
    {"tags": ["a"]},
    {"tags": ["a", "b", "c", "d"]},
    {"where": {"city": "Ulm", "zip": None}, "others": []},
    {"where": {"city": "Ulm", "zip": "89073"}, "others": [{"city": "Ulm", "zip": None}]},
    {"where": {"city": "Ulm", "zip": "x"}, "others": []},
    {"where": {"city": "Ulm", "zip": None, "more": 1}, "others": []},
    {"node": {"value": 1, "next": {"value": 2, "next": None}}},
    {"node": {"value": 1, "next": {"value": "b", "next": None}}},
    {"more": 1},
]


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize("fields", LOSSLESS.values(), ids=LOSSLESS)
@pytest.mark.parametrize("dialect", ["openai", "openai-responses"])
def test_what_can_be_strict_is_and_accepts_what_pydantic_accepts(dialect: str, fields: dict[str, Any]) -> None:
    schema, strict, said = told(dialect, **fields)
    model = create_model("Model", __base__=Closed, **fields)

    assert strict, said
    for value in VALUES:
        try:
            accepted = bool(model.model_validate(value, strict=True))
        except ValidationError:
            accepted = False
        assert jsonschema_rs.is_valid(schema, value) == accepted, value


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize("fields", LOSSLESS.values(), ids=LOSSLESS)
def test_openais_own_conversion_finds_nothing_more_to_change(fields: dict[str, Any]) -> None:
    schema, _, _ = told(**fields)

    before = repr(schema)
    assert repr(_ensure_strict_json_schema(schema, path=(), root=schema)) == before


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize(("fields", "reason"), LOSSY.values(), ids=LOSSY)
def test_what_would_lose_something_is_not_strict_and_says_why(fields: dict[str, Any], reason: str) -> None:
    schema, strict, said = told(**fields)

    assert not strict
    assert reason in said
    assert jsonschema_rs.is_valid(schema, {}) == all(field[1] is not ... for field in fields.values())
    with pytest.raises(Unrenderable, match=reason):
        told("openai", True, **fields)


@pytest.mark.req("UNI-4")
def test_a_default_and_a_free_map_survive() -> None:
    schema, _, _ = told(ccy=(str, "EUR"), counts=(dict[str, int], ...))

    assert schema["properties"]["ccy"]["default"] == "EUR"
    assert jsonschema_rs.is_valid(schema, {"counts": {"a": 1}})


@pytest.mark.req("UNI-4")
def test_strict_is_off_where_it_was_not_wanted_and_for_models_that_cannot_be_held_to_it() -> None:
    tool = ToolSpec("t", "T", create_model("Model", __base__=Closed, a=(int, ...)).model_json_schema())

    assert "strict" not in render([tool], "openai", RenderOptions(strict=False)).payload[0]["function"]
    assert "strict" not in render([tool], "qwen3-32b").payload[0]["function"]
    assert render([tool], "gpt-4o").payload[0]["function"]["strict"] is True
    assert render([tool], "openai-responses", RenderOptions(strict=False)).payload[0]["strict"] is False


@pytest.mark.req("UNI-4")
def test_anthropic_is_strict_only_if_asked() -> None:
    _, by_itself, said = told("anthropic", a=(int, ...))
    schema, asked, _ = told("anthropic", True, a=(int, ...), b=(str, "x"))

    assert (by_itself, said) == (False, "")
    assert asked
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"]["default"] == "x"
    with pytest.raises(Unrenderable, match="minimum is not taken"):
        told("anthropic", True, n=(Annotated[int, Field(ge=1)], ...))


@pytest.mark.req("UNI-4")
@pytest.mark.parametrize(
    "fields",
    [
        LOSSLESS["plain"],
        LOSSLESS["choices"],
        LOSSLESS["nullable that may be left out"],
        {
            "at": (datetime, ...),
            "tags": (Annotated[list[str], Field(min_length=1)], ...),
            "ids": (list[UUID] | None, None),
        },
    ],
)
def test_anthropics_own_conversion_has_nothing_to_move_into_words(fields: dict[str, Any]) -> None:
    schema, strict, _ = told("anthropic", True, **fields)
    without_defaults = json.loads(
        json.dumps(schema), object_hook=lambda each: {k: v for k, v in each.items() if k != "default"}
    )
    converted = transform_schema(without_defaults)

    assert strict
    assert "description" not in str(converted)
    for value in VALUES:
        assert jsonschema_rs.is_valid(converted, value) == jsonschema_rs.is_valid(schema, value)


def closed(schema: Any, rng: Random) -> Any:
    """Nearer to what can be strict, so that the property below is about something."""
    if not isinstance(schema, dict):
        return schema
    said = {key: closed(value, rng) if key == "items" else value for key, value in schema.items()}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in said:
            said[key] = [closed(each, rng) for each in said[key]]
    if said.get("type") == "object" and rng.random() < 0.95:
        said = {key: said[key] for key in ("type", "properties", "required") if key in said}
        said["properties"] = {name: closed(each, rng) for name, each in said.get("properties", {}).items()}
        for name, each in said["properties"].items():
            if rng.random() < 0.4:
                said["properties"][name] = {"anyOf": [each, {"type": "null"}], "default": None}
        said["required"] = [
            name for name, each in said["properties"].items() if not isinstance(each, dict) or "default" not in each
        ]
        said["additionalProperties"] = False
    return said


def filled(schema: Any, value: Any) -> Any:
    """The value with null for each property that was left out."""
    if not isinstance(schema, dict):
        return value
    branch = next((each for each in schema.get("anyOf", ()) if judge(each).is_valid(value)), None)
    if branch is not None:
        return filled(branch, value)
    if isinstance(value, dict) and "properties" in schema:
        return {name: filled(each, value.get(name)) for name, each in schema["properties"].items()}
    if isinstance(value, list) and "items" in schema:
        return [filled(schema["items"], each) for each in value]
    return value


def can_be_strict(schema: Any, *, reads: bool = False) -> bool:
    root = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    try:
        make_strict(root, OPENAI, null_is_left_out=reads)
    except CannotSay as problem:
        assert problem.reason
        return False
    return "$ref" not in str(schema)


@pytest.mark.req("UNI-4")
@given(st.integers(min_value=0, max_value=2**32))
def test_strict_schemas_accept_exactly_the_same_but_for_null_in_place_of_what_was_left_out(seed: int) -> None:
    rng = Random(seed)
    candidates = [closed(each, rng) for each in (any_schema(rng, 2) for _ in range(30))]
    properties = dict(zip("abc", (each for each in candidates if can_be_strict(each)), strict=False))
    schema = closed({"type": "object", "properties": properties}, Random(1))
    said = make_strict(schema, OPENAI)
    assert said["required"] == list(properties)

    for value in [*rng.sample(POOL, 60), *(value_of(rng, schema, schema) for _ in range(60))]:
        if judge(said).is_valid(value):
            assert judge(schema).is_valid(value)
        if judge(schema).is_valid(value):
            assert judge(said).is_valid(filled(schema, value))


def with_defaults(schema: Any, rng: Random) -> Any:
    """Some properties may be left out and take no null."""
    if not isinstance(schema, dict):
        return schema
    said = {key: with_defaults(value, rng) if key == "items" else value for key, value in schema.items()}
    if "anyOf" in said:
        said["anyOf"] = [with_defaults(each, rng) for each in said["anyOf"]]
    if "properties" in said:
        said["properties"] = {name: with_defaults(each, rng) for name, each in said["properties"].items()}
        said["required"] = [name for name in said.get("required", ()) if rng.random() < 0.6]
    return said


@pytest.mark.req("UNI-4")
@given(st.integers(min_value=0, max_value=2**32))
def test_a_reader_that_knows_the_schemas_gets_exactly_what_the_original_accepts(seed: int) -> None:
    rng = Random(seed)
    candidates = [with_defaults(closed(each, rng), rng) for each in (any_schema(rng, 2) for _ in range(30))]
    properties = dict(zip("abc", (each for each in candidates if can_be_strict(each, reads=True)), strict=False))
    schema = with_defaults(closed({"type": "object", "properties": properties}, Random(1)), rng)
    try:
        said = make_strict(schema, OPENAI, null_is_left_out=True)
    except CannotSay:
        return

    for value in [*rng.sample(POOL, 60), *(value_of(rng, schema, schema) for _ in range(60))]:
        if not isinstance(value, dict):
            continue
        if judge(said).is_valid(value):
            assert judge(schema).is_valid(drop_left_out(value, schema))
        if judge(schema).is_valid(value):
            whole = filled(schema, value)
            assert judge(said).is_valid(whole)
            assert judge(schema).is_valid(drop_left_out(whole, schema))


@pytest.mark.req("UNI-4")
def test_a_default_stays_in_force_where_null_stands_for_it() -> None:
    u = Universe()

    class Line(Closed):
        sku: str
        quantity: int = 1

    @u.tool
    def order(lines: list[Line], currency: Literal["EUR", "USD"] = "EUR", note: str | None = None, at: int = 3) -> Any:
        """Order."""
        return [[each.model_dump() for each in lines], currency, note, at]

    shown = u.render("gpt-4o")
    function = shown.payload[0]["function"]
    given = {"lines": [{"sku": "A", "quantity": None}], "currency": None, "note": None, "at": None}

    assert function["strict"]
    assert judge(function["parameters"]).is_valid(given)
    assert "then it is 3" in function["parameters"]["properties"]["at"]["description"]
    for options in ({}, {"rendered": shown}):
        (result,) = dispatched(u, ("order", given), **options)
        assert result.value == [[{"sku": "A", "quantity": 1}], "EUR", None, 3]
    (refused,) = dispatched(u, ("order", given | {"lines": None}))
    assert refused.status is Status.INVALID_ARGUMENTS


@pytest.mark.req("UNI-4")
def test_a_listing_for_others_to_read_asks_for_no_such_null() -> None:
    _, strict, said = told(n=(int, 3))

    assert not strict
    assert "default" in said or "left out" in said
