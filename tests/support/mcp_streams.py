"""MCP streams: a request at the door, in the transaction of the test, whose answer goes on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync, sync_to_async

from invocations.mcp.endpoint import McpEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable

CHANGED = "notifications/tools/list_changed"
OLDER = {"MCP-Protocol-Version": "2025-11-25"}


class Stream:
    """One request at the door, in the transaction of the test, whose answer goes on."""

    def __init__(self, body: bytes, headers: dict[str, str], method: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self._told, self._gone = asyncio.Event(), asyncio.Event()
        self._body = [{"type": "http.request", "body": body, "more_body": False}]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "client": ("127.0.0.1", 1),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }

        async def in_this_thread(work: Callable[[], Any]) -> Any:
            return await sync_to_async(work)()

        async def nothing_else(*_: Any) -> None:
            raise AssertionError

        self.task = asyncio.ensure_future(McpEndpoint(nothing_else, in_this_thread)(scope, self._receive, self._send))

    async def _receive(self) -> Any:
        if self._body:
            return self._body.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(dict(message))
        self._told.set()

    @property
    def text(self) -> str:
        return b"".join(each.get("body", b"") for each in self.sent).decode()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: {")]

    async def until(self, there: Callable[[], object]) -> None:
        while not there():
            self._told.clear()
            await self._told.wait()

    async def leave(self) -> None:
        self._gone.set()
        await self.task


def converse(say: Callable[[], Any]) -> None:
    async def main() -> None:
        await asyncio.wait_for(say(), timeout=60)

    async_to_sync(main)()
