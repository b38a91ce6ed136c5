"""Deferred responses: how a caller waits for something without a thread being held.

A view that has begun something and waits for its end returns a :class:`WaitingResponse`. The server of the production shape and
of the embedded default (:class:`Handler`) gives the request's thread and connection back, waits on the event loop, and takes a
thread again for the moments in which it looks. Where there is no such server (tests, WSGI), the view waits by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from asgiref.sync import sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.http import FileResponse, HttpResponse
from django.urls import set_script_prefix

from kernel.database.connections import keep_connection, release_connection
from kernel.http.direct_routes import prefer_direct_routes
from kernel.http.exception_handlers import build_problem_response, translate_exception
from kernel.http.traffic import ROUTE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import IO

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    Receive = Callable[[], Awaitable[Mapping[str, Any]]]
    Send = Callable[[Mapping[str, Any]], Awaitable[None]]
    InThread = Callable[[Callable[[], Any]], Awaitable[Any]]

WAITS = "toolhub.waits"  # in a scope: the event loop of whoever serves the request and understands a WaitingResponse


class AsyncWaiter(Protocol):
    """What the end of something is heard with."""

    async def wait_async(self, seconds: float) -> None: ...


def find_event_loop(request: HttpRequest) -> asyncio.AbstractEventLoop | None:
    """The loop that serves this request; None where it is served without one."""
    found: asyncio.AbstractEventLoop | None = getattr(request, "scope", {}).get(WAITS)
    return found


def can_wait(request: HttpRequest) -> bool:
    """Whether a view may answer this request with a :class:`WaitingResponse`."""
    return find_event_loop(request) is not None


class WaitingResponse(HttpResponse):
    """An answer that is not there yet.

    ``look(last)`` runs in a thread: it returns the answer, or None when there is none yet, which it may not when ``last`` is
    true. ``end()`` is called when nobody waits any more.
    """

    request: HttpRequest  # that is to be answered; whoever understands this response sets it

    def __init__(
        self,
        waiter: AsyncWaiter,
        *,
        at_most_s: float,
        look: Callable[[bool], HttpResponseBase | None],
        end: Callable[[], object],
    ) -> None:
        super().__init__(status=202)
        self._waiter, self._until = waiter, time.monotonic() + at_most_s
        self._look, self._end = look, end

    def give_up(self) -> None:
        self._end()

    async def filled(self, in_thread: InThread) -> HttpResponseBase:
        """The answer, with the headers that the middleware gave to this one."""
        found: HttpResponseBase | None = None
        while found is None:
            left = self._until - time.monotonic()
            if left > 0:
                await self._waiter.wait_async(left)
            looking = asyncio.ensure_future(in_thread(partial(self._looked, left <= 0)))
            try:
                found = await asyncio.shield(looking)
            except asyncio.CancelledError:
                # A stream that is found now is closed, since nobody will read it.
                looking.add_done_callback(_given_up)
                raise
        for name, value in self.items():
            if name not in ("Content-Length", "Content-Type"):
                found.headers.setdefault(name, value)
        if isinstance(found, HttpResponse):
            # As the middleware says of others; some clients need it.
            found.headers["Content-Length"] = str(len(found.content))
        return found

    def _looked(self, last: bool) -> HttpResponseBase | None:
        try:
            return self._look(last)
        except Exception as error:  # noqa: BLE001  mapped and logged like what a view raises
            return build_problem_response(self.request, translate_exception(error, self.request))
        finally:
            release_connection()


def _given_up(working: asyncio.Future[HttpResponseBase | None]) -> None:
    """Nobody is there any more who would have the answer."""
    if working.cancelled() or working.exception() is not None:
        return
    response = working.result()
    if isinstance(response, WaitingResponse):
        response.give_up()
    elif response is not None and response.streaming:
        response.close()


class Handler(ASGIHandler):
    """Django's own, where at most so many requests are worked on at a time, and any number waits.

    One thread works on a request from its beginning to its answer. Django makes a thread for each request, and goes to and fro
    between it and the event loop for signals, middleware and view, which takes longer than most requests do; ours are all plain
    functions. Only streams are sent in Django's way.
    """

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="request", initializer=keep_connection)

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        self._middleware_chain: Any = prefer_direct_routes(self._middleware_chain)

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        await self.serve(scope, receive, send, partial(self._respond, scope, body))

    async def serve(
        self, scope: dict[str, Any], receive: Receive, send: Send, respond: Callable[[], HttpResponseBase]
    ) -> None:
        """One of the threads gets the response by ``respond``; until it is sent or the caller has gone. What was begun goes on without
        its caller.
        """
        scope[WAITS] = asyncio.get_running_loop()
        answered = asyncio.create_task(self._answer(respond, send))
        gone = asyncio.create_task(self._gone(receive))
        try:
            await asyncio.wait({answered, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not answered.done():
                answered.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await answered

    @staticmethod
    async def _gone(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _answer(self, respond: Callable[[], HttpResponseBase], send: Send) -> None:
        working = asyncio.ensure_future(self.in_thread(respond))
        try:
            response = await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(_given_up)
            raise
        if isinstance(response, WaitingResponse):
            waiting = response
            try:
                response = await waiting.filled(self.in_thread)
            finally:
                waiting.give_up()
        if not response.streaming:
            await self.send_response(response, send)
            return
        try:
            await self.send_response(response, send)
        finally:
            await sync_to_async(response.close)()

    def in_thread(self, work: Callable[[], Any]) -> Awaitable[Any]:
        """One of the threads that requests share works on it, in the context of who asks."""
        return asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)

    def _respond(self, scope: dict[str, Any], body: IO[bytes]) -> HttpResponseBase:
        """All that Django does with a request, in its order; what is sent as a whole is closed already."""
        with body:
            set_script_prefix(get_script_prefix(scope))
            request_started.send(sender=type(self), scope=scope)
            request, refused = self.create_request(scope, body)
            response: Any = refused
            if request is not None:
                try:
                    response = self.get_response(request)
                finally:
                    release_connection()
                if request.resolver_match is not None:
                    scope[ROUTE] = request.resolver_match.route
                if isinstance(response, WaitingResponse):
                    response.request = request
        response._handler_class = type(self)
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            response.close()
        return cast("HttpResponseBase", response)
