"""The suite's server: what does a provider of models see of the hub's tools, when an agent framework passes them on?

A stand-in for OpenAI's chat API and for Gemini's that refuses names and schemas as the real ones do, OpenAI's, Anthropic's and
Gemini's at once.
Asked for the first time, its model calls one tool; shown the result, it repeats that.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from scripts.provision.processes import free_port
from tests.e2e.processes import until
from tests.support.provider_names import TAKEN, check_taken_by_all
from tests.support.provider_schemas import check_declaration_taken_by_gemini, check_parameters_taken_by_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from starlette.requests import Request

REFUSED = (
    "json_schema_2020_12_tool"  # the official suite wants it with conditions at the top level, which no provider takes
)


@dataclass(slots=True)
class StandIn:
    """``tool``: what the name of the tool that is called ends in; ``shown``: the names of the tools, as they arrived."""

    tool: str
    arguments: dict[str, Any]
    shown: list[str] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> JSONResponse:
        body = await request.json()
        functions = [each["function"] for each in body.get("tools", ())]
        refusal = self._take_names([each["name"] for each in functions])
        if refusal:
            why = f"Invalid 'tools[].function.name': expected a string that matches {TAKEN}. {refusal}"
            return JSONResponse({"error": {"message": why, "type": "invalid_request_error"}}, 400)
        taken = {each["name"]: each.get("parameters", {"type": "object"}) for each in functions}
        if refusal := self._take_schemas(partial(check_parameters_taken_by_all, *each) for each in taken.items()):
            why = f"Invalid schema for function. {refusal}"
            return JSONResponse({"error": {"message": why, "type": "invalid_request_error"}}, 400)
        last = body["messages"][-1]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if last["role"] == "tool":
            content = last["content"]
            message["content"] = content if isinstance(content, str) else content[0]["text"]
        else:
            function = {"name": self._find_name(), "arguments": json.dumps(self.arguments)}
            message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "c1", "object": "chat.completion", "created": 0, "model": body["model"], "usage": usage}
        return JSONResponse(head | {"choices": [choice]})

    async def answer_as_gemini(self, request: Request) -> JSONResponse:
        body = await request.json()
        declared = [one for each in body.get("tools", ()) for one in each.get("functionDeclarations", ())]
        if refusal := self._take_names([each["name"] for each in declared]):
            error = {"code": 400, "message": f"Invalid function name. {refusal}", "status": "INVALID_ARGUMENT"}
            return JSONResponse({"error": error}, 400)
        if refusal := self._take_schemas(partial(check_declaration_taken_by_gemini, each) for each in declared):
            error = {"code": 400, "message": f"Invalid schema. {refusal}", "status": "INVALID_ARGUMENT"}
            return JSONResponse({"error": error}, 400)
        last = body["contents"][-1]["parts"][-1]
        if "functionResponse" in last:
            part: dict[str, Any] = {"text": json.dumps(last["functionResponse"]["response"])}
        else:
            part = {"functionCall": {"name": self._find_name(), "args": self.arguments}}
        content = {"role": "model", "parts": [part]}
        return JSONResponse({"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "stand-in"})

    def _take_names(self, names: list[str]) -> str:
        """What a provider says of one that it does not take."""
        self.shown = names
        for name in names:
            try:
                check_taken_by_all(name)
            except AssertionError as refusal:
                return str(refusal)
        return ""

    def _take_schemas(self, checks: Iterable[partial[None]]) -> str:
        """What a provider says of the first that it does not take, beside the tool of the official suite."""
        for check in checks:
            try:
                check()
            except AssertionError as refusal:
                if REFUSED not in str(refusal):
                    return str(refusal)
        return ""

    def _find_name(self) -> str:
        (name,) = [each for each in self.shown if each.endswith(self.tool)]
        return name


@contextmanager
def standing_in(provider: StandIn) -> Iterator[StandIn]:
    """It answers inside the block."""
    port = free_port()
    routes = [
        Route("/v1/chat/completions", provider.answer, methods=["POST"]),
        Route("/v1/models/{model}", provider.answer_as_gemini, methods=["POST"]),
    ]
    app = Starlette(routes=routes)
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
