"""Sent bodies: requests as a server hands them to the whole application, piece by piece."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

from tests.support.asgi_application import application

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PIECE = 1024 * 1024


class Sent:
    """A request as a server hands it to the application, piece by piece. ``midway`` is awaited before the last piece."""

    def __init__(self, method: str, path: str, body: bytes, headers: dict[str, str], *, announced: bool = True) -> None:
        named = {"host": "localhost"} | headers | ({"content-length": str(len(body))} if announced else {})
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self.pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
        self.taken = 0  # of the pieces
        self.midway: Callable[[], Awaitable[None]] | None = None
        self.status, self.content = 0, b""

    def now(self) -> Sent:
        async_to_sync(self.go)()
        return self

    async def go(self) -> None:
        await application(self.scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if self.taken == len(self.pieces):
            await asyncio.Event().wait()  # a server says no more while it waits for the answer
        self.taken += 1
        last = self.taken == len(self.pieces)
        if last and self.midway is not None:
            await self.midway()
        return {"type": "http.request", "body": self.pieces[self.taken - 1], "more_body": not last}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.content += message.get("body", b"")

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.content)["error"]
        return error
