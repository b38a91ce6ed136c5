"""MCP clients: how does a test talk MCP with the hub, as a program outside of it does?

A web server on a port of its own, over the database of the test, and the client of the official SDK, or plain HTTP.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from invocations.files.body_limits import WIDER
from invocations.mcp.endpoint import McpEndpoint
from kernel.database.connections import release_connection
from kernel.http.body_limits import limit_bodies
from kernel.http.deferred_responses import Handler
from kernel.http.traffic import measure_requests
from kernel.http.uvicorn_protocol import Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import pytest

    from tests.conftest import Caller
    from tests.support.calls import Bell

    T = TypeVar("T")

LEGACY, MODERN = "legacy", "2026-07-28"
BOTH = (LEGACY, MODERN)
TASKS = "io.modelcontextprotocol/tasks"
ENVELOPE = "toolhub/envelope"
PATIENCE_S = 60
NAME = Implementation(name="tests", version="7")
_META = "io.modelcontextprotocol/"


@contextmanager
def web_server(threads: int = 4) -> Iterator[str]:
    """The address of a server that is there inside the block."""
    handler = Handler(threads)
    application: Any = measure_requests(limit_bodies(McpEndpoint(handler, handler.in_thread), WIDER))
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, http=Protocol, ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="web", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        handler._threads.shutdown()
        listening.close()


def ring_in_threads(bell: Bell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits on an event loop has its call run in a thread, which gives its connection back."""

    def work() -> None:
        try:
            bell.wait(0)
        finally:
            release_connection()

    async def wait_async(_: float) -> None:
        await asyncio.sleep(0.02)
        await asyncio.get_running_loop().run_in_executor(None, work)

    monkeypatch.setattr(bell, "wait_async", wait_async)
    monkeypatch.setattr("invocations.mcp.mcp_tasks.get_waker", lambda: bell)


def talk(url: str, key: str, say: Callable[[Client], Awaitable[T]], *, mode: str = MODERN, **options: Any) -> T:
    """What ``say`` comes to with a client of the SDK; it must not take long."""

    async def main() -> T:
        headers = {"Authorization": f"Bearer {key}"}
        # Without the certificates of the world's authorities, which take longer to read than a call.
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False, verify=False) as web:
            transport = streamable_http_client(f"{url}/mcp", http_client=web)
            async with Client(transport, mode=mode, client_info=NAME, **options) as client:
                return await asyncio.wait_for(say(client), PATIENCE_S)

    try:
        return asyncio.run(main())
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def called(tool: str, arguments: dict[str, Any], meta: Any = None) -> Callable[[Client], Awaitable[Any]]:
    """For :func:`talk`: one call."""
    return lambda client: client.call_tool(tool, arguments, meta=meta)


def error_of(result: Any) -> dict[str, Any]:
    """What a result that is an error tells the model."""
    assert result.is_error, result
    assert result.structured_content is None
    error: dict[str, Any] = json.loads(result.content[0].text)["error"]
    return error


@dataclass(frozen=True, slots=True)
class Told:
    """What came back over HTTP. ``message``: the last JSON-RPC message; ``notes``: those before it."""

    status: int
    headers: dict[str, str]
    message: dict[str, Any] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)

    @property
    def result(self) -> dict[str, Any]:
        assert "result" in self.message, self
        found: dict[str, Any] = self.message["result"]
        return found

    @property
    def code(self) -> int:
        return int(self.message["error"]["code"])


@dataclass(slots=True)
class Wire:
    """One who speaks JSON-RPC over HTTP without an SDK. ``modern`` speaks 2026-07-28."""

    url: str
    key: str
    modern: bool = True
    capabilities: dict[str, Any] = field(default_factory=dict)
    session: str = ""

    @classmethod
    def of(cls, url: str, caller: Caller, **more: Any) -> Wire:
        return cls(url, caller.key, **more)

    def initialize(self) -> dict[str, Any]:
        said = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities,
            "clientInfo": {"name": "wire", "version": "1"},
        }
        told = self.ask("initialize", said)
        self.session = told.headers["mcp-session-id"]
        return told.result

    def ask(self, method: str, params: dict[str, Any] | None = None, *, id: int = 1, **headers: str) -> Told:
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": self._params(params or {})}
        return self.post(json.dumps(body).encode(), **self._headers(method, params or {}), **headers)

    def tell(self, method: str, params: dict[str, Any]) -> Told:
        return self.post(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode(), **self._headers(method, {})
        )

    def call(self, tool: str, arguments: dict[str, Any], **more: Any) -> Told:
        return self.ask("tools/call", {"name": tool, "arguments": arguments, **more})

    def answer(self, id: str, result: dict[str, Any]) -> Told:
        """To what the hub has asked on the stream of a call."""
        said = {"jsonrpc": "2.0", "id": id, "result": result}
        return self.post(json.dumps(said).encode(), **self._headers("", {}))

    @contextmanager
    def stream(self, method: str, params: dict[str, Any]) -> Iterator[Iterator[dict[str, Any]]]:
        """The messages of an answer, as they come."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": self._params(params)}).encode()
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE_S)
        try:
            connection.request("POST", "/mcp", body, self._usual() | self._headers(method, params))
            answer = connection.getresponse()
            yield (json.loads(line[6:]) for line in iter(answer.readline, b"") if line.startswith(b"data: {"))
        finally:
            connection.close()

    def _usual(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def _params(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.modern:
            return params
        who = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientInfo": {"name": "wire", "version": "1"},
            f"{_META}clientCapabilities": self.capabilities,
        }
        return params | {"_meta": who | params.get("_meta", {})}

    def _headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        if not self.modern:
            return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"} if self.session else {}
        named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
        return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method} | named

    def post(self, body: bytes, *, method: str = "POST", **headers: str) -> Told:
        given = {name: value for name, value in (self._usual() | headers).items() if value}
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENCE_S)
        try:
            connection.request(method, "/mcp", body, given)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            *notes, last = _messages(answer.read().decode()) or [{}]
        finally:
            connection.close()
        return Told(answer.status, found, last, notes)


def _messages(text: str) -> list[dict[str, Any]]:
    if text.startswith("{"):
        return [json.loads(text)]
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
