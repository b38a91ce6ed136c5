"""Model clients: do both clients read what models answer, as a whole and piece by piece, and is half an answer never taken for a
whole one?
"""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import pytest

from llm.messages import AssistantMessage, SystemMessage, Text, ToolMessage, UserMessage
from tests.support.scripted_hub import DROP, ID, KEY, both, envelope, scripted
from unitools.calls import CallProblem, ToolCall
from unitools.hub import AsyncHubClient, HubClient, NotUnderstood, Unreachable
from unitools.hub.errors import InvalidArgument, UpstreamError
from unitools.hub.model_messages import build_messages
from unitools.hub.responses import build_dispatch

USAGE = {
    "input_tokens": 3,
    "output_tokens": 2,
    "requests": 1,
    "counted_by": "provider",
    "cost_micros": 1500,
    "currency": "EUR",
}
SAID = {"text": "Hello", "proposals": [], "finish_reason": "stop", "model": "m-1", "usage": USAGE}
PROPOSED = SAID | {
    "text": "",
    "finish_reason": "tool",
    "proposals": [{"call_id": "c1", "name": "a.b.c", "arguments": {"n": 1}}],
}
EVENTS = {"Content-Type": "text/event-stream", "Location": f"/api/v1/invocations/{ID}"}
ERROR = {"code": "UPSTREAM_ERROR", "reason": "PROVIDER.UNAVAILABLE", "message": "Away.", "retryable": "no"}


def events(*given: tuple[str, Any]) -> bytes:
    return b"".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode() for kind, data in given)


DELTAS = (("delta", {"text": "Hel", "model": "m-1"}), ("delta", {"text": "lo"}), ("delta", {"finish_reason": "stop"}))
WHOLE = events(*DELTAS, ("end", envelope(SAID)))


def stream_all(url: str, kind: type[HubClient | AsyncHubClient]) -> tuple[list[Any], Any]:
    """The pieces and the answer that each client gives."""
    if kind is HubClient:
        with HubClient(url, KEY, attempts=2) as hub, hub.stream("main", "Hi") as stream:
            pieces = list(stream)
            return pieces, stream.answer

    async def main() -> tuple[list[Any], Any]:
        async with AsyncHubClient(url, KEY, attempts=2) as hub, hub.stream("main", "Hi") as stream:
            pieces = [each async for each in stream]
            return pieces, stream.answer

    return asyncio.run(main())


both_kinds = pytest.mark.parametrize("kind", [HubClient, AsyncHubClient])


@pytest.mark.req("LLM-5")
@both
def test_an_answer_has_its_text_its_usage_and_what_it_cost(using: Any) -> None:
    with scripted(DROP, (200, {"Idempotency-Replayed": "true"}, envelope(SAID) | {"warnings": ["w"]})) as server:
        answer = using(server.url, lambda hub: hub.chat("main", "Hi", temperature=0.5, tools="a.*", seed=None))

    assert (answer.text, answer.finish_reason, answer.model) == ("Hello", "stop", "m-1")
    assert (answer.call_id, answer.warnings, answer.replayed) == (ID, ("w",), True)
    assert (answer.usage.input_tokens, answer.usage.counted_by) == (3, "provider")
    assert (str(answer.usage.cost), answer.usage.currency) == ("0.0015", "EUR")
    first, second = server.heard
    assert json.loads(second.body)["arguments"] == {
        "messages": [{"role": "user", "segments": [{"type": "text", "text": "Hi"}]}],
        "temperature": 0.5,
        "tools": ["a.*"],
    }
    assert (second.path, first.body) == ("/api/v1/models/main/chat", second.body)
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


@pytest.mark.req("LLM-5")
@both
def test_vectors_and_scores_come_in_the_order_of_what_was_sent(using: Any) -> None:
    vectors = {"vectors": [[1.0, 2.0]], "dim": 2, "dtype": "float32", "model": "e", "usage": USAGE}
    scores = {"scores": [0.1, 0.9], "ordering": [1, 0], "encoder": "cross", "model": "r", "usage": USAGE}
    with scripted((200, {}, envelope(vectors)), (200, {}, envelope(scores))) as server:
        embedded = using(server.url, lambda hub: hub.embed("e", "a red bicycle", kind="passage"))
        ranked = using(server.url, lambda hub: hub.rerank("r", "cheap", ("a", "b")))

    assert (embedded.vectors, embedded.dim) == (((1.0, 2.0),), 2)
    assert (ranked.scores, ranked.ordering, ranked.encoder) == ((0.1, 0.9), (1, 0), "cross")
    assert [json.loads(each.body)["arguments"] for each in server.heard] == [
        {"items": ["a red bicycle"], "kind": "passage"},
        {"query": "cheap", "candidates": ["a", "b"]},
    ]


