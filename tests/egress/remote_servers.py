"""Remote servers: MCP servers that are somewhere else, of the official SDK, behind TLS on loopback.

They answer as since 2026-07-28 and after a handshake alike, and keep what they were asked and with which token.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings

from tests.egress.world import PUBLIC, WAIT_S
from tests.support.drawn_pictures import draw

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tests.support.authorization_server import AuthorizationServer

TOKEN = "t0ken-of-the-tenant-4711"
"""What the server asks for, where it asks for any."""
METADATA = "/.well-known/oauth-protected-resource/mcp"


@dataclass(slots=True)
class Heard:
    """``method`` of HTTP; ``asks``: the method of MCP, empty for what is none."""

    method: str
    headers: dict[str, str]
    asks: str = ""
    params: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RemoteServer:
    """``token``: without it 401; ``accounts``: who gives tokens in place of it, to each user their own.

    ``shows``: what the server lists to a user, of those to whom it lists something else than its tools.

    ``hangs_up_on``: a method of MCP of which the answer is cut off; ``silent_on``: one of MCP or HTTP that gets none; ``refuses``: the
    status that a method of MCP is answered; ``complains_of``: a method of MCP whose error says the token back; ``while_called``:
    happens
    while a call waits for its answer.
    """

    tools: MCPServer[Any]
    port: int = 0
    token: str = TOKEN
    host: str = ""
    accounts: AuthorizationServer | None = None
    shows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    hangs_up_on: str = ""
    silent_on: str = ""
    refuses: dict[str, int] = field(default_factory=dict)
    complains_of: str = ""
    heard: list[Heard] = field(default_factory=list)
    while_called: Callable[[], object] = lambda: None

    @property
    def resource(self) -> str:
        return f"https://{self.host}:{self.port}/mcp"

    def takes(self, authorization: str) -> bool:
        if self.accounts is not None:
            return self.accounts.find_user(authorization.removeprefix("Bearer ")) is not None
        return not self.token or authorization == f"Bearer {self.token}"

    def find_shown(self, authorization: str) -> list[dict[str, Any]] | None:
        user = self.accounts and self.accounts.find_user(authorization.removeprefix("Bearer "))
        return self.shows.get(user) if user else None

    def asked(self) -> list[str]:
        return [each.asks or each.method for each in self.heard]

    async def __call__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        given = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if self.accounts is not None and scope["path"] == METADATA:
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
            )
            document = json.dumps(self.accounts.describe_resource(self.resource)).encode()
            await send({"type": "http.response.body", "body": document})
            return
        said = json.loads(body) if body else {}
        self.heard.append(Heard(scope["method"], given, said.get("method", ""), said.get("params", {})))
        if not self.takes(given.get("authorization", "")):
            headers = [(b"content-type", b"text/plain")]
            if self.accounts is not None:
                known = f'Bearer resource_metadata="https://{self.host}:{self.port}{METADATA}"'
                headers.append((b"www-authenticate", known.encode()))
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"who are you"})
            return
        if self.hangs_up_on and said.get("method") == self.hangs_up_on:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"100")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"{", "more_body": True})
            raise ConnectionAbortedError
        if self.silent_on in (asks := said.get("method", ""), scope["method"]):
            await asyncio.Event().wait()
        if asks in self.refuses:
            await send({"type": "http.response.start", "status": self.refuses[asks], "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        if asks == "tools/list" and (shown := self.find_shown(given.get("authorization", ""))) is not None:
            result = {"tools": shown, "resultType": "complete"}
            listed = json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}).encode()
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}
            )
            await send({"type": "http.response.body", "body": listed})
            return
        if self.complains_of == asks != "":
            error = {"code": -32000, "message": f"bad token: {given.get('authorization')}"}
            answer = json.dumps({"jsonrpc": "2.0", "id": said["id"], "error": error}).encode()
            start_headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": start_headers})
            await send({"type": "http.response.body", "body": answer})
            return
        if asks == "tools/call":
            self.while_called()
        unread = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await app(scope, replay, send)


def make_tools(accounts: AuthorizationServer | None = None) -> MCPServer[Any]:
    found: MCPServer[Any] = MCPServer("Shop", version="3", log_level="WARNING")

    @found.tool(name="Get-Item", description="Gives an item by its id.")
    async def get_item(item: str, ctx: Context[Any, Any]) -> dict[str, Any]:
        await ctx.report_progress(1, 2, "looking")
        if item == "none":
            raise ToolError("There is no such item.")
        return {"item": item, "price": 3}

    @found.tool(name="draw", description="Draws a picture.", structured_output=False)
    def draw_picture() -> Image:
        return Image(data=draw(), format="png")

    if accounts is not None:

        @found.tool(name="read-notes", description="Reads the notes of who asks.")
        def read_notes(ctx: Context[Any, Any]) -> dict[str, Any]:
            request: Any = ctx.request_context.request
            user = accounts.find_user(request.headers["authorization"].removeprefix("Bearer "))
            return {"notes": [f"note of {user}"], "of": user}

    return found


@contextmanager
def serving_remote(context: ssl.SSLContext, **options: Any) -> Iterator[RemoteServer]:
    """Until the block ends."""
    remote = RemoteServer(make_tools(options.get("accounts")), **options)
    inner = remote.tools.streamable_http_app(
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False)
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await remote(inner, scope, receive, send)
        else:
            await inner(scope, receive, send)

    config = uvicorn.Config(app, host=PUBLIC, port=0, log_level="warning", timeout_graceful_shutdown=1)
    config.load()
    config.ssl = context
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    started = threading.Event()
    while not server.started and thread.is_alive():
        started.wait(0.01)
    remote.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield remote
    finally:
        server.should_exit = True
        thread.join(WAIT_S)
