"""Gemini wire: does Gemini's wire carry what was asked and answered, whatever goes wrong on it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from google import genai
from google.genai import types

from kernel.problems import NotFound, Problem
from llm.answers import FinishReason
from llm.messages import (
    AssistantMessage,
    AttachmentRef,
    AudioRef,
    ImageRef,
    ProviderState,
    SystemMessage,
    Text,
    ToolMessage,
    UserMessage,
)
from llm.problems import (
    ContextOverflow,
    ModelTimedOut,
    ParameterUnsupported,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.provider_factory import ProviderConfig, ProviderFactory
from llm.providers.gemini import GeminiChat, GeminiProvider
from llm.providers.http_client import AllowedAddresses, HttpClient, TimeLimits
from llm.requests import ChatRequest, SchemaFormat
from llm.streams import collect_answer
from llm.untrusted_texts import delimit_result
from tests.support.model_servers import Reply, event_reply, json_reply, model_server
from tests.support.provider_wires import ALL_WIRES, build_events
from unitools.calls import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm.answers import ChatAnswer

KEY = "canary-key"
ART = "art_01kc8q4m7tfxz000000000000a"
SHORT = TimeLimits(idle_s=0.2, total_s=1)
NEAR = ("127.0.0.0/8",)
HI = UserMessage((Text("Hi"),))
PAY = ToolSpec("bank_pay", "Pay somebody.", {"type": "object"})
WEATHER = ToolSpec(
    "acme.weather.get",
    "Weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def text(said: str, reason: str | None = None, **others: Any) -> dict[str, Any]:
    ended = {"finishReason": reason} if reason else {}
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": said}]}, "index": 0, **ended}], **others}


def error(code: int, status: str, message: str = "canary", **others: Any) -> dict[str, Any]:
    return {"error": {"code": code, "status": status, "message": message, **others}}


def chat(url: str, limits: TimeLimits | None = None) -> GeminiChat:
    client = HttpClient(url, headers={"x-goog-api-key": KEY}, limits=limits, check_address=AllowedAddresses(NEAR))
    return GeminiChat(client, "gemini-2.5-flash")


def request(*messages: Any, **given: Any) -> ChatRequest:
    return ChatRequest(model="google:gemini-2.5-flash", messages=messages or (HI,), **given)


async def stream(model: GeminiChat, asked: ChatRequest) -> ChatAnswer:
    return await collect_answer(model.stream(asked))


async def generate(model: GeminiChat, asked: ChatRequest) -> ChatAnswer:
    return await model.generate(asked)


WAYS = pytest.mark.parametrize("ask", [stream, generate])


@pytest.mark.req("LLM-5")
@WAYS
def test_an_answer_is_read_in_both_ways_and_its_calls_are_only_proposed(ask: Callable[..., Any]) -> None:
    calls = [{"functionCall": {"name": "acme.weather.get", "args": {"city": city}}} for city in ("Rome", "北京 🙂")]
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 9}
    ended = {"candidates": [{"content": {"parts": calls}, "finishReason": "STOP"}], "usageMetadata": counts}

    with model_server(event_reply(text("Let me "), text("see."), ended)) as server:
        answer = anyio.run(ask, chat(server.url), request(tools=(WEATHER,)))

    assert answer.text == "Let me see."
    assert [(call.name, call.arguments) for call in answer.proposals] == [
        ("acme.weather.get", {"city": "Rome"}),
        ("acme.weather.get", {"city": "北京 🙂"}),
    ]
    assert answer.finish_reason is FinishReason.TOOL
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 9)


@pytest.mark.req("LLM-5", "LLM-7")
@pytest.mark.parametrize("with_calls", [False, True])
def test_googles_own_sdk_reads_the_same_answer_from_the_same_stream(with_calls: bool) -> None:
    wire = ALL_WIRES["content"]
    events = Reply(build_events(wire, calls=with_calls), content_type="text/event-stream")

    with model_server(events) as server:
        options = types.HttpOptions(base_url=server.url, client_args={"trust_env": False})
        with genai.Client(api_key=KEY, http_options=options) as client:
            chunks = list(client.models.generate_content_stream(model=wire.model, contents="Hi"))
        ours = anyio.run(stream, chat(f"{server.url}/v1beta"), request(tools=(PAY,)))

    candidates = [each.candidates[0] for each in chunks if each.candidates]
    parts = [part for each in candidates if each.content for part in each.content.parts or []]
    assert ours.text == "".join(part.text or "" for part in parts) != ""
    called = [part.function_call for part in parts if part.function_call is not None]
    assert [(each.name, each.arguments) for each in ours.proposals] == [(each.name, each.args) for each in called]
    assert len(called) == 2 * with_calls
    counted = chunks[-1].usage_metadata
    assert counted is not None
    assert ours.usage is not None
    assert (ours.usage.input_tokens, ours.usage.output_tokens) == (
        counted.prompt_token_count,
        counted.candidates_token_count,
    )
    assert (ours.model, candidates[-1].finish_reason) == (chunks[-1].model_version, types.FinishReason.STOP)


@pytest.mark.req("LLM-10")
def test_the_key_goes_in_a_header_and_never_in_the_address() -> None:
    with model_server(event_reply(text("Hi", "STOP"))) as server:
        made = ProviderFactory()
        made.register(
            "google", ProviderConfig("gemini", base_url=f"{server.url}/v1beta", key=KEY, options={"networks": NEAR})
        )
        anyio.run(made.get_chat_model("google:gemini-2.5-flash").generate, request())

    (heard,) = server.heard
    assert heard.path == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert heard.headers["x-goog-api-key"] == KEY
    assert KEY not in heard.path
    for find in (made.get_embed_model, made.get_rerank_model):
        with pytest.raises(NotFound):
            find("google:gemini-2.5-flash")


@pytest.mark.req("LLM-2")
def test_every_part_of_a_request_is_one_that_googles_own_types_know() -> None:
    files: dict[str, bytes] = {ART: b"\x89PNG"}

    async def resolve(segment: Any) -> bytes:
        return files[segment.id]

    seen = (
        ImageRef(id=ART, media_type="image/png", size_bytes=4, width=1, height=1),
        AudioRef(id=ART, media_type="audio/mpeg", size_bytes=4, seconds=1.0),
        AttachmentRef(id=ART, media_type="application/pdf", size_bytes=4),
    )
    first = event_reply(
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"text": "So:"},
                            {
                                "functionCall": {"name": "acme.weather.get", "args": {"city": "Rome"}},
                                "thoughtSignature": "U0lH",
                            },
                        ]
                    },
                    "finishReason": "STOP",
                }
            ]
        }
    )

    with model_server(first) as server:
        provider = GeminiProvider(ProviderConfig("gemini", server.url, KEY, {"resolve": resolve, "networks": NEAR}))
        model = provider.get_chat_model("gemini-2.5-flash")
        asked = request(SystemMessage((Text("Be brief."),)), UserMessage((Text("Look"), seen[0])), tools=(WEATHER,))
        said = anyio.run(model.generate, asked).build_message()
        answered = ToolMessage(call_id="call_1", segments=(Text("sun"), seen[1]))
        again = request(
            *asked.messages,
            said,
            answered,
            UserMessage((seen[2],)),
            tools=(WEATHER,),
            temperature=0.5,
            top_p=0.9,
            max_tokens=50,
            stop=("END",),
            seed=7,
            response_format=SchemaFormat({"type": "object", "properties": {"n": {"type": "integer"}}}),
        )
        anyio.run(collect_answer, model.stream(again))

    body = server.bodies[1]
    assert set(body) == {"contents", "systemInstruction", "tools", "generationConfig"}
    contents = [types.Content.model_validate(each) for each in body["contents"]]
    assert [each.role for each in contents] == ["user", "model", "user", "user"]
    signed = contents[1].parts[1]  # type: ignore[index]
    assert (signed.thought_signature, signed.function_call.args) == (b"SIG", {"city": "Rome"})  # type: ignore[union-attr]
    assert contents[2].parts[0].function_response.response == {"output": delimit_result(answered)}  # type: ignore[index,union-attr]
    assert contents[0].parts[1].inline_data.data == b"\x89PNG"  # type: ignore[index,union-attr]
    assert types.Content.model_validate(body["systemInstruction"]).parts
    (tool,) = [types.Tool.model_validate(each) for each in body["tools"]]
    assert tool.function_declarations[0].name == "acme_weather_get"  # type: ignore[index]
    wanted = types.GenerationConfig.model_validate(body["generationConfig"])
    assert (wanted.temperature, wanted.top_p, wanted.max_output_tokens, wanted.seed) == (0.5, 0.9, 50, 7)
    assert (wanted.stop_sequences, wanted.response_mime_type) == (["END"], "application/json")
    assert wanted.response_json_schema == {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.mark.req("LLM-2")
def test_without_a_way_to_read_files_a_picture_is_refused_before_anything_is_sent() -> None:
    picture = ImageRef(id=ART, media_type="image/png", size_bytes=4, width=1, height=1)
    with model_server(event_reply(text("Hi", "STOP"))) as server, pytest.raises(ParameterUnsupported):
        anyio.run(chat(server.url).generate, request(UserMessage((picture,))))
    assert server.heard == []


# What a stream can do wrong, and what it is then.
FAULTS: dict[str, tuple[Reply, type[Problem]]] = {
    "it ends without a reason": (event_reply(text("Hel")), StreamTruncated),
    "it is cut within an event": (event_reply(text("Hel"), b'data: {"candidates": [', end="cut"), StreamTruncated),
    "it ends within an event": (event_reply(text("Hel"), b'data: {"candidates": ['), StreamTruncated),
    "it stalls": (event_reply(text("Hel"), end="stall"), ModelTimedOut),
    "it never ends": (event_reply(text("Hel"), b": ping\n\n", end="endless"), ModelTimedOut),
    "one line is broken": (
        event_reply(text("Hel"), b"data: {canary\n\n", text("lo", "STOP")),
        ProviderAnswerUnreadable,
    ),
    "it holds an error": (event_reply(text("Hel"), error(503, "UNAVAILABLE")), ProviderUnavailable),
    "it is HTML": (Reply([b"<html>canary"], content_type="text/html"), ProviderAnswerUnreadable),
    "it is no UTF-8": (event_reply(text("Hel"), b"data: \xff\xfe\n\n", text("lo", "STOP")), ProviderAnswerUnreadable),
    "the model changes": (
        event_reply(text("Hel", modelVersion="one"), text("lo", "STOP", modelVersion="two")),
        ProviderAnswerUnreadable,
    ),
    "an event is a list": (event_reply([text("Hel", "STOP")]), ProviderAnswerUnreadable),
    "it is empty": (event_reply(), StreamTruncated),
}


@pytest.mark.req("LLM-9", "LLM-5")
@WAYS
@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_of_a_stream_passes_for_an_answer(fault: str, ask: Callable[..., Any]) -> None:
    reply, problem = FAULTS[fault]
    limits = SHORT if reply.end == "stall" or reply.end == "endless" else None

    with model_server(reply) as server, pytest.raises(problem) as refused:
        anyio.run(ask, chat(server.url, limits), request())
    assert "canary" not in str(refused.value)
    assert len(server.heard) == 1


@pytest.mark.req("LLM-3", "LLM-9")
@pytest.mark.parametrize("cut", [False, True])
def test_a_stream_that_ends_at_any_byte_is_the_whole_answer_or_none(cut: bool) -> None:
    said = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "pay", "args": {"amount": 100}}}]}}]}
    body = b"".join(event_reply(text("So: "), said, text("", "STOP")).body)
    places = [*range(0, len(body), 7), len(body) - 4, len(body)]

    async def main(url: str) -> list[ChatAnswer | Problem]:
        answers: list[ChatAnswer | Problem] = []
        for _ in places:
            try:
                answers.append(await chat(url).generate(request()))
            except Problem as problem:
                answers.append(problem)
        return answers

    waiting = iter(places)
    with model_server(
        lambda _: Reply([body[: next(waiting)]], content_type="text/event-stream", end="cut" if cut else "whole")
    ) as server:
        answers = anyio.run(main, server.url)

    broken = [each for each in answers if isinstance(each, Problem)]
    assert len(broken) >= len(places) - 3  # where only the last line end is missing, nothing is
    assert {type(each) for each in broken} == {StreamTruncated}
    for each in answers:
        if not isinstance(each, Problem):
            assert [call.arguments for call in each.proposals] == [{"amount": 100}]


# What Google answers in the place of a stream.
PER_DAY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quotaValue": "50"}]}
PER_MINUTE = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel", "quotaValue": "10"}]}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "33.2s"}
REFUSALS: dict[str, tuple[Reply, type[Problem], int | None]] = {
    "too long": (
        json_reply(
            error(
                400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."
            ),
            400,
        ),
        ContextOverflow,
        None,
    ),
    "wrong key": (
        json_reply(error(400, "INVALID_ARGUMENT", "API key not valid. canary"), 400),
        ProviderKeyRefused,
        None,
    ),
    "no right": (json_reply(error(403, "PERMISSION_DENIED"), 403), ProviderKeyRefused, None),
    "a region": (json_reply(error(400, "FAILED_PRECONDITION", "canary location"), 400), ParameterUnsupported, None),
    "not paid": (
        json_reply(error(400, "FAILED_PRECONDITION", "Please enable billing"), 400),
        ProviderQuotaExhausted,
        None,
    ),
    "a parameter": (
        json_reply(error(400, "INVALID_ARGUMENT", "Penalty is not enabled"), 400),
        ParameterUnsupported,
        None,
    ),
    "no model": (json_reply(error(404, "NOT_FOUND"), 404), ProviderAnswerUnreadable, None),
    "per minute": (
        json_reply(error(429, "RESOURCE_EXHAUSTED", "quota", details=[PER_MINUTE, RETRY]), 429),
        ProviderRateLimited,
        34,
    ),
    "per day": (
        json_reply(error(429, "RESOURCE_EXHAUSTED", details=[PER_DAY, RETRY]), 429),
        ProviderQuotaExhausted,
        34,
    ),
    "wait": (json_reply({}, 429, headers={"Retry-After": "9"}), ProviderRateLimited, 9),
    "too slow": (json_reply(error(504, "DEADLINE_EXCEEDED"), 504), ModelTimedOut, None),
    "overloaded": (json_reply(error(503, "UNAVAILABLE"), 503), ProviderUnavailable, None),
    "a proxy": (Reply([b"<html>canary"], 502, "text/html"), ProviderUnavailable, None),
    "a list": (json_reply([error(500, "INTERNAL")], 500), ProviderUnavailable, None),
    "elsewhere": (json_reply({}, 302, headers={"Location": "http://127.0.0.1:1/"}), ProviderAnswerUnreadable, None),
}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("refusal", REFUSALS)
def test_every_refusal_of_google_is_a_problem_that_does_not_quote_it(refusal: str) -> None:
    reply, problem, wait = REFUSALS[refusal]

    with model_server(reply) as server, pytest.raises(problem) as refused:
        anyio.run(chat(server.url).generate, request())
    assert refused.value.retry_after == wait
    assert "canary" not in json.dumps(refused.value.to_error())
    assert len(server.heard) == 1


@pytest.mark.req("LLM-9")
def test_an_address_where_nobody_listens_is_a_provider_that_is_not_there() -> None:
    with model_server(Reply()) as server:
        gone = server.url
    with pytest.raises(ProviderUnavailable):
        anyio.run(chat(gone).generate, request())


@pytest.mark.req("LLM-9")
def test_a_blocked_prompt_ends_for_reasons_of_safety() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}

    with model_server(event_reply(blocked)) as server:
        answer = anyio.run(chat(server.url).generate, request())
    assert (answer.finish_reason, answer.text) == (FinishReason.SAFETY, "")


@pytest.mark.req("LLM-5")
def test_whoever_leaves_a_stream_ends_the_request() -> None:
    async def leave(url: str) -> None:
        deltas = chat(url).stream(request())
        assert (await anext(deltas)).text == "Hel"
        await deltas.aclose()

    with model_server(event_reply(text("Hel"), end="stall")) as server:
        anyio.run(leave, server.url)
        assert server.left.wait(60)


def test_a_state_of_another_provider_is_not_sent() -> None:
    said = AssistantMessage((Text("a"),), provider_state=ProviderState("openai", {"text": "canary"}))

    with model_server(event_reply(text("Hi", "STOP"))) as server:
        anyio.run(chat(server.url).generate, request(HI, said, HI))
    assert b"canary" not in server.heard[0].body