@pytest.mark.req("LLM-5")
@both
def test_models_are_listed_to_the_last_page(using: Any) -> None:
    row = {"alias": "x", "provider": "p", "model": "m", "operation": "chat", "window_tokens": 9, "data_classes": ["a"]}
    pages = [({"models": [row | {"id": f"model.p.{n}"}], "next": n}) for n in ("a", None)]
    with scripted(*[(200, {}, envelope(page)) for page in pages]) as server:
        found = using(server.url, lambda hub: hub.models(operation="chat"))

    assert [(each.id, each.name, each.window_tokens) for each in found] == [
        ("model.p.a", "m", 9),
        ("model.p.None", "m", 9),
    ]
    assert [each.path for each in server.heard] == [
        "/api/v1/models?operation=chat",
        "/api/v1/models?operation=chat&after=a",
    ]


@pytest.mark.req("LLM-5")
@both_kinds
def test_the_pieces_of_a_stream_make_the_answer_that_ends_it(kind: Any) -> None:
    with scripted((200, EVENTS, WHOLE)) as server:
        pieces, answer = stream_all(server.url, kind)

    assert "".join(each.text for each in pieces) == answer.text == "Hello"
    assert (pieces[-1].finish_reason, answer.call_id, answer.usage.output_tokens) == ("stop", ID, 2)
    assert server.heard[0].headers["accept"] == "text/event-stream"


@pytest.mark.req("LLM-5")
@both_kinds
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((200, EVENTS, events(*DELTAS)), Unreachable),
        ((200, EVENTS, b""), Unreachable),
        ((200, EVENTS, WHOLE[:-30]), Unreachable),
        ((200, EVENTS, events(DELTAS[0], ("error", envelope() | {"ok": False, "error": ERROR}))), UpstreamError),
        ((200, EVENTS, events(DELTAS[0], ("error", ERROR))), UpstreamError),
        ((200, EVENTS, b"event: delta\ndata: {\n\n"), NotUnderstood),
        ((200, EVENTS, events(("end", envelope()))), NotUnderstood),
        ((200, {"Content-Type": "text/html"}, b"<html>"), NotUnderstood),
        ((200, {}, envelope(SAID)), NotUnderstood),
        ((400, {}, envelope() | {"ok": False, "error": ERROR | {"code": "INVALID_ARGUMENT"}}), InvalidArgument),
    ],
)
def test_half_an_answer_is_never_taken_for_a_whole_one(kind: Any, reply: Any, error: type[Exception]) -> None:
    with scripted(reply) as server, pytest.raises(error) as refused:
        stream_all(server.url, kind)

    assert type(refused.value) is error
    assert KEY not in str(refused.value)


@pytest.mark.req("LLM-5")
@both_kinds
def test_a_stream_that_never_began_is_asked_for_again_with_its_key(kind: Any) -> None:
    with scripted(DROP, (200, EVENTS, WHOLE)) as server:
        assert stream_all(server.url, kind)[1].text == "Hello"

    assert len({each.headers["idempotency-key"] for each in server.heard}) == 1


@pytest.mark.req("LLM-5")
def test_an_answer_is_read_only_behind_its_pieces() -> None:
    with scripted((200, EVENTS, WHOLE)) as server, HubClient(server.url, KEY) as hub:
        closed = hub.stream("main", "Hi")
        with pytest.raises(RuntimeError, match="not open"):
            next(iter(closed))
        with hub.stream("main", "Hi") as stream, pytest.raises(RuntimeError, match="not whole"):
            stream.answer  # noqa: B018


