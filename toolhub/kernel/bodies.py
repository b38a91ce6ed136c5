"""How much may anybody send before a view has looked at it?

Django's ASGI handler writes a body of any size to disk first. This stops it at the door, for everybody, signed in or not:
what is announced as too large is answered at once, what turns out to be is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.handlers import PROBLEM_JSON
from toolhub.kernel.problems import TooLarge

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

# A form with a manifest file and as pasted text, and room for what a browser puts around them.
MAX_REQUEST_BYTES = 4 * 1024 * 1024


def _announced(scope: dict[str, Any]) -> int:
    value = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0


async def _refuse(send: Send) -> None:
    problem = TooLarge(
        f"The request is larger than {MAX_REQUEST_BYTES:,} bytes.", details={"max_bytes": MAX_REQUEST_BYTES}
    )
    body = json.dumps(ResponseEnvelope(error=problem).to_json()).encode()
    headers = [
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def limited(application: Application) -> Application:
    """The application behind a door of ``MAX_REQUEST_BYTES``."""

    async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        if _announced(scope) > MAX_REQUEST_BYTES:
            await _refuse(send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return {"type": "http.disconnect"} if received > MAX_REQUEST_BYTES else message

        await application(scope, counted, send)

    return guarded
