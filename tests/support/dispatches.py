"""Dispatches: how do tests write what a model has answered, and read what became of it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from invocations.models import Invocation
from kernel.ids import decode

if TYPE_CHECKING:
    from tests.conftest import Caller

ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
MANGLED = "sample_tools_echo"


def chat(*calls: tuple[str, str, Any], finish_reason: str = "tool_calls") -> dict[str, Any]:
    """A completion of OpenAI Chat with calls: id, name, arguments."""
    said = [
        {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for id, name, given in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": said}
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}]}


def send(caller: Caller, response: Any, headers: dict[str, str] | None = None, **more: Any) -> Any:
    actor = {"type": "agent", "id": caller.agent.name}
    body = {"request_id": "test-request-1", "actor": actor, "response": response, **more}
    return caller.post("/dispatch", body, **(headers or {}))


def rows(answer: Any) -> list[Invocation]:
    calls = [each["answer"]["call"] for each in answer.json()["data"]["calls"]]
    return [Invocation.objects.get(pk=decode("inv", call["call_id"])) for call in calls]


def statuses(answer: Any) -> list[str]:
    return [each["status"] for each in answer.json()["data"]["calls"]]
