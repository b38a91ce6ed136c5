"""Provider wires: the forms in which providers send an answer, and a model of ours that is connected to each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm.provider_factory import ProviderConfig, ProviderFactory
from tests.support.model_streams import STREAMS

if TYPE_CHECKING:
    from llm.interfaces import ChatModel

CALLS = [("c1", {"a": 1}), ("c2", {"a": 2})]
TEXT = "Größe 中 😀 <think> end"


@dataclass(frozen=True, slots=True)
class Wire:
    """One kind of provider: the path that is asked, and events at its end without which an answer is not whole."""

    kind: str
    model: str
    dialect: str
    path: str
    terminal: int


WIRES = {
    "chat": Wire("openai", "gpt-4o", "openai", "/v1/chat/completions", 1),
    "responses": Wire("openai_responses", "gpt-4o", "openai-responses", "/v1/responses", 1),
    "messages": Wire("anthropic", "claude-new", "anthropic", "/v1/messages", 1),
    "compatible": Wire("openai_compatible", "local", "openai", "/v1/chat/completions", 1),
}
# With the one whose requests have a form of their own (tests/contracts/models/test_gemini_wire.py).
ALL_WIRES = WIRES | {
    "content": Wire("gemini", "gemini-2.5-flash", "gemini", "/v1/models/gemini-2.5-flash:streamGenerateContent", 1)
}


def build_whole(dialect: str, *, text: str = TEXT, calls: bool = True, stop: str = "") -> dict[str, Any]:
    """An answer with a text and two calls of one tool, or with a text alone."""
    given = CALLS if calls else []
    if dialect == "gemini":
        parts = [{"functionCall": {"id": id, "name": "bank_pay", "args": arguments}} for id, arguments in given]
        written = {"role": "model", "parts": [{"text": text}, *parts]}
        return {"candidates": [{"content": written, "finishReason": stop or "STOP"}], "modelVersion": "answered-1"}
    if dialect == "openai":
        functions = [
            {"id": id, "type": "function", "function": {"name": "bank_pay", "arguments": json.dumps(arguments)}}
            for id, arguments in given
        ]
        message = {"role": "assistant", "content": text, "tool_calls": functions}
        reason = stop or ("tool_calls" if calls else "stop")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {"id": "x", "created": 1, "model": "answered-1", "choices": [choice]}
    if dialect == "anthropic":
        blocks = [{"type": "tool_use", "id": id, "name": "bank_pay", "input": arguments} for id, arguments in given]
        content = [{"type": "text", "text": text}, *blocks]
        reason = stop or ("tool_use" if calls else "end_turn")
        head = {"id": "m", "type": "message", "role": "assistant", "model": "answered-1", "content": content}
        return {**head, "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 4}}
    items: list[dict[str, Any]] = [
        {
            "type": "function_call",
            "id": f"f{id}",
            "call_id": id,
            "name": "bank_pay",
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        for id, arguments in given
    ]
    usage = {
        "input_tokens": 3,
        "output_tokens": 4,
        "total_tokens": 7,
        "input_tokens_details": {"cached_tokens": 1},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "answered-1",
        "error": None,
        "tools": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "usage": usage,
        "incomplete_details": {"reason": stop} if stop else None,
        "status": "incomplete" if stop else "completed",
    }
    part = {"type": "output_text", "text": text, "annotations": []}
    said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    return {**whole, "output": [said, *items]}


def build_events(wire: Wire, **answer: Any) -> list[bytes]:
    """The events of an answer, each with its frame."""
    whole = build_whole(wire.dialect, **answer)
    events = [as_sent(each) for each in STREAMS[wire.dialect](whole)]
    if wire.dialect == "openai-responses":
        events[1:1] = text_events(whole["output"][0])
    framed = [frame_event(each, wire.dialect) for each in events]
    return [*framed, b"data: [DONE]\n\n"] if wire.dialect == "openai" else framed


def as_sent(event: dict[str, Any]) -> dict[str, Any]:
    """Responses adds a call before it says any of its arguments, and a message before its text."""
    if event.get("type") == "response.output_item.added" and event["item"]["type"] == "function_call":
        return {**event, "item": {**event["item"], "arguments": ""}}
    if event.get("type") == "response.output_item.added":
        return {**event, "item": {**event["item"], "content": []}}
    return event


def text_events(message: dict[str, Any]) -> list[dict[str, Any]]:
    text, at = message["content"][0]["text"], {"output_index": 0, "content_index": 0, "item_id": message["id"]}
    added = {
        "type": "response.output_item.added",
        "output_index": 0,
        "sequence_number": 0,
        "item": {**message, "content": []},
    }
    pieces = [text[start : start + 5] for start in range(0, len(text), 5)]
    return [
        added,
        *(
            {"type": "response.output_text.delta", **at, "sequence_number": 0, "delta": each, "logprobs": []}
            for each in pieces
        ),
    ]


def frame_event(event: dict[str, Any], dialect: str) -> bytes:
    name = "" if dialect in {"openai", "gemini"} else f"event: {event['type']}\n"
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def connect(wire: Wire, url: str, **options: Any) -> ChatModel:
    """A model of ours at that address."""
    factory = ProviderFactory()
    given = {"networks": ["127.0.0.0/8"], **options}
    factory.register("p", ProviderConfig(wire.kind, base_url=f"{url}/v1", key="sk-canary", options=given))
    return factory.get_chat_model(f"p:{wire.model}")
