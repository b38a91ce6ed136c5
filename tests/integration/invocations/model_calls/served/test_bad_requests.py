"""Bad requests: is what cannot be asked refused by name, in the shape that the caller's program reads?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from tests.support.served_formats import CHAT, MODEL, build_chat, read_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
UNSUPPORTED = (400, "unsupported_parameter", "LLM.UNSUPPORTED")
INVALID = (400, "SCHEMA.VALIDATION_FAILED", "SCHEMA.VALIDATION_FAILED")
PRIVATE = {"type": "image_url", "image_url": {"url": "http://10.0.0.7/secret.png"}}
NO_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SOUND = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def with_part(part: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "?"}, part]}]}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("more", "told", "param"),
    [
        ({"n": 2}, UNSUPPORTED, "n"),
        ({"store": True}, UNSUPPORTED, "store"),
        ({"logprobs": True}, UNSUPPORTED, "logprobs"),
        ({"functions": []}, UNSUPPORTED, "functions"),
        (with_part(PRIVATE), UNSUPPORTED, "messages[0].content[1]"),
        (with_part(NO_PICTURE), INVALID, "messages[0].content[1].image_url.url"),
        (with_part(SOUND), UNSUPPORTED, "messages[0].content[1]"),
        ({"tools": [{"type": "web_search"}]}, UNSUPPORTED, "tools[0]"),
        ({"top_k": 0}, INVALID, "top_k"),
        ({"reasoning_effort": "much"}, INVALID, "reasoning_effort"),
        ({"temperature": 3}, INVALID, "temperature"),
        ({"logit_bias": {"a": 1}}, INVALID, "logit_bias.a"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, INVALID, "max_tokens"),
        ({"max_completion_tokens": 101}, INVALID, "max_tokens"),
        ({"messages": []}, INVALID, "messages"),
        ({"messages": [{"role": "function", "content": "x"}]}, INVALID, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, INVALID, "messages[0].content"),
        ({"response_format": {"type": "grammar"}}, INVALID, "response_format.type"),
        ({"hub": {"arguments": {}}}, INVALID, "hub.arguments"),
        ({"stream": "yes"}, INVALID, "stream"),
        ({"model": None}, INVALID, "model"),
        ({"model": "model.script.nobody"}, (404, "model_not_found", "TOOL.UNKNOWN"), None),
        ({"model": "gpt-5"}, (404, "model_not_found", "MODEL.UNKNOWN"), None),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place_and_nobody_is_asked(
    more: dict[str, Any],
    told: tuple[int, str, str],
    param: str | None,
    caller: Caller,
    connect: Callable[..., Tool],
    grant: Callable[..., Any],
    bench: ProviderBench,
) -> None:
    grant("model.*")
    connect(max_output_tokens=100, default_output_tokens=50)

    answer = caller.ask(CHAT, build_chat() | more)

    assert (read_error(answer), answer.json()["error"]["param"]) == (told, param), answer.content
    assert set(answer.json()["error"]) == {"message", "type", "code", "param"}
    assert bench.provider is None


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    "body", [b"{", b'{"model": "main", "logit_bias": {"1": NaN}}', b'{"model": "a", "model": "b"}', b'"\\ud800"']
)
def test_a_body_that_is_not_json_is_refused_before_anybody_reads_it(body: bytes, caller: Caller, model: Tool) -> None:
    from django.test import Client

    answer = Client().post(CHAT, body, content_type="application/json", headers=caller.headers())

    assert read_error(answer) == (400, "REQUEST.MALFORMED", "REQUEST.MALFORMED")
    assert not Invocation.objects.exists()


@pytest.mark.req("LLM-9")
def test_a_wrong_key_and_an_address_that_is_not_there_are_told_in_the_same_shape(caller: Caller, model: Tool) -> None:
    wrong = caller.ask(CHAT, build_chat(), Authorization="Bearer hub_live_nobody")
    nowhere = caller.ask("/v1/completions", {"model": MODEL})
    method = caller.fetch(CHAT)

    assert read_error(wrong) == (401, "invalid_api_key", "AUTH.UNAUTHENTICATED")
    assert read_error(nowhere) == (404, "RESOURCE.NOT_FOUND", "RESOURCE.NOT_FOUND")
    assert read_error(method) == (405, "REQUEST.METHOD_NOT_ALLOWED", "REQUEST.METHOD_NOT_ALLOWED")


@pytest.mark.req("LLM-9")
def test_what_changes_nothing_is_left_out_and_said(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    harmless: dict[str, Any] = {
        "n": 1,
        "store": False,
        "logprobs": False,
        "parallel_tool_calls": True,
        "seed": None,
        "metadata": {},
    }

    quiet = caller.ask(CHAT, build_chat(**harmless)).json()
    said = caller.ask(CHAT, build_chat(metadata={"run": "7"}, safety_identifier="x")).json()

    assert quiet["hub"]["warnings"] == []
    assert [each.partition(":")[0] for each in said["hub"]["warnings"]] == ["/metadata", "/safety_identifier"]


@pytest.mark.req("LLM-9")
def test_the_person_for_whom_is_asked_stands_with_the_call_and_is_sent_to_nobody(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    caller.ask(CHAT, build_chat(user="ada"))

    call = Invocation.objects.get()
    assert call.user_fingerprint
    assert "ada" not in json.dumps([str(each) for each in bench.requests])


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("kind", [[], {}, 5, True, None])
def test_a_part_whose_type_is_no_text_is_a_mistake_of_the_body(kind: Any, caller: Caller, model: Tool) -> None:
    body = build_chat() | {"messages": [{"role": "user", "content": [{"type": kind, "text": "x"}]}]}

    answer = caller.ask(CHAT, body)

    assert read_error(answer) == (400, "SCHEMA.VALIDATION_FAILED", "SCHEMA.VALIDATION_FAILED")
    assert answer.json()["error"]["param"] == "messages[0].content[0]"
