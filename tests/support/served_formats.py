"""Served formats from the caller's side: bodies as SDKs send them, and streams as they arrive."""

from __future__ import annotations

import json
from typing import Any

from django.urls import reverse

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


def build_contents(text: str = "Hello", **more: Any) -> dict[str, Any]:
    """A body of Google's."""
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def build_texts(*texts: str) -> dict[str, Any]:
    """Texts to embed, in Google's words."""
    return {"requests": [{"content": {"parts": [{"text": text}]}} for text in texts]}


def find_address(name: str) -> str:
    """Where the body of that name goes: Google's addresses name the model."""
    return reverse(name, kwargs={"model_id": find_model(name)} if name.startswith("served_content") else None)


def find_model(name: str) -> str:
    """The model that the body of that name asks, or its address."""
    vectors = name.removesuffix("_v1").endswith(("_vector", "_vectors"))
    return str(BODIES[name].get("model", VECTORS if vectors else MODEL))


VECTORS = "model.script.vectors"
# What Google's addresses take, which are there twice.
GOOGLES: dict[str, dict[str, Any]] = {
    "served_content": build_contents("x"),
    "served_content_stream": build_contents("x"),
    "served_content_vector": {"content": {"parts": [{"text": "x"}]}},
    "served_content_vectors": build_texts("x"),
}
# A body for each address that takes calls, by the name of its route.
BODIES: dict[str, dict[str, Any]] = {
    **GOOGLES,
    **{f"{name}_v1": body for name, body in GOOGLES.items()},
    "served_chat_completions": build_chat(),
    "served_messages": build_chat(max_tokens=9),
    "served_responses": {"model": MODEL, "input": "x"},
    "served_embeddings": {"model": VECTORS, "input": "x"},
    "served_rerank": {"model": "model.script.ranker", "query": "x", "documents": ["x"]},
}
