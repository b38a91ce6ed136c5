"""Gemini chunks: are the pieces of an answer put together as Gemini means them, and never half used?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.model_streams import calls_in
from unitools.dialects import UnreadableResponse
from unitools.dialects.streams import collect_response


@pytest.mark.req("LLM-5")
def test_thoughts_and_signatures_stay_with_the_part_in_which_they_came() -> None:
    def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": list(parts)}, **more}]}

    built = collect_response(
        [
            chunk({"text": "I th", "thought": True}),
            chunk({"text": "ink.", "thought": True}),
            chunk({"text": "Good "}),
            chunk({"text": "day."}),
            chunk({"text": "", "thoughtSignature": "c2ln"}),
            chunk({"functionCall": {"name": "save", "args": {}}, "thoughtSignature": "c2lnMg"}, finishReason="STOP"),
        ]
    )

    assert built["candidates"][0]["content"]["parts"] == [
        {"text": "I think.", "thought": True},
        {"text": "Good day."},
        {"text": "", "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "save", "args": {}}, "thoughtSignature": "c2lnMg"},
    ]


def partial(*values: dict[str, Any], on: bool = True, **more: Any) -> dict[str, Any]:
    call = {**more, **({"partialArgs": list(values)} if values else {}), **({"willContinue": True} if on else {})}
    return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}


@pytest.mark.req("LLM-5", "TOOLS-30")
def test_arguments_that_gemini_sends_in_pieces_are_put_together_and_never_half_used() -> None:
    end = {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}
    chunks = [
        partial(name="save", id="a"),
        partial({"jsonPath": "$.text", "stringValue": "New ", "willContinue": True}),
        partial({"jsonPath": "$.text", "stringValue": "Delhi"}, {"jsonPath": "$.n[0].x", "numberValue": 3}),
        partial({"jsonPath": "$['ok.']", "boolValue": True}, {"jsonPath": "$.n[1]", "nullValue": "NULL_VALUE"}),
        partial(on=False),
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "load", "args": {"m": 1}}}]}}]},
    ]
    saved = {"text": "New Delhi", "n": [{"x": 3}, None], "ok.": True}

    assert calls_in("gemini", [*chunks, end]) == [("save", saved, None), ("load", {"m": 1}, None)]
    for at in range(1, 5):
        (found,) = calls_in("gemini", [*chunks[:at], end])
        assert found == ("save", None, "truncated")
    for odd in (
        {"jsonPath": "$.n[3]", "numberValue": 1},
        {"jsonPath": "$..n", "numberValue": 1},
        {"jsonPath": "$.text", "numberValue": 1},
        {"jsonPath": "$.text.deeper", "numberValue": 1},
        {"jsonPath": "$.other"},
    ):
        (first, *_) = calls_in("gemini", [*chunks[:4], partial(odd), *chunks[4:], end])
        assert first == ("save", None, "truncated"), odd


@pytest.mark.req("LLM-5")
def test_a_prompt_that_gemini_blocked_is_a_whole_answer_without_calls() -> None:
    assert calls_in("gemini", [{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}]) == []
    with pytest.raises(UnreadableResponse):
        collect_response([{"promptFeedback": {"safetyRatings": []}}])


@pytest.mark.req("LLM-5")
def test_what_an_answer_was_grounded_on_is_carried_along() -> None:
    candidate = {"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP", "groundingMetadata": {"chunks": [1]}}
    assert collect_response([{"candidates": [candidate]}])["candidates"][0]["groundingMetadata"] == {"chunks": [1]}
