"""Gemini answers: is what the hub answers, streams, counts and refuses written as Google has it?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernel.problems import Forbidden, Internal, NotFound, Problem, SchemaInvalid, TooLarge, Unauthenticated
from llm.answers import ChatDelta, FinishReason
from llm.problems import ModelTimedOut, ParameterUnsupported, ProviderRateLimited, ProviderUnavailable, StreamTruncated
from llm.providers.gemini_streams import ContentReader
from llm.served.gemini_embeddings import read_batch_embedding
from llm.served.gemini_problems import find_field
from llm.served.gemini_requests import read_content_count, read_generation
from tests.support.gemini_bodies import CONTENTS, HI, find_pointers, stream
from tests.support.served_answers import ABOUT, ANSWERS, PROPOSALS, TEXT, build_answer
from tests.support.served_formats import parse_chunks
from unitools.dialects.streams import collect_response


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_says_what_the_whole_answer_says(name: str) -> None:
    whole, pieces = CONTENTS.write(ANSWERS[name], ABOUT), stream(ANSWERS[name])

    collected = collect_response(pieces)["candidates"][0]
    said = whole["candidates"][0]
    assert [each for each in collected["content"]["parts"] if each != {"text": ""}] == said["content"]["parts"]
    assert collected["finishReason"] == said["finishReason"]
    assert all(each["candidates"][0]["content"]["parts"] for each in pieces[:-1])
    assert {name: pieces[-1][name] for name in ("usageMetadata", "hub", "responseId")} == {
        name: whole[name] for name in ("usageMetadata", "hub", "responseId")
    }


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize("name", ["text", "calls", "cut", "stopped", "ended for no known reason"])
def test_a_hub_whose_provider_is_a_hub_reads_the_same_answer(name: str) -> None:
    answered, reader = ANSWERS[name], ContentReader({"bank_pay": "bank.accounts.pay"})
    deltas: list[ChatDelta] = [each for piece in stream(answered) for each in reader.read(piece)]
    last = reader.finish()

    assert "".join(each.text for each in deltas) == answered["text"]
    assert [(c.tool_call.call_id, c.tool_call.name) for c in deltas if c.tool_call] == [
        (each["call_id"], each["name"]) for each in answered["proposals"]
    ]
    wanted = FinishReason(answered["finish_reason"])
    assert last.finish_reason == (FinishReason.STOP if wanted is FinishReason.TOOL else wanted)
    assert last.usage is not None
    assert (last.usage.input_tokens, last.usage.output_tokens, last.usage.cached_tokens) == (12, 7, 4)


@pytest.mark.req("LLM-2")
def test_an_answer_has_the_callers_names_of_the_tools_and_what_the_hub_says_beside() -> None:
    said = CONTENTS.write(ANSWERS["text and calls"], ABOUT)

    [candidate] = said["candidates"]
    assert [each.get("functionCall", {}).get("name") for each in candidate["content"]["parts"]] == [
        None,
        "bank_pay",
        "weather",
    ]
    assert candidate["content"]["parts"][0] == {"text": TEXT}
    assert (said["responseId"], said["modelVersion"]) == ("inv_1", "model.script.main")
    assert said["usageMetadata"]["cachedContentTokenCount"] == 4
    assert (said["hub"]["call_id"], said["hub"]["answered_by"]) == ("inv_1", "answered-1")


@pytest.mark.req("LLM-3")
def test_of_an_answer_that_was_cut_or_has_an_unusable_call_no_call_is_passed_on() -> None:
    unusable = build_answer(finish="tool", proposals=[PROPOSALS[1], PROPOSALS[0] | {"arguments": None, "problem": "x"}])

    for answered, reason in ((ANSWERS["cut in a call"], "MAX_TOKENS"), (unusable, "MALFORMED_FUNCTION_CALL")):
        [candidate] = CONTENTS.write(answered, ABOUT)["candidates"]
        last = stream(answered)[-1]["candidates"][0]
        assert candidate["finishReason"] == last["finishReason"] == reason
        assert candidate["content"]["parts"] == [{"text": TEXT}]
        assert ("finishMessage" in candidate) == (answered is unusable)
        assert last["content"]["parts"] == [{"text": ""}]


@pytest.mark.req("LLM-5", "LLM-9")
@pytest.mark.parametrize("as_array", [False, True])
def test_a_stream_that_broke_off_ends_with_an_error_and_no_reason_of_an_end(as_array: bool) -> None:
    writer = CONTENTS.open_stream(ABOUT, {"as_array": as_array})

    said = writer.add(ChatDelta(text="Half")) + writer.fail(StreamTruncated())

    pieces = json.loads(said) if as_array else parse_chunks(said)
    assert [each.get("finishReason") for each in pieces[0]["candidates"]] == [None]
    error, beside = pieces[-1]["error"], pieces[-1]["hub"]
    assert (error["code"], error["status"]) == (502, "INTERNAL")
    assert beside == {"call_id": "inv_1", "reason": "PROVIDER.STREAM_TRUNCATED"}


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("problem", "status", "word"),
    [
        (SchemaInvalid("no"), 400, "INVALID_ARGUMENT"),
        (ParameterUnsupported("no"), 400, "INVALID_ARGUMENT"),
        (Unauthenticated("no"), 401, "UNAUTHENTICATED"),
        (Forbidden("no"), 403, "PERMISSION_DENIED"),
        (NotFound("no"), 404, "NOT_FOUND"),
        (TooLarge("no"), 413, "INVALID_ARGUMENT"),
        (ProviderRateLimited("no"), 429, "RESOURCE_EXHAUSTED"),
        (ProviderUnavailable("no"), 503, "UNAVAILABLE"),
        (ModelTimedOut("no"), 504, "DEADLINE_EXCEEDED"),
        (Internal("no"), 500, "INTERNAL"),
    ],
)
def test_a_problem_has_the_status_and_the_word_that_googles_clients_know(
    problem: Problem, status: int, word: str
) -> None:
    found, body = CONTENTS.write_problem(problem)

    error = body["error"]
    assert (found, error["code"], error["status"]) == (status, status, word)
    assert error["message"].startswith("no")
    [info] = [each for each in error["details"] if each["@type"].endswith("ErrorInfo")]
    assert (info["reason"], info["domain"]) == (problem.reason.replace(".", "_"), "toolhub")


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("pointer", "field"),
    [
        ("/contents/0/parts/1/text", "contents[0].parts[1].text"),
        ("/messages/2/segments/0", "contents"),
        ("/max_tokens", "generationConfig.maxOutputTokens"),
        ("/generationConfig/a~1b", "generationConfig.a/b"),
        ("", ""),
    ],
)
def test_places_are_those_of_the_body(pointer: str, field: str) -> None:
    assert find_field(pointer) == field


@pytest.mark.req("LLM-6")
def test_what_a_vector_is_for_is_the_hubs_kind_and_one_for_all_texts() -> None:
    def ask(*tasks: str | None, **hub: Any) -> dict[str, Any]:
        texts = [{"content": {"parts": [{"text": "x"}]}, "taskType": task} for task in tasks]
        return read_batch_embedding({"requests": texts, "hub": hub}, model="main")

    assert ask("RETRIEVAL_QUERY", "RETRIEVAL_QUERY") == {"items": ["x", "x"], "kind": "query"}
    assert ask("RETRIEVAL_DOCUMENT", kind="passage", normalize=False)["kind"] == "passage"
    assert ask(None, "TASK_TYPE_UNSPECIFIED") == {"items": ["x", "x"]}
    for tasks, hub, pointer in (
        (("RETRIEVAL_QUERY", None), {}, "/requests/1/taskType"),
        (("CLUSTERING",), {}, "/requests/0/taskType"),
        (("RETRIEVAL_QUERY",), {"kind": "passage"}, "/hub/kind"),
    ):
        with pytest.raises((ParameterUnsupported, SchemaInvalid)) as refused:
            ask(*tasks, **hub)
        assert find_pointers(refused.value) == [pointer]


@pytest.mark.req("LLM-7")
def test_what_is_counted_is_contents_or_a_whole_request() -> None:
    whole = {"model": "models/main", "contents": HI, "systemInstruction": {"parts": [{"text": "Be brief"}]}}

    plain, request = (
        read_content_count(body, model="main") for body in ({"contents": HI}, {"generateContentRequest": whole})
    )

    assert [each["role"] for each in plain.arguments["messages"]] == ["user"]
    assert [each["role"] for each in request.arguments["messages"]] == ["system", "user"]
    with pytest.raises(SchemaInvalid):
        read_content_count({"contents": HI, "generateContentRequest": whole}, model="main")
    with pytest.raises(SchemaInvalid, match="another model"):
        read_generation({"contents": HI, "model": "models/other"}, model="main")
