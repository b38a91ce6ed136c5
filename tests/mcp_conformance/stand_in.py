"""The suite's server: what does a provider of models see of the hub's tools, when an agent framework passes them on?

A stand-in for OpenAI's chat API that refuses names as the real ones do, OpenAI's, Anthropic's and Gemini's at once. Asked for the
first time, its model calls one tool; shown the result, it repeats that.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from scripts.provision.processes import free_port
from tests.e2e.processes import until
from tests.support.provider_names import TAKEN, check_taken_by_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request


@dataclass(slots=True)
class StandIn:
    """``tool``: what the name of the tool that is called ends in; ``shown``: the names of the tools, as they arrived."""

    tool: str
    arguments: dict[str, Any]
    shown: list[str] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> JSONResponse:
        body = await request.json()
        self.shown = [each["function"]["name"] for each in body.get("tools", ())]
        for name in self.shown:
            try:
                check_taken_by_all(name)
            except AssertionError as refusal:
                why = f"Invalid 'tools[].function.name': expected a string that matches {TAKEN}. {refusal}"
                return JSONResponse({"error": {"message": why, "type": "invalid_request_error"}}, 400)
        last = body["messages"][-1]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if last["role"] == "tool":
            content = last["content"]
            message["content"] = content if isinstance(content, str) else content[0]["text"]
        else:
            (name,) = [each for each in self.shown if each.endswith(self.tool)]
            function = {"name": name, "arguments": json.dumps(self.arguments)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c1", "object": "chat.completion", "created": 0, "model": body["model"], "usage": usage}
        return JSONResponse(head | {"choices": [choice]})


@contextmanager
def standing_in(provider: StandIn) -> Iterator[StandIn]:
    """It answers inside the block."""
    port = free_port()
    app = Starlette(routes=[Route("/v1/chat/completions", provider.answer, methods=["POST"])])
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started, "the stand-in answers")
        provider.url = f"http://127.0.0.1:{port}/v1"
        yield provider
    finally:
        server.should_exit = True
        thread.join()