@pytest.mark.req("LLM-5")
@both
def test_proposals_go_to_dispatch_as_they_are(using: Any) -> None:
    with scripted((200, {}, envelope(PROPOSED)), *[(200, {}, envelope({"messages": [], "calls": []}))] * 2) as server:
        answer = using(server.url, lambda hub: hub.chat("main", "Hi"))
        using(server.url, lambda hub: hub.dispatch(answer))
        using(server.url, lambda hub: hub.dispatch(answer.proposals))

    assert answer.proposals == (ToolCall("c1", "a.b.c", {"n": 1}, provider_id="c1", proposed_by=ID),)
    bodies = [json.loads(each.body) for each in server.heard[1:]]
    (call,) = bodies[0]["response"]["tool_calls"]
    assert (bodies[0]["response"], bodies[0]["dialect"]) == (bodies[1]["response"], "openai")
    assert bodies[0]["proposed_by"] == bodies[1]["proposed_by"] == {"invocation": ID}
    assert (call["id"], call["function"]) == ("c1", {"name": "a.b.c", "arguments": '{"n": 1}'})


@pytest.mark.req("LLM-5")
def test_one_dispatch_names_one_answer_or_none() -> None:
    first, second = (ToolCall(f"c{n}", "a.b.c", {}, proposed_by=f"inv_{n}") for n in (1, 2))

    assert build_dispatch((first, first))["proposed_by"] == {"invocation": "inv_1"}
    assert "proposed_by" not in build_dispatch((first, second))
    assert "proposed_by" not in build_dispatch((first, ToolCall("c3", "a.b.c", {})))


@pytest.mark.req("LLM-5")
@both
def test_what_cannot_be_used_of_a_proposal_is_neither_dispatched_nor_sent_back(using: Any) -> None:
    cut = {"call_id": "c1", "name": "a.b.c", "arguments": None, "problem": "truncated", "detail": "It was cut."}
    with scripted((200, {}, envelope(PROPOSED | {"proposals": [cut, cut | {"problem": "of a later hub"}]}))) as server:
        answer = using(server.url, lambda hub: hub.chat("main", "Hi"))

    assert [each.problem for each in answer.proposals] == [CallProblem.TRUNCATED, CallProblem.MALFORMED]
    with HubClient(server.url, KEY) as hub, pytest.raises(ValueError, match="It was cut"):
        hub.dispatch(answer)
    with pytest.raises(ValueError, match="It was cut"):
        build_messages(["Hi", answer])


TEXT = {"type": "text", "text": "Hi"}
PROPOSAL = {"call_id": "c1", "name": "a.b.c", "arguments": {"n": 1}}


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("Hi", [{"role": "user", "segments": [TEXT]}]),
        ({"role": "user", "content": "Hi"}, [{"role": "user", "segments": [TEXT]}]),
        ([{"role": "user", "segments": [TEXT]}], [{"role": "user", "segments": [TEXT]}]),
        (["Hi", {"role": "user", "content": [TEXT], "name": None}], [{"role": "user", "segments": [TEXT]}] * 2),
        (
            [{"role": "tool", "tool_call_id": "c1", "content": "Hi"}],
            [{"role": "tool", "call_id": "c1", "segments": [TEXT]}],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "function": {"name": "a.b.c", "arguments": '{"n": 1}'}}],
                }
            ],
            [{"role": "assistant", "proposals": [PROPOSAL]}],
        ),
        (
            [
                SystemMessage((Text("Hi"),)),
                UserMessage((Text("Hi"),)),
                ToolMessage(call_id="c1", segments=(Text("Hi"),)),
            ],
            [
                {"role": "system", "segments": [TEXT]},
                {"role": "user", "segments": [TEXT]},
                {"role": "tool", "segments": [TEXT], "call_id": "c1", "is_error": False},
            ],
        ),
        (
            [AssistantMessage((), (ToolCall("c1", "a.b.c", {"n": 1}),))],
            [{"role": "assistant", "segments": [], "proposals": [PROPOSAL]}],
        ),
    ],
)
def test_a_conversation_is_taken_in_the_forms_that_programs_have(given: Any, sent: Any) -> None:
    assert build_messages(given) == sent


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    "given",
    [1, [None], [{"role": "assistant", "tool_calls": [{"id": "c1"}]}], [{"role": "assistant", "tool_calls": [1]}]],
)
def test_what_is_no_message_is_refused_before_anything_is_sent(given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        build_messages(given)


@pytest.mark.req("LLM-5")
def test_both_clients_have_the_same_methods_for_models() -> None:
    for name in ("models", "chat", "stream", "embed", "rerank", "dispatch"):
        signatures = [inspect.signature(getattr(kind, name)) for kind in (HubClient, AsyncHubClient)]
        assert {replace_answer(each) for each in signatures} == {replace_answer(signatures[0])}, name


def replace_answer(signature: inspect.Signature) -> str:
    return str(signature.replace(return_annotation=inspect.Signature.empty))
