"""A provider of models on this machine: proposes a call where it is shown tools, then says what came of it, and fails by word."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.model_servers import Reply, event_reply, json_reply
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from tests.support.http_server import Heard

HELLO = "Hello there, my friend."
DOCUMENT = '{"city": "Oslo", "degrees": 7}'
VECTOR = [0.6, 0.8, 0.0]
VALUES = {"string": "you", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
ERRORS = {
    "busy": json_reply({"error": {"message": "slow down", "type": "rate_limit_error"}}, 429),
    "too long": json_reply({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400),
}


def read_last(body: dict[str, Any]) -> tuple[str, str]:
    """(Role, text) of the last message."""
    message = body["messages"][-1]
    content = message["content"]
    text = content if isinstance(content, str) else " ".join(each.get("text", "") for each in content)
    return message["role"], text


def build_arguments(parameters: dict[str, Any]) -> str:
    properties = parameters.get("properties", {})
    return json.dumps({name: VALUES.get(said.get("type", "string"), "you") for name, said in properties.items()})


def build_answer(body: dict[str, Any]) -> dict[str, Any]:
    """The whole answer to a chat."""
    role, text = read_last(body)
    message: dict[str, Any] = {"role": "assistant", "content": HELLO}
    finish = "stop"
    if role == "tool":
        message["content"] = f"The tool said: {text}"
    elif body.get("response_format", {}).get("type", "text") != "text":
        message["content"] = DOCUMENT
    elif tools := body.get("tools"):
        wanted = 2 if "both" in text else 1
        function = tools[0]["function"]
        said = {"name": function["name"], "arguments": build_arguments(function["parameters"])}
        calls = [{"id": f"call_{place}", "type": "function", "function": said} for place in range(wanted)]
        message, finish = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "mock-1", "choices": [choice]}


def answer(heard: Heard) -> Reply:
    body = json.loads(heard.body)
    if heard.path.endswith("/embeddings"):
        vectors = [
            {"object": "embedding", "index": place, "embedding": VECTOR} for place, _ in enumerate(body["input"])
        ]
        usage = {"prompt_tokens": 4, "total_tokens": 4}
        return json_reply({"object": "list", "data": vectors, "model": "mock-1", "usage": usage})
    _, text = read_last(body)
    for word, reply in ERRORS.items():
        if word in text:
            return reply
    chunks = list(chat_chunks(build_answer(body)))
    if "break off" in text:
        return event_reply(*chunks[:3], end="cut")
    return event_reply(*chunks, b"data: [DONE]\n\n")
