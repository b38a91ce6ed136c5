"""Entry paths: which ways lead to a call, and what does each say when it is refused?

MCP is spoken to in this process, in the transaction of the test; whether it also works over a wire is asked elsewhere.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync, sync_to_async

from access.authentication.known_keys import remember_holder
from invocations.mcp.endpoint import McpEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller

MODERN = "2026-07-28"
_META = "io.modelcontextprotocol/"


@dataclass(frozen=True, slots=True)
class Told:
    """``reason``: of what was in the way; empty when the call was made."""

    status: int
    reason: str


def _of_envelope(answer: Any) -> Told:
    return Told(answer.status_code, str((answer.json()["error"] or {}).get("reason", "")))


def _body(caller: Caller, envelope: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"request_id": "test-request-1", "actor": {"type": "agent", "id": caller.agent.name}, **envelope, **more}


def over_rest(caller: Caller, tool: str, arguments: dict[str, Any], **envelope: Any) -> Told:
    return _of_envelope(caller.invoke(tool, arguments, **envelope))


def as_proposal(caller: Caller, tool: str, arguments: dict[str, Any], **envelope: Any) -> Told:
    said = _body(caller, envelope, name=tool, call_id="call_1", arguments=arguments)
    return _of_envelope(caller.post("/proposals", said))


def by_dispatch(caller: Caller, tool: str, arguments: dict[str, Any], **envelope: Any) -> Told:
    """As the one call in a model's answer."""
    function = {"name": tool.replace(".", "_"), "arguments": json.dumps(arguments)}
    called = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": called}}
    response = {"object": "chat.completion", "choices": [choice]}
    answer = caller.post("/dispatch", _body(caller, envelope, response=response, dialect="openai"))
    body = answer.json()
    if not body.get("data"):
        return _of_envelope(answer)
    (call,) = body["data"]["calls"]
    return Told(answer.status_code, str((call["answer"]["error"] or {}).get("reason", "")))


async def _in_this_thread(work: Callable[[], Any]) -> Any:
    return await sync_to_async(work)()


@dataclass(frozen=True, slots=True)
class Sent:
    status: int
    headers: dict[str, str]
    body: dict[str, Any]
    text: str


def at_the_door(
    body: bytes, headers: dict[str, str], method: str = "POST", scheme: str = "http", path: str = "/mcp"
) -> Sent:
    """What `/mcp`, or a tenant's own MCP address, answers to exactly this request."""

    async def main() -> Sent:
        sent: list[Any] = []
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        measured = {"Content-Length": str(len(body))} if body else {}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": scheme,
            "path": path,
            "root_path": "",
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "headers": [(name.lower().encode(), value.encode()) for name, value in (measured | headers).items()],
        }
        await McpEndpoint(_nothing_else, _in_this_thread)(scope, receive, send)
        text = b"".join(each.get("body", b"") for each in sent).decode()
        told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        said = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("{", "data: {"))]
        return Sent(sent[0]["status"], told, json.loads(said[-1]) if said else {}, text)

    return async_to_sync(main)()


async def _nothing_else(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError(scope["path"])


def usual_headers(caller: Caller) -> dict[str, str]:
    accepted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    remember_holder(caller.key, caller.by)  # as after an earlier request
    return {**caller.headers(), "Host": "testserver", **accepted}


def modern_request(
    caller: Caller, method: str, params: dict[str, Any] | None = None, envelope: dict[str, Any] | None = None
) -> tuple[bytes, dict[str, str]]:
    """A request of 2026-07-28: its body and its headers."""
    said = dict(params or {})
    who = {f"{_META}protocolVersion": MODERN, f"{_META}clientCapabilities": {}}
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": said | {"_meta": who | {"toolhub/envelope": envelope or {}}},
    }
    subject = said.get("name") or said.get("uri")
    named = {"Mcp-Name": subject} if subject else {}
    routed = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | named
    return json.dumps(body).encode(), usual_headers(caller) | routed


def over_mcp(caller: Caller, tool: str, arguments: dict[str, Any], **envelope: Any) -> Told:
    sent = at_the_door(*modern_request(caller, "tools/call", {"name": tool, "arguments": arguments}, envelope))
    said = sent.body
    if "jsonrpc" not in said:
        return Told(sent.status, said["error"]["reason"])
    if "error" in said:
        unknown = said["error"]["message"].startswith("Unknown tool")
        return Told(sent.status, "TOOL.UNKNOWN" if unknown else said["error"]["data"]["reason"])
    if not said["result"]["isError"]:
        return Told(sent.status, "")
    return Told(sent.status, json.loads(said["result"]["content"][0]["text"])["error"]["reason"])


WAYS: dict[str, Callable[..., Told]] = {
    "invoke": over_rest,
    "propose": as_proposal,
    "dispatch": by_dispatch,
    "mcp": over_mcp,
}
