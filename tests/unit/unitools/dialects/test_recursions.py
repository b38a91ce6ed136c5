"""Recursions: what is a model told of a schema that refers to itself, where no reference can be said?"""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest

from unitools.calls import ToolSpec
from unitools.dialects import RenderOptions, Unrenderable, render
from unitools.dialects.renderers import recursions
from unitools.dialects.renderers.base import Notes
from unitools.dialects.renderers.recursions import Recursions
from unitools.dialects.schemas import resolve_reference

QUOTE = ToolSpec("quote.get", "Latest price.", {"type": "object", "properties": {"symbol": {"type": "string"}}})
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
}
WORDS = 'It is of the same schema as "root".'


@pytest.mark.req("UNI-4", "BRING-1")
@pytest.mark.parametrize(
    ("node", "type_"),
    [
        (TREE["$defs"]["Node"], "OBJECT"),
        ({"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"next": {"$ref": "#/$defs/Node"}}}]}, "OBJECT"),
        ({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "description": ""}}}, "OBJECT"),
    ],
    ids=["plain", "made-of-parts", "with-a-description"],
)
def test_where_no_reference_can_be_said_a_recursive_schema_is_cut_and_said_in_words(
    node: dict[str, Any], type_: str
) -> None:
    base = {"type": "object", "properties": {"name": {"type": "string"}}}
    rendered = render([ToolSpec("tree.walk", "Walks.", {**TREE, "$defs": {"Node": node, "Base": base}})], "gemini")

    said = rendered.payload[0]["functionDeclarations"][0]["parameters"]["properties"]["root"]
    inner = said["properties"]["next"]
    assert (said["type"], inner["type"], inner["description"]) == (type_, type_, WORDS)
    assert "$ref" not in json.dumps(rendered.payload)
    lossy = [each.message for each in rendered.diagnostics if each.severity == "lossy"]
    assert "It is recursive; what is within it from here on is only said in words." in lossy


def told(properties: dict[str, Any], **defs: Any) -> Any:
    """Properties as Gemini is told of them."""
    parameters = {"type": "object", "properties": properties, "$defs": defs}
    return render([ToolSpec("a", "A", parameters)], "gemini").payload[0]["functionDeclarations"][0]["parameters"][
        "properties"
    ]


def ref(name: str, **beside: Any) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", **beside}


@pytest.mark.req("UNI-4")
def test_the_words_of_a_cut_stay_beside_a_description_of_the_place() -> None:
    said = told(
        {"p": ref("N")},
        N={"type": "object", "description": "A node.", "properties": {"up": ref("N", description="Up.")}},
    )

    assert said["p"]["properties"]["up"]["description"] == 'Up. It is of the same schema as "p".'


@pytest.mark.req("UNI-4")
def test_a_cut_names_the_place_that_is_of_its_schema() -> None:
    whole = {"type": "object", "properties": {"again": {"$ref": "#"}, "b": {"anyOf": [ref("B"), {"type": "null"}]}}}
    list_of_a = {"type": "array", "items": ref("A")}
    said = render(
        [
            ToolSpec(
                "a",
                "A",
                whole
                | {
                    "$defs": {
                        "A": {"type": "object", "properties": {"b": ref("B")}},
                        "B": {"type": "object", "properties": {"as": list_of_a, "items": ref("A")}},
                    }
                },
            )
        ],
        "gemini",
    ).payload[0]["functionDeclarations"][0]["parameters"]["properties"]

    b = said["b"]["properties"]
    assert said["again"]["description"] == "It is of the same schema as the parameters as a whole."
    words = 'It is of the same schema as one choice of "b".'
    assert (b["as"]["items"]["properties"]["b"]["description"], b["items"]["properties"]["b"]["description"]) == (
        words,
        words,
    )
    inner = told({"p": ref("A")}, A={"type": "object", "properties": {"as": list_of_a}})["p"]["properties"]["as"]
    assert inner["items"] == {"type": "OBJECT", "description": 'It is of the same schema as "p".'}
    deep = {"type": "object", "properties": {"c": ref("C")}}
    said = told({"p": {"type": "array", "items": {"type": "object", "properties": {"q": ref("C")}}}}, C=deep)
    inner = said["p"]["items"]["properties"]["q"]["properties"]["c"]
    assert inner["description"] == 'It is of the same schema as "p[].q".'


