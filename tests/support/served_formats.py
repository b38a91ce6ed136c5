"""Served formats from the caller's side: bodies as SDKs send them, and streams as they arrive."""

from __future__ import annotations

import json
from typing import Any

CHAT = "/v1/chat/completions"
MODEL = "model.script.main"  # tests.support.connected_models
TOOL = "sample.tools.echo"
DONE = "[DONE]"


def build_chat(text: str = "Hello", **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


def build_function(name: str, **more: Any) -> dict[str, Any]:
    """A tool as its caller describes it."""
    said = {"name": name, "description": "Whatever the caller says.", "parameters": {"type": "object"}, **more}
    return {"type": "function", "function": said}


def parse_chunks(text: str) -> list[Any]:
    """The data of each event; the mark of a good end as its text."""
    data = [block.removeprefix("data: ") for block in text.split("\n\n") if block]
    return [each if each == DONE else json.loads(each) for each in data]


def read_error(answer: Any) -> tuple[int, str, str]:
    """(Status, code, the hub's reason)."""
    return answer.status_code, answer.json()["error"]["code"], answer.headers["X-Hub-Reason"]


# A body for each address that takes calls, by the name of its route, and the model that it asks.
BODIES: dict[str, dict[str, Any]] = {
    "served_chat_completions": build_chat(),
    "served_messages": build_chat(max_tokens=9),
    "served_responses": {"model": MODEL, "input": "x"},
    "served_embeddings": {"model": "model.script.vectors", "input": "x"},
    "served_rerank": {"model": "model.script.ranker", "query": "x", "documents": ["x"]},
}
