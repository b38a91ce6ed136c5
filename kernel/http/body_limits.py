"""Body limits: how much anybody may send before a view has looked at it.

Django's ASGI handler writes a body of any size to disk first. This stops it at the door, for everybody, signed in or not:
what is announced as too large is answered at once, what turns out to be is cut off and answered then. A route may take
more (:class:`WiderRoute`), of somebody who is known before more is taken, and of each only a few such bodies at once.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIRequest

from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for_nobody
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import PROBLEM_JSON, translate_exception
from kernel.http.problem_shapes import find_problem_shape
from kernel.problems import Problem, TooLarge, TooManyRequests

if TYPE_CHECKING:
    import re

    from django.http import HttpRequest

Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

log = logging.getLogger("toolhub.bodies")
BOUNDED = "toolhub.bounded"  # in a scope: who read its head would have refused one without end

# A form with a manifest file and as pasted text, and room for what a browser puts around them.
MAX_REQUEST_BYTES = 4 * 1024 * 1024
AT_ONCE = 4  # larger bodies of one sender that a process takes at a time
DISCONNECT = {"type": "http.disconnect"}


@dataclass(frozen=True, slots=True)
class WiderRoute:
    """A route that takes more than others. ``sender_of`` says whose request it is, by its headers, or raises a problem."""

    method: str
    path: re.Pattern[str]
    max_bytes: int
    sender_of: Callable[[HttpRequest], str]

    def is_of(self, scope: dict[str, Any]) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        return scope["method"] == self.method and self.path.fullmatch(path) is not None


class _AtOnce:
    """Used by the one thread of the event loop."""

    def __init__(self) -> None:
        self._now: Counter[str] = Counter()

    @contextmanager
    def one_more(self, sender: str) -> Iterator[None]:
        if self._now[sender] >= AT_ONCE:
            raise TooManyRequests(
                f"At most {AT_ONCE} requests of more than {MAX_REQUEST_BYTES:,} bytes are taken of one sender at a time.",
                remedy="Send it again when one of the others is answered.",
                retry_after_s=1,
            )
        self._now[sender] += 1
        try:
            yield
        finally:
            self._now[sender] -= 1
            self._now += Counter()  # forgets who has none


class _Bounded:
    """Whether the web server bounds what comes before a body, which nobody can who is asked when the head is read."""

    def __init__(self) -> None:
        self._said = False

    def look(self, scope: Mapping[str, Any]) -> None:
        if not self._said and BOUNDED not in scope:
            self._said = True
            log.warning(
                "This web server takes headers of any size and waits for them for ever. Start it with `manage.py serve`, "
                "or give uvicorn `--http kernel.http.uvicorn_protocol:Protocol --no-proxy-headers`."
            )


async def _sender_of(route: WiderRoute, scope: dict[str, Any]) -> str:
    def ask() -> str:
        try:
            with acting_for_nobody():
                return route.sender_of(ASGIRequest(scope, BytesIO()))
        except Exception as error:
            raise translate_exception(error) from error
        finally:
            release_connection()

    async with ThreadSensitiveContext():
        return await sync_to_async(ask)()


def _announced(scope: dict[str, Any]) -> int:
    value = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0


async def read_whole_body(receive: Receive) -> bytes | None:
    """Of a request whose length is known and bounded. None: the caller has gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == DISCONNECT["type"]:
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def build_refusal(problem: Problem, path: str = "") -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Status, headers and body of an answer that the connection ends with: in the shape of that address."""
    if shape := find_problem_shape(path):
        status, said, named = shape(problem)
        own = [(name.lower().encode(), text.encode()) for name, text in named.items()]
        kind = "application/json"
    else:
        status, said, own, kind = problem.status, ResponseEnvelope(error=problem).to_json(), [], PROBLEM_JSON
    body = json.dumps(said).encode()
    headers = [
        (b"content-type", kind.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *own,
    ]
    if problem.retry_after is not None:
        headers.append((b"retry-after", str(problem.retry_after).encode()))
    return status, headers, body


async def send_refusal(
    send: Send, problem: Problem, more: Sequence[tuple[bytes, bytes]] = (), *, path: str = ""
) -> None:
    """Answer before Django does; ``more`` headers beside its own. ``path``: the address that was asked."""
    status, headers, body = build_refusal(problem, path)
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *more]})
    await send({"type": "http.response.body", "body": body})


class _Passage:
    """One request on its way through the door. ``with held`` it: what it took is given back then."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send, route: WiderRoute | None, at_once: _AtOnce):
        self._scope, self._receive, self._send, self._route = scope, receive, send, route
        self._at_once, self._limit, self._received, self._answered = at_once, MAX_REQUEST_BYTES, 0, False
        self._refusal: Problem | None = None
        self._path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        self.held = ExitStack()

    async def check(self, size: int) -> None:
        if size <= self._limit:
            return
        most = self._route.max_bytes if self._route else MAX_REQUEST_BYTES
        if self._route is None or size > most:
            raise TooLarge(f"The request is larger than {most:,} bytes.", details={"max_bytes": most})
        self.held.enter_context(self._at_once.one_more(await _sender_of(self._route, self._scope)))
        self._limit = most

    async def receive(self) -> Message:
        if self._refusal is not None:
            return DISCONNECT
        message = await self._receive()
        self._received += len(message.get("body", b""))
        try:
            await self.check(self._received)
        except Problem as problem:
            self._refusal = problem
            return DISCONNECT
        return message

    async def send(self, message: Message) -> None:
        self._answered = True
        await self._send(message)

    async def run(self, application: Application) -> None:
        try:
            await self.check(_announced(self._scope))
        except Problem as problem:
            await send_refusal(self._send, problem, path=self._path)
            return
        await application(self._scope, self.receive, self.send)
        if self._refusal is not None and not self._answered:
            await send_refusal(self._send, self._refusal, path=self._path)


def limit_bodies(application: Application, wider: Sequence[WiderRoute] = ()) -> Application:
    """The application behind a door of ``MAX_REQUEST_BYTES``, and of more on some routes."""
    at_once = _AtOnce()
    heads_are_bounded = _Bounded()

    async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        heads_are_bounded.look(scope)
        route = next((each for each in wider if each.is_of(scope)), None)
        passage = _Passage(scope, receive, send, route, at_once)
        with passage.held:
            await passage.run(application)

    return guarded
