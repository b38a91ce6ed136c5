"""Model requests: is a request within bounds, and is whoever is out of them told the field?"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from kernel.problems import SchemaInvalid
from llm.documents import MAX_FINDINGS, read_document
from llm.messages import Text, UserMessage
from llm.requests import ChatRequest, EmbedRequest, ModelId, RerankRequest, SchemaFormat, TextFormat
from unitools.calls import ToolSpec

HELLO = {"role": "user", "segments": [{"type": "text", "text": "Hello"}]}
LEAST = {"model": "openai:gpt-5", "messages": [HELLO]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
ALL: dict[str, Any] = {
    "temperature": 0,
    "top_p": 0.9,
    "top_k": 40,
    "max_tokens": 100,
    "reasoning_effort": "xhigh",
    "reasoning_tokens": 50,
    "stop": ["END"],
    "seed": 7,
    "frequency_penalty": -2,
    "presence_penalty": 2.0,
    "logit_bias": {"50256": -100, "0": 1.5},
    "tool_choice": "required",
    "response_format": {"type": "schema", "json_schema": SCHEMA, "json_strict": True},
    "idempotency_key": "order-5:1",
    "cache_hint": "manual",
    "allow_sensitive": True,
    "strict_parameters": True,
}
TOOL = ToolSpec("load", "Load it.", {"type": "object"})


def findings_of(kind: type[Any], document: Any) -> dict[str, str]:
    with pytest.raises(SchemaInvalid) as refused:
        read_document(kind, document)
    return {each["pointer"]: each["message"] for each in refused.value.details["findings"]}


@pytest.mark.req("LLM-4")
def test_every_parameter_is_read() -> None:
    request = read_document(ChatRequest, LEAST | ALL)

    assert request.response_format == SchemaFormat(SCHEMA, json_strict=True)
    assert {name: getattr(request, name) for name in ALL if name not in {"response_format", "stop"}} == {
        name: value for name, value in ALL.items() if name not in {"response_format", "stop"}
    }
    assert request.stop == ("END",)


@pytest.mark.req("LLM-4")
def test_what_is_not_given_is_left_to_the_provider_and_sensitive_data_are_not_allowed() -> None:
    request = read_document(ChatRequest, LEAST)

    assert request.allow_sensitive is False
    assert request.strict_parameters is False
    assert request.response_format == TextFormat()
    assert (request.temperature, request.max_tokens, request.seed, request.stop) == (None, None, None, ())


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"logit_bias": {"5": float("nan")}}, "/logit_bias/5"),
        ({"logit_bias": {"5": float("inf")}}, "/logit_bias/5"),
        ({"logit_bias": {"5": 101}}, "/logit_bias/5"),
        ({"logit_bias": {"five": 1}}, "/logit_bias/five"),
        ({"logit_bias": {"a/b~c": 1}}, "/logit_bias/a~1b~0c"),
        ({"logit_bias": [[5, 1]]}, "/logit_bias"),
        ({"max_tokens": 0}, "/max_tokens"),
        ({"max_tokens": 10**9}, "/max_tokens"),
        ({"max_tokens": 1.5}, "/max_tokens"),
        ({"max_tokens": True}, "/max_tokens"),
        ({"temperature": float("nan")}, "/temperature"),
        ({"temperature": 2.1}, "/temperature"),
        ({"temperature": "1"}, "/temperature"),
        ({"temperature": False}, "/temperature"),
        ({"top_p": 0}, "/top_p"),
        ({"seed": 2**63}, "/seed"),
        ({"frequency_penalty": -2.1}, "/frequency_penalty"),
        ({"presence_penalty": float("-inf")}, "/presence_penalty"),
        ({"stop": [""]}, "/stop/0"),
        ({"stop": ["x"] * 17}, "/stop"),
        ({"stop": "END"}, "/stop"),
        ({"idempotency_key": ""}, "/idempotency_key"),
        ({"idempotency_key": "a b"}, "/idempotency_key"),
        ({"cache_hint": "x" * 256}, "/cache_hint"),
        ({"allow_sensitive": "yes"}, "/allow_sensitive"),
        ({"strict_parameters": 1}, "/strict_parameters"),
        ({"response_format": {"type": "xml"}}, "/response_format"),
        ({"response_format": {"type": "schema"}}, "/response_format/json_schema"),
        ({"response_format": {"type": "json", "json_schema": {}}}, "/response_format/json_schema"),
        ({"tool_choice": "auto"}, "/tool_choice"),
        ({"tool_choice": {"name": ""}}, "/tool_choice"),
        ({"tool_choice": {"name": "load", "type": "function"}}, "/tool_choice"),
        ({"temprature": 1}, "/temprature"),
        ({"messages": []}, "/messages"),
        ({"messages": {}}, "/messages"),
    ],
)
def test_a_value_that_is_out_of_bounds_is_refused_with_its_place(given: dict[str, Any], pointer: str) -> None:
    assert list(findings_of(ChatRequest, LEAST | given)) == [pointer]


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_called_that(number: float) -> None:
    found = findings_of(ChatRequest, LEAST | {"logit_bias": {"5": number}, "temperature": number})

    assert set(found.values()) == {"Input should be a finite number."}


@pytest.mark.req("LLM-4")
def test_a_request_made_in_a_program_has_the_same_bounds() -> None:
    with pytest.raises(ValidationError, match="logit_bias"):
        ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),), logit_bias={"5": float("nan")})


@pytest.mark.parametrize("document", [None, [], "x", 5, [LEAST]])
def test_what_is_no_object_is_refused(document: Any) -> None:
    assert findings_of(ChatRequest, document) == {"": "This is an object."}


def test_many_mistakes_are_told_as_a_bounded_number() -> None:
    found = findings_of(ChatRequest, LEAST | {f"field{n}": 1 for n in range(100)})

    assert len(found) == MAX_FINDINGS
    assert set(found.values()) == {"There is no such field."}


@pytest.mark.req("LLM-4")
@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "objec"}, "/type"),
        ({"properties": {"a/b": {"$ref": "http://example.org/x"}}}, "/properties/a~1b/$ref"),
        ({"$ref": "file:///etc/passwd"}, "/$ref"),
        ({"$ref": "#"}, ""),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema"),
        ({"pattern": "(?=a)"}, "/pattern"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "/properties/a/$dynamicRef"),
        ({"const": float("nan")}, ""),
        ({"description": "x" * 300_000}, ""),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(schema: dict[str, Any], pointer: str) -> None:
    found = findings_of(ChatRequest, LEAST | {"response_format": {"type": "schema", "json_schema": schema}})

    assert list(found) == [f"/response_format/json_schema{pointer}"]


def test_a_schema_that_is_nested_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema

    found = findings_of(ChatRequest, LEAST | {"response_format": {"type": "schema", "json_schema": schema}})

    assert "nested" in found["/response_format/json_schema"]


@pytest.mark.req("LLM-3")
def test_tools_come_from_the_registry_and_not_from_a_document() -> None:
    as_written = {"name": "load", "description": "Load it.", "parameters": {"type": "object"}}

    assert list(findings_of(ChatRequest, LEAST | {"tools": [as_written]})) == ["/tools/0"]
    assert read_document(ChatRequest, LEAST | {"tools": (TOOL,)}).tools == (TOOL,)
    assert list(findings_of(ChatRequest, LEAST | {"tools": (TOOL, TOOL)})) == ["/tools"]


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize(
    ("text", "provider", "model"),
    [
        ("openai:gpt-5", "openai", "gpt-5"),
        ("openrouter:meta-llama/llama-3.1:free", "openrouter", "meta-llama/llama-3.1:free"),
        ("local:SmolLM2-135M@q4", "local", "SmolLM2-135M@q4"),
    ],
)
def test_a_model_id_is_a_provider_and_its_own_name_of_a_model(text: str, provider: str, model: str) -> None:
    assert ModelId.parse(text) == ModelId(provider, model)
    assert str(ModelId(provider, model)) == text
    assert read_document(ChatRequest, LEAST | {"model": text}).model == text


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize("name", ["", ":", "openai:", ":gpt", "Open:gpt", "a b", "a:b c", "Main", "a:b\n", "x" * 300])
def test_a_name_that_is_neither_a_model_id_nor_an_alias_is_refused(name: str) -> None:
    assert list(findings_of(ChatRequest, LEAST | {"model": name})) == ["/model"]


@pytest.mark.req("LLM-6")
def test_requests_for_vectors_and_scores_are_read_within_bounds() -> None:
    embed = read_document(EmbedRequest, {"model": "e5", "items": ["a", "b"], "pooling": "mean", "kind": "query"})
    rerank = read_document(RerankRequest, {"model": "rank", "query": "q", "candidates": ["a", "b"]})

    assert (embed.items, embed.normalize, embed.pooling, embed.kind) == (("a", "b"), True, "mean", "query")
    assert (rerank.query, rerank.candidates) == ("q", ("a", "b"))
    assert list(findings_of(EmbedRequest, {"model": "e5", "items": []})) == ["/items"]
    assert list(findings_of(EmbedRequest, {"model": "e5", "items": ["a", ""]})) == ["/items/1"]
    assert list(findings_of(EmbedRequest, {"model": "e5", "items": ["a"], "pooling": "max"})) == ["/pooling"]
    assert list(findings_of(RerankRequest, {"model": "r", "query": "q", "candidates": ["a", 5]})) == ["/candidates/1"]
