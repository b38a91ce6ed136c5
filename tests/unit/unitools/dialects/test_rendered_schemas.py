"""Rendered schemas: do rendered schemas accept what the originals accept? The judge is the validator that the hub runs on calls."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.schema_pairs import POOL, document, judge, value_of
from unitools.calls import ToolSpec
from unitools.dialects import RenderOptions, render
from unitools.dialects.schemas import CannotSay, inline_references

SEEDS = st.integers(min_value=0, max_value=2**32)
CHOICES = {"anyOf", "oneOf", "allOf", "not", "enum", "const"}


def values_for(rng: Random, schema: Any) -> list[Any]:
    return [*rng.sample(POOL, 60), *(value_of(rng, schema, schema) for _ in range(40))]


def parameters(rng: Random) -> dict[str, Any]:
    """Of a tool: one object."""
    while (schema := document(rng)).get("type", "object") != "object":
        pass
    return {**schema, "type": "object"}


@given(SEEDS)
@pytest.mark.req("UNI-4")
def test_without_references_a_schema_accepts_the_same(seed: int) -> None:
    rng = Random(seed)
    schema = document(rng)
    try:
        said = inline_references(schema)
    except CannotSay as problem:
        assert "recursive" in problem.reason
        return

    assert "$ref" not in str(said)
    for value in values_for(rng, schema):
        assert judge(said).is_valid(value) == judge(schema).is_valid(value)


@given(SEEDS, st.sampled_from(["openai", "anthropic", "mcp"]))
@pytest.mark.req("UNI-4")
def test_where_json_schema_is_spoken_it_accepts_the_same(seed: int, dialect: str) -> None:
    rng = Random(seed)
    schema = parameters(rng)
    rendered = render([ToolSpec("t", "T", schema)], dialect, RenderOptions(strict=False))
    payload = rendered.payload[0]
    said = {"openai": lambda: payload["function"]["parameters"], "anthropic": lambda: payload["input_schema"]}.get(
        dialect, lambda: payload["inputSchema"]
    )()
    if dialect != "mcp" and CHOICES & set(schema):
        assert not {"anyOf", "oneOf", "allOf"} & set(said)  # these providers refuse them there
        return
    if any("unevaluatedItems" in each.pointer for each in rendered.diagnostics):
        return  # it says that it rules less out

    for value in values_for(rng, schema):
        assert judge(said).is_valid(value) == judge(schema).is_valid(value)


def as_json_schema(said: Any) -> dict[str, Any]:
    """What Gemini's subset says, in JSON Schema."""
    found = {
        key: value for key, value in said.items() if key not in ("type", "nullable", "properties", "items", "anyOf")
    }
    if "type" in said:
        found["type"] = said["type"].lower()
    if "properties" in said:
        found["properties"] = {name: as_json_schema(each) for name, each in said["properties"].items()}
    if "items" in said:
        found["items"] = as_json_schema(said["items"])
    if "anyOf" in said:
        assert set(said) == {"anyOf"}  # it must stand alone
        found["anyOf"] = [as_json_schema(each) for each in said["anyOf"]]
    return {"anyOf": [found, {"type": "null"}]} if said.get("nullable") else found


@given(SEEDS)
@pytest.mark.req("UNI-4")
def test_geminis_subset_rules_nothing_out_without_saying_so(seed: int) -> None:
    rng = Random(seed)
    schema = parameters(rng)
    rendered = render([ToolSpec("t", "T", schema)], "gemini", RenderOptions(on_unrenderable="skip"))
    narrowed = any(each.message.startswith(("Any value", "No type")) for each in rendered.diagnostics)
    if not rendered.payload or CHOICES & set(schema) or narrowed:
        return
    said = rendered.payload[0]["functionDeclarations"][0].get("parameters", {})

    for value in values_for(rng, schema):
        if judge(schema).is_valid(value):
            assert judge(as_json_schema(said)).is_valid(value)
