"""Posted answers: the answer to one message that a client has sent, into whose stream the hub may put messages of its own.

Without sessions the SDK sends a client no request: it would not know where to look for the answer. The hub does, since what it asks
is found by its id in any process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.http.body_limits import Send

BEGINS_WITHIN_S = 10.0


class PostedAnswer:
    """What the SDK sends, passed on; and between its events those of the hub."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun, self._written = asyncio.Event(), asyncio.Event()
        self._is_stream = self._is_over = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kinds = [value for name, value in message.get("headers", ()) if name.lower() == b"content-type"]
            self._is_stream = any(kind.startswith(b"text/event-stream") for kind in kinds)
        else:
            self._is_over = not message.get("more_body", False)
        await self._send(message)
        (self._begun if message["type"] == "http.response.start" else self._written).set()

    async def push(self, message: str, *, second: bool = False) -> bool:
        """Whether there is a stream that this JSON-RPC message could be put into. ``second``: not before the SDK's first one."""
        begins = self._written if second else self._begun
        try:
            await asyncio.wait_for(begins.wait(), BEGINS_WITHIN_S)
        except TimeoutError:
            return False
        if not self._is_stream or self._is_over:
            return False
        event = f"event: message\r\ndata: {message}\r\n\r\n".encode()
        await self._send({"type": "http.response.body", "body": event, "more_body": True})
        return True
