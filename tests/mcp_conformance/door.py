"""Through which door does the conformance suite come in? It knows no credential, and calls tools by names of one word.

A reverse proxy that adds a key, writes the names of the fixture tools and resources as the hub has them, and hides the prefix of the
tools in what comes back. Where the suite calls a tool that changes the list, a tool is paused or resumed. Everything else passes as
it is, ``Host`` and ``Origin`` of strangers too, and answers are passed on line by line as they come.
"""

from __future__ import annotations

import json
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from scripts.provision.processes import free_port
from tests.e2e.processes import until
from tests.mcp_conformance.arrange import PREFIX, SPARE
from unitools.dialects.tool_names import LONGEST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request

OF_ONE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "upgrade"}
KEYS = OWN_KEY, THEIR_KEY = "consent", "user_name"  # of what is asked for before a result
METHODS = ["GET", "POST", "DELETE", "OPTIONS"]


@dataclass(slots=True)
class Door:
    """Where the hub is (``host:port``), what it is shown, and which names get the prefix."""

    hub: str
    key: str
    prefix: str
    names: frozenset[str]
    resources: dict[str, str] = field(default_factory=dict)
    operates: str = ""  # a key that may pause and resume tools
    own: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    paused: bool = False
    client: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(timeout=120, trust_env=False))

    @property
    def url(self) -> str:
        return f"http://{self.own}/mcp"

    def _full(self, name: str) -> str:
        """The hub shortens names that are long, and takes the id too."""
        return (self.prefix if len(self.prefix + name) <= LONGEST else PREFIX) + name

    def _headers(self, request: Request) -> list[tuple[str, str]]:
        found = []
        for name, value in request.headers.items():
            if name in OF_ONE_CONNECTION or name in ("accept-encoding", "authorization"):
                continue
            value = value.strip()  # white space around a value is no part of it
            if name in ("host", "origin"):
                value = value.replace(self.own, self.hub)
            if name == "mcp-name" and request.headers.get("mcp-method") == "tools/call" and value in self.names:
                value = self._full(value)
            if name == "mcp-name":
                value = self.resources.get(value, value)
            found.append((name, value))
        return [*found, ("authorization", f"Bearer {self.key}"), ("accept-encoding", "identity")]

    def _body(self, body: bytes) -> bytes:
        try:
            message = json.loads(body)
        except ValueError:
            return body
        params: Any = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            return body
        changes: dict[str, Any] = {}
        method = message.get("method")
        if method == "tools/call" and params.get("name") in self.names:
            changes["name"] = self._full(params["name"])
        if method == "resources/read" and params.get("uri") in self.resources:
            changes["uri"] = self.resources[params["uri"]]
        if isinstance(given := params.get("inputResponses"), dict):
            changes["inputResponses"] = {OWN_KEY if key == THEIR_KEY else key: each for key, each in given.items()}
        return json.dumps(message | {"params": params | changes}).encode() if changes else body

    async def change_list(self, id: Any) -> Response:
        self.paused = not self.paused
        answer = await self.client.post(
            f"http://{self.hub}/api/v1/installations/{PREFIX}{SPARE}/{'pause' if self.paused else 'resume'}",
            json={"reason": "So that the list changes."},
            headers={"Authorization": f"Bearer {self.operates}"},
        )
        assert answer.status_code == 200, answer.text
        done = {"content": [{"type": "text", "text": "It is another list."}], "resultType": "complete"}
        return JSONResponse({"jsonrpc": "2.0", "id": id, "result": done})

    async def pass_on(self, request: Request) -> Response:
        body = await request.body()
        if b'"test_trigger_tool_change"' in body:
            return await self.change_list(json.loads(body)["id"])
        asked = self.client.build_request(
            request.method,
            f"http://{self.hub}{request.url.path}",
            headers=self._headers(request),
            content=self._body(body),
        )
        answer = await self.client.send(asked, stream=True)
        headers = {name: value for name, value in answer.headers.items() if name not in OF_ONE_CONNECTION}
        return StreamingResponse(
            self._lines(answer), answer.status_code, headers, background=BackgroundTask(answer.aclose)
        )

    async def _lines(self, answer: httpx2.Response) -> AsyncIterator[bytes]:
        prefix, rest, own, their = self.prefix.encode(), b"", *(f'{{"{key}":{{"method"'.encode() for key in KEYS)
        try:
            async for chunk in answer.aiter_raw():
                lines, end, rest = (rest + chunk).rpartition(b"\n")
                if end:
                    yield (lines + end).replace(prefix, b"").replace(own, their)
            yield rest.replace(prefix, b"").replace(own, their)
        finally:
            await answer.aclose()  # the one who listened may have gone, which the hub has to see


@contextmanager
def opened(door: Door) -> Iterator[Door]:
    """It answers inside the block."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with door.client:
            yield

    app = Starlette(routes=[Route("/{path:path}", door.pass_on, methods=METHODS)], lifespan=lifespan)
    host, _, port = door.own.partition(":")
    server = uvicorn.Server(
        uvicorn.Config(app, host=host, port=int(port), log_level="error", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started, "the door is open")
        yield door
    finally:
        server.should_exit = True
        thread.join()
