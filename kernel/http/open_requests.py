"""Open requests: those of this process that are not answered yet, and what their callers are told when it ends.

A web server ends what has not ended by itself after some seconds, answers 500 and writes an error, as if the hub were broken. So it is
ended shortly before: whoever still waits is told that the hub stops, and what to do; a stream is closed as one that ends. What was
begun goes on without its caller, or has its end when the hub starts again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel.http.body_limits import send_refusal
from kernel.problems import StoppedUnanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from kernel.http.body_limits import Application, Message, Receive, Send

# In a scope: what is written to who follows a stream before it is closed, as bytes; set by whoever knows in which form it is.
LAST_WORDS = "toolhub.last_words"
# In a scope: what begins such a stream, where the answer is one only if it takes long.
LATE_START = "toolhub.late_start"
_OPEN_REQUEST = "toolhub.open_request"  # in a scope
CONTENT_LENGTH = b"content-length"


class _OpenRequest:
    def __init__(self, task: asyncio.Task[Any] | None, send: Send) -> None:
        self._task, self._send = task, send
        self._is_begun = self._is_measured = self._is_over = False
        self.is_refused = False

    async def send(self, message: Message) -> None:
        if self.is_refused:  # by what had been handed on to another task
            return
        if message["type"] == "http.response.start":
            self._is_begun = True
            self._is_measured = any(name.lower() == CONTENT_LENGTH for name, _ in message.get("headers", ()))
        elif not message.get("more_body", False):
            self._is_over = True
        await self._send(message)

    def refuse(self) -> None:
        """What says how long it is, is being sent, and is left to the server."""
        if self._is_over or (self._is_begun and self._is_measured) or self._task is None:
            return
        self.is_refused = True
        self._task.cancel()

    async def answer(self, scope: dict[str, Any]) -> None:
        if self._is_over:
            return
        start = scope.get(LATE_START)
        if not self._is_begun and start is not None:
            await self._send(start)
        if self._is_begun or start is not None:
            write: Callable[[StoppedUnanswered], bytes] = scope.get(LAST_WORDS, _write_nothing)
            await self._send({"type": "http.response.body", "body": write(StoppedUnanswered()), "more_body": False})
        else:
            path = str(scope["path"]).removeprefix(scope.get("root_path", ""))
            await send_refusal(self._send, StoppedUnanswered(), path=path)


def _write_nothing(problem: StoppedUnanswered) -> bytes:
    del problem
    return b""


_open: set[_OpenRequest] = set()


def refuse_open_requests() -> None:
    """For a process that ends, on its loop."""
    for each in list(_open):
        each.refuse()


def is_refused(scope: Mapping[str, Any]) -> bool:
    """Whether the end of the process has ended this request, and not its caller."""
    request: _OpenRequest | None = scope.get(_OPEN_REQUEST)
    return request is not None and request.is_refused


def keep_open_requests(application: Application) -> Application:
    async def kept(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        task = asyncio.current_task()
        request = scope[_OPEN_REQUEST] = _OpenRequest(task, send)
        _open.add(request)
        try:
            await application(scope, receive, request.send)
        except asyncio.CancelledError:
            if not request.is_refused:
                raise
        finally:
            _open.discard(request)
        # The application may have taken it for the end of its own work.
        if request.is_refused and task is not None:
            task.uncancel()
            await request.answer(scope)

    return kept
