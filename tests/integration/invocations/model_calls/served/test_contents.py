"""Contents: do programs that speak as Google's generateContent does get answers of the hub's models, by the hub's rules?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from invocations.models import Invocation
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.problems import ProviderQuotaExhausted, ProviderRateLimited, StreamTruncated
from llm.usage import Usage
from registry.models import ModelProvider
from tests.support.calls import PAIR, kinds_of
from tests.support.scripted_models import text_answer
from tests.support.served_formats import MODEL, TOOL, VECTORS, build_contents, build_texts, parse_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
WIRE_NAME = "sample_tools_echo"
VERSIONS = ["v1", "v1beta"]
PROPOSED = (
    ChatDelta(text="Let me see.", model="script-001"),
    ChatDelta(tool_call=ToolCallDelta(0, "call_0", TOOL, '{"text": "a"}')),
    ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(7, 3)),
)


def at(verb: str, *, version: str = "v1beta", model: str = MODEL) -> str:
    return f"/{version}/models/{model}:{verb}"


def read_google_error(answer: Any) -> tuple[int, str, str]:
    """(Status, Google's word for it, the hub's reason)."""
    error = answer.json()["error"]
    assert (set(error), error["code"]) == ({"code", "message", "status", "details"}, answer.status_code)
    assert answer.json()["hub"]["reason"] == answer.headers["X-Hub-Reason"]
    return answer.status_code, error["status"], answer.headers["X-Hub-Reason"]


def list_fields(answer: Any) -> list[str]:
    """The places that an error names."""
    details = answer.json()["error"]["details"]
    return [each["field"] for part in details for each in part.get("fieldViolations", [])]


@pytest.mark.req("LLM-1", "TOOLS-18")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model_id", [MODEL, "main"])
def test_a_question_is_answered_in_both_versions_and_the_call_has_its_pair(
    version: str, model_id: str, caller: Caller, model: Tool
) -> None:
    answer = caller.ask(at("generateContent", version=version, model=model_id), build_contents())

    call, said = Invocation.objects.get(), answer.json()
    assert answer.status_code == 200, answer.content
    assert answer.headers["X-Hub-Call"] == call.wire_id == said["responseId"]
    (candidate,) = said["candidates"]
    assert candidate["content"] == {"role": "model", "parts": [{"text": "Hi there"}]}
    assert (candidate["finishReason"], candidate["index"], said["modelVersion"]) == ("STOP", 0, MODEL)
    assert said["usageMetadata"] == {
        "promptTokenCount": 10,
        "candidatesTokenCount": 2,
        "totalTokenCount": 12,
        "cachedContentTokenCount": 0,
    }
    assert said["hub"]["answered_by"] == "script-001"
    assert kinds_of(call) == PAIR


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    ("query", "media_type"),
    [("?alt=sse", "text/event-stream"), ("", "application/json"), ("?alt=json", "application/json")],
)
def test_a_stream_comes_as_events_or_as_one_array(query: str, media_type: str, caller: Caller, model: Tool) -> None:
    answer = caller.ask(at("streamGenerateContent") + query, build_contents())

    text = answer.content.decode()
    pieces = parse_chunks(text) if query == "?alt=sse" else json.loads(text)
    assert answer.headers["Content-Type"] == media_type
    said = [part["text"] for each in pieces for part in each["candidates"][0]["content"]["parts"]]
    assert "".join(said) == "Hi there"
    assert [each["candidates"][0].get("finishReason") for each in pieces][-1] == "STOP"
    assert pieces[-1]["usageMetadata"]["totalTokenCount"] == 12
    assert {each["responseId"] for each in pieces} == {Invocation.objects.get().wire_id}


@pytest.mark.req("LLM-9")
def test_only_a_stream_is_asked_in_which_form_it_comes(caller: Caller, model: Tool) -> None:
    answers = [
        caller.ask(at("streamGenerateContent") + "?alt=proto", build_contents()),
        caller.ask(at("generateContent") + "?alt=sse", build_contents()),
        caller.ask(at("generateContent") + f"?key={caller.key}", build_contents(), Authorization=""),
    ]

    assert [read_google_error(each) for each in answers] == [
        (400, "INVALID_ARGUMENT", "SCHEMA.VALIDATION_FAILED"),
        (400, "INVALID_ARGUMENT", "SCHEMA.VALIDATION_FAILED"),
        (401, "UNAUTHENTICATED", "AUTH.UNAUTHENTICATED"),
    ]
    assert not Invocation.objects.exists()


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_is_proposed_under_the_callers_name_and_its_answer_goes_back_without_an_id(
    streamed: bool,
    caller: Caller,
    model: Tool,
    bench: ProviderBench,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
) -> None:
    enable()
    grant()
    bench.scripts = [PROPOSED, text_answer("Done")]
    tools = [{"functionDeclarations": [{"name": WIRE_NAME, "description": "Whatever the caller says."}]}]
    one = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [WIRE_NAME]}}
    address = at("streamGenerateContent") + "?alt=sse" if streamed else at("generateContent")

    first = caller.ask(address, build_contents(tools=tools, toolConfig=one))
    pieces = parse_chunks(first.content.decode()) if streamed else [first.json()]
    said = [each["candidates"][0]["content"] for each in pieces]
    answered = {"functionResponse": {"name": WIRE_NAME, "response": {"output": "a"}}}
    asked = [*build_contents()["contents"], *said, {"role": "user", "parts": [answered]}]
    second = caller.ask(at("generateContent"), {"contents": asked, "tools": tools})

    assert first.status_code == second.status_code == 200, second.content
    [call] = [part["functionCall"] for each in said for part in each["parts"] if "functionCall" in part]
    assert call == {"id": "call_0", "name": WIRE_NAME, "args": {"text": "a"}}
    [shown] = bench.requests[0].tools
    assert (shown.name, "Whatever" in shown.description, bench.requests[0].tool_choice.name) == (TOOL, False, TOOL)
    _, spoken, result = bench.requests[1].messages
    assert [(each.id, each.name, each.arguments) for each in spoken.proposals] == [("call_0", TOOL, {"text": "a"})]
    assert (result.call_id, "".join(each.text for each in spoken.segments)) == ("call_0", "Let me see.")


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_a_function_of_the_callers_own_needs_a_model_that_was_connected_for_it(
    caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    grant("model.*")
    connect()
    connect(alias="open", caller_tools="allow")
    declared = {
        "name": "mine",
        "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}},
    }
    body = build_contents(tools=[{"functionDeclarations": [declared]}])

    refused = caller.ask(at("generateContent"), body)
    shown = caller.ask(at("generateContent", model="open"), body)

    assert read_google_error(refused) == (400, "INVALID_ARGUMENT", "LLM.FOREIGN_TOOL")
    assert kinds_of(Invocation.objects.get(tool=MODEL)) == PAIR
    assert shown.status_code == 200, shown.content
    [tool] = bench.requests[0].tools
    assert tool.parameters == {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}


def said_by(role: str, part: dict[str, Any]) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": role, "parts": [part]}]}


INVALID = (400, "INVALID_ARGUMENT", "SCHEMA.VALIDATION_FAILED")
UNSUPPORTED = (400, "INVALID_ARGUMENT", "LLM.UNSUPPORTED")
ANSWER = {"functionResponse": {"name": "greet", "response": {}}}
STRICT = {"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_LOW_AND_ABOVE"}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("more", "told", "field"),
    [
        ({"surprise": 1}, INVALID, "surprise"),
        ({"contents": []}, INVALID, "contents"),
        ({"contents": [{"role": "robot", "parts": [{"text": "x"}]}]}, INVALID, "contents[0].role"),
        ({"contents": [{"parts": [{"text": 5}]}]}, INVALID, "contents[0].parts[0].text"),
        (said_by("model", {"inlineData": {"data": "AAAA"}}), INVALID, "contents[1].parts[0]"),
        (said_by("user", ANSWER), INVALID, "contents"),
        (
            said_by("user", {"fileData": {"fileUri": "http://10.0.0.7/x.png"}}),
            UNSUPPORTED,
            "contents[1].parts[0].fileData",
        ),
        ({"model": "models/other"}, INVALID, "model"),
        ({"generationConfig": {"candidateCount": 2}}, UNSUPPORTED, "generationConfig.candidateCount"),
        ({"generationConfig": {"surprise": 1}}, INVALID, "generationConfig.surprise"),
        ({"generationConfig": {"temperature": 3}}, INVALID, "generationConfig.temperature"),
        ({"generationConfig": {"topK": 1.5}}, INVALID, "generationConfig.topK"),
        ({"generationConfig": {"maxOutputTokens": 101}}, INVALID, "generationConfig.maxOutputTokens"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, INVALID, "generationConfig.responseMimeType"),
        ({"generationConfig": {"responseSchema": {"type": "TEXT"}}}, INVALID, "generationConfig.responseSchema.type"),
        ({"safetySettings": [STRICT]}, UNSUPPORTED, "safetySettings[0].threshold"),
        ({"tools": [{"googleSearch": {}}]}, INVALID, "tools[0].googleSearch"),
        ({"cachedContent": "cachedContents/1"}, UNSUPPORTED, "cachedContent"),
        ({"hub": {"arguments": {}}}, INVALID, "hub.arguments"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place_and_nobody_is_asked(
    more: dict[str, Any],
    told: tuple[int, str, str],
    field: str,
    caller: Caller,
    connect: Callable[..., Tool],
    grant: Callable[..., Any],
    bench: ProviderBench,
) -> None:
    grant("model.*")
    connect(max_output_tokens=100, default_output_tokens=50)

    answer = caller.ask(at("generateContent"), build_contents() | more)

    assert (read_google_error(answer), list_fields(answer)[:1]) == (told, [field]), answer.content
    assert bench.provider is None
    assert all(kinds_of(call) == PAIR for call in Invocation.objects.all())


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body", [b"{", b'{"contents": [], "generationConfig": {"temperature": NaN}}', b'"\\ud800"'])
def test_a_body_that_is_not_json_is_refused_before_anybody_reads_it(
    body: bytes, version: str, caller: Caller, model: Tool
) -> None:
    address = at("generateContent", version=version)

    answer = Client().post(address, body, content_type="application/json", headers=caller.headers())

    assert read_google_error(answer) == (400, "INVALID_ARGUMENT", "REQUEST.MALFORMED")
    assert not Invocation.objects.exists()


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("model_id", "reason"),
    [
        ("nobody", "MODEL.UNKNOWN"),
        ("gemini-2.5-flash", "TOOL.UNKNOWN"),
        ("model.script.nobody", "TOOL.UNKNOWN"),
        ("openai/gpt:5", "MODEL.UNKNOWN"),
        ("models/main", "MODEL.UNKNOWN"),
    ],
)
def test_a_model_that_is_not_there_is_not_found_whatever_its_name_is_made_of(
    model_id: str, reason: str, version: str, caller: Caller, model: Tool
) -> None:
    answer = caller.ask(at("generateContent", version=version, model=model_id), build_contents())

    assert read_google_error(answer) == (404, "NOT_FOUND", reason)


@pytest.mark.req("LLM-9")
def test_a_wrong_key_an_address_and_a_method_that_are_not_there_are_told_in_the_same_shape(
    caller: Caller, model: Tool
) -> None:
    googles = {"Authorization": "", "X-Goog-Api-Key": "hub_live_nobody"}
    answers = [
        caller.ask(at("generateContent", version="v1"), build_contents(), **googles),
        caller.ask("/v1beta/cachedContents", {}),
        caller.fetch(at("generateContent", version="v1")),
        caller.fetch("/v1/models", **googles),
        caller.fetch("/v1/models/nobody", **googles | {"X-Goog-Api-Key": caller.key}),
    ]

    assert [read_google_error(each) for each in answers] == [
        (401, "UNAUTHENTICATED", "AUTH.UNAUTHENTICATED"),
        (404, "NOT_FOUND", "RESOURCE.NOT_FOUND"),
        (405, "INVALID_ARGUMENT", "REQUEST.METHOD_NOT_ALLOWED"),
        (401, "UNAUTHENTICATED", "AUTH.UNAUTHENTICATED"),
        (404, "NOT_FOUND", "MODEL.UNKNOWN"),
    ]


@pytest.mark.req("LLM-4")
def test_what_changes_nothing_is_left_out_and_said(caller: Caller, model: Tool) -> None:
    harmless: dict[str, Any] = {
        "safetySettings": None,
        "labels": {},
        "generationConfig": {"candidateCount": 1, "responseModalities": ["TEXT"]},
    }
    off = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]

    quiet = caller.ask(at("generateContent"), build_contents(**harmless)).json()
    said = caller.ask(at("generateContent"), build_contents(labels={"run": "7"}, safetySettings=off)).json()

    assert quiet["hub"]["warnings"] == []
    assert [each.partition(":")[0] for each in said["hub"]["warnings"]] == ["/labels", "/safetySettings/0"]


@pytest.mark.req("LLM-8")
def test_an_answer_is_held_to_a_schema_in_googles_own_words(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [text_answer('{"city": "Oslo", "degrees": null}')]
    schema = {
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING"}, "degrees": {"type": "INTEGER", "nullable": True}},
        "required": ["city", "degrees"],
    }

    answer = caller.ask(
        at("generateContent"),
        build_contents(generation_config={"response_mime_type": "application/json", "response_schema": schema}),
    )

    assert answer.status_code == 200, answer.content
    [part] = answer.json()["candidates"][0]["content"]["parts"]
    assert json.loads(part["text"]) == {"city": "Oslo", "degrees": None}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize("query", ["", "?alt=sse"])
def test_a_failure_before_the_first_word_has_a_status_of_its_own_also_in_a_stream(
    query: str, caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    bench.scripts = [(ProviderQuotaExhausted(),)]

    answer = caller.ask(at("streamGenerateContent") + query, build_contents())

    assert read_google_error(answer) == (429, "RESOURCE_EXHAUSTED", "PROVIDER.QUOTA_EXHAUSTED")
    assert answer.headers["X-Hub-Call"] == Invocation.objects.get().wire_id


@pytest.mark.req("LLM-9")
def test_how_long_to_wait_is_said_as_googles_clients_read_it(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(ProviderRateLimited(retry_after_s=7),)]

    error = caller.ask(at("generateContent"), build_contents()).json()["error"]

    assert [each["retryDelay"] for each in error["details"] if each["@type"].endswith("RetryInfo")] == ["7s"]


@pytest.mark.req("LLM-5", "LLM-9")
def test_a_provider_that_breaks_off_is_no_answer(caller: Caller, model: Tool, bench: ProviderBench) -> None:
    bench.scripts = [(ChatDelta(text="Hm"), StreamTruncated())] * 10

    answer = caller.ask(at("generateContent"), build_contents())

    assert read_google_error(answer) == (502, "INTERNAL", "PROVIDER.STREAM_TRUNCATED")


@pytest.mark.req("LLM-1", "SPEC-9")
def test_a_key_that_was_used_gives_the_same_answer_again_in_the_form_that_is_asked_for(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    key = {"Idempotency-Key": "once"}
    first = caller.ask(at("generateContent"), build_contents(), **key)
    again = caller.ask(at("streamGenerateContent"), build_contents(), **key)

    [piece] = again.json()
    assert (first.json(), len(bench.requests)) == (piece, 1)
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.req("LLM-7")
def test_tokens_are_counted_by_the_hubs_estimate_and_nobody_is_asked(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    short = caller.ask(at("countTokens"), build_contents()).json()
    whole = build_contents(systemInstruction={"parts": [{"text": "Be brief. " * 100}]})
    long = caller.ask(at("countTokens"), {"generateContentRequest": {"model": f"models/{MODEL}", **whole}}).json()

    assert 0 < short["totalTokens"] < 30
    assert long["totalTokens"] > 300
    assert short["hub"] == {"counted_by": "estimate"}
    assert (bench.provider, Invocation.objects.count()) == (None, 0)


@pytest.fixture
def vectors(connect: Callable[..., Tool], grant: Callable[..., Any]) -> str:
    grant("model.*")
    return str(connect(alias="vectors", operation="embed").name)


@pytest.mark.req("LLM-1", "LLM-6")
def test_a_text_becomes_a_vector_alone_and_in_a_batch(caller: Caller, vectors: str) -> None:
    one = caller.ask(at("embedContent", model=VECTORS), {"content": {"parts": [{"text": "a red bicycle"}]}}).json()
    batch = caller.ask(at("batchEmbedContents", model="vectors"), build_texts("a red bicycle")).json()

    assert one["embedding"]["values"] == pytest.approx([0.6, 0.8])
    assert batch["embeddings"] == [one["embedding"]]
    assert one["usageMetadata"]["promptTokenCount"] == 1
    assert [kinds_of(each) for each in Invocation.objects.all()] == [PAIR, PAIR]


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"outputDimensionality": 8}, "requests[0].outputDimensionality"),
        ({"taskType": "CLUSTERING"}, "requests[0].taskType"),
        ({"title": "x"}, "requests[0].title"),
        ({"content": {"parts": [{"text": "a"}, {"text": "b"}]}}, "requests[0].content.parts"),
        ({"model": "models/other"}, "requests[0].model"),
        ({"surprise": 1}, "requests[0].surprise"),
    ],
)
def test_what_vectors_cannot_be_asked_for_is_refused_with_its_place(
    more: dict[str, Any], field: str, caller: Caller, vectors: str
) -> None:
    [text] = build_texts("x")["requests"]

    answer = caller.ask(at("batchEmbedContents", model=VECTORS), {"requests": [text | more]})

    assert read_google_error(answer)[0] == 400
    assert list_fields(answer) == [field]


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize("path", ["/v1/models", "/v1beta/models"])
def test_the_list_is_googles_where_the_key_comes_in_googles_header(
    path: str, caller: Caller, connect: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    grant("model.*")
    connect(window_tokens=8192)
    connect(alias="vectors", operation="embed")
    key = {"Authorization": "", "X-Goog-Api-Key": caller.key}

    listed = caller.fetch(path, **key).json()
    first = caller.fetch(f"{path}?pageSize=1", **key).json()
    rest = caller.fetch(f"{path}?pageSize=1&pageToken={first['nextPageToken']}", **key).json()
    one = caller.fetch(f"{path}/main", **key).json()

    main, embedding = listed["models"]
    assert (main["name"], main["displayName"], main["inputTokenLimit"]) == (f"models/{MODEL}", "main", 8192)
    assert main["supportedGenerationMethods"] == ["generateContent", "streamGenerateContent", "countTokens"]
    assert embedding["supportedGenerationMethods"] == ["embedContent", "batchEmbedContents"]
    assert (one, first["models"], rest) == (main, [main], {"models": [embedding]})
    assert "nextPageToken" not in listed
    assert read_google_error(caller.fetch(f"{path}?pageToken=nonsense", **key)) == INVALID
    assert read_google_error(caller.fetch(f"{path}?pageSize=0", **key)) == INVALID


@pytest.mark.req("LLM-1")
def test_the_list_stays_openais_for_all_others(caller: Caller, model: Tool) -> None:
    answer = caller.fetch("/v1/models")
    paged = caller.fetch("/v1/models?pageSize=1")

    assert (answer.json()["object"], answer.headers["Vary"].partition(",")[0]) == ("list", "X-Goog-Api-Key")
    assert paged.headers["X-Hub-Reason"] == "SCHEMA.VALIDATION_FAILED"