@pytest.mark.req("UNI-4")
def test_an_array_that_is_cut_says_what_is_in_it() -> None:
    blocks = {"type": "array", "items": ref("Block")}
    block = {"type": "object", "properties": {"children": ref("Blocks")}}
    said = told({"p": ref("Blocks")}, Blocks=blocks, Block=block)
    words = {"description": 'It is of the same schema as "p".'}
    assert said["p"]["items"]["properties"]["children"] == {"type": "ARRAY", "items": {"type": "OBJECT"}} | words

    table = {"type": "array", "items": {"type": "array", "items": ref("Cell")}}
    said = told({"p": ref("T")}, T=table, Cell={"type": "object", "properties": {"table": ref("T")}})
    cut = said["p"]["items"]["items"]["properties"]["table"]
    assert cut == {"type": "ARRAY", "items": {"type": "ARRAY", "items": {"type": "OBJECT"}}} | words

    value = {"anyOf": [{"type": "string"}, {"type": "array", "items": ref("V")}]}
    said = told({"p": ref("V")}, V=value)
    [_, list_] = said["p"]["anyOf"]
    assert [each["type"] for each in list_["items"]["anyOf"]] == ["STRING", "ARRAY"]
    assert list_["items"]["anyOf"][1]["items"] == {"type": "STRING"}  # a list again is only said in words


@pytest.mark.req("UNI-4")
def test_a_list_of_lists_without_an_end_is_refused() -> None:
    with pytest.raises(Unrenderable, match="list of lists without an end"):
        told({"p": ref("L")}, L={"type": "array", "items": ref("L")})


def make_chain(length: int, **last: Any) -> dict[str, Any]:
    return {f"d{n}": ref(f"d{n + 1}") for n in range(length)} | {f"d{length}": last}


@pytest.mark.req("UNI-4")
def test_a_long_chain_of_references_takes_no_other_tool_along() -> None:
    parameters = {
        "allOf": [{"patternProperties": {"^x": {"$ref": "#"}}}, ref("d0")],
        "$defs": make_chain(1_000, type="object"),
    }

    rendered = render([QUOTE, ToolSpec("chain", "A", parameters)], "gemini", RenderOptions(on_unrenderable="skip"))

    assert list(rendered.names.values()) == ["quote.get"]
    [skipped] = [each for each in rendered.diagnostics if each.severity == "skipped"]
    assert (skipped.tool, "nested deeper than 64" in skipped.message) == ("chain", True)
    found = Recursions({"$defs": make_chain(1_000, type="object")}, Notes("chain")).find_types(ref("d0"))
    assert found == ("object",)


@pytest.mark.req("UNI-4")
def test_what_a_reference_tells_is_found_once_for_all_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the many ways in is cut, at schemas whose type one long chain tells."""
    resolve = Mock(wraps=resolve_reference)
    monkeypatch.setattr(recursions, "resolve_reference", resolve)
    nodes = {f"N{n}": {"allOf": [{"properties": {"n": ref(f"N{n}")}}, ref("d0")]} for n in range(10)}
    ways = {f"p{n}": ref(f"N{n % 10}") for n in range(100)}

    told(ways, **nodes, **make_chain(40, type="object"))

    assert len([each for each in resolve.call_args_list if each.args[1].startswith("#/$defs/d")]) == 2 * 41


@pytest.mark.req("UNI-4")
def test_a_recursive_schema_beyond_the_bound_is_refused() -> None:
    node = {"type": "object", "properties": {f"n{n}": ref(f"N{m}") for n, m in enumerate([*range(12)] * 2)}}

    with pytest.raises(Unrenderable, match="more than 20000 schemas"):
        told({"p": ref("N0")}, **{f"N{n}": node for n in range(12)})


@pytest.mark.req("UNI-4")
def test_what_refers_to_itself_over_and_over_is_cut_in_time() -> None:
    """Of each the type is unknown, so all are looked at."""
    defs: dict[str, Any] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)
    }
    parameters = {"type": "object", "properties": {"a": ref("a")}} | {
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/d0"}]}, **defs, "d60": {}}
    }

    with pytest.raises(Unrenderable, match=r"more than 20000 schemas|deeper than 64"):
        render([ToolSpec("a", "A", parameters)], "gemini")
