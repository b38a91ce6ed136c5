"""Chat provider: what a provider that speaks OpenAI's API answers, for tests of whole hubs, which ask it over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.model_servers import Reply, event_reply, json_reply
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from tests.support.http_server import Heard

BREAK_OFF, STALL, REFUSE = "break off", "stall", "refuse"  # words of a question that the provider does not answer well
USAGE = {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19}
ARGUMENTS = {"sku": "LAPTOP-14", "quantity": 2, "currency": "EUR"}


def answer_request(heard: Heard) -> Reply:
    """A question is said again; a tool that is shown is proposed once, and then its result is said."""
    body = json.loads(heard.body)
    if heard.path.endswith("/embeddings"):
        rows = [{"object": "embedding", "index": at, "embedding": [3.0, 4.0]} for at in range(len(body["input"]))]
        return json_reply({"object": "list", "data": rows, "model": "house-2", "usage": USAGE})
    if heard.path.endswith("/rerank"):
        rows = [{"index": at, "relevance_score": 1 / len(text)} for at, text in enumerate(body["documents"])]
        return json_reply({"model": "house-3", "results": rows, "usage": {"total_tokens": 5}})
    return _answer_chat(body)


def _answer_chat(body: dict[str, Any]) -> Reply:
    last = body["messages"][-1]
    text = last["content"] if isinstance(last["content"], str) else "".join(part["text"] for part in last["content"])
    if REFUSE in text:
        return json_reply({"error": {"message": "no"}}, 401)
    calls = []
    if body.get("tools") and last["role"] == "user":
        name = body["tools"][0]["function"]["name"]
        calls = [{"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(ARGUMENTS)}}]
    message = {"role": "assistant", "content": None if calls else f"You said: {text}", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    chunks = list(chat_chunks({"id": "x", "created": 1, "model": "house-1", "choices": [choice]}))
    chunks[-1]["usage"] = USAGE
    if BREAK_OFF in text:
        return event_reply(*chunks[:3], end="cut")
    if STALL in text:
        return event_reply(*chunks[:3], end="stall")
    return event_reply(*chunks, b"data: [DONE]\n\n")
