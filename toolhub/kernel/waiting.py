"""How does a caller wait for something without a thread being held?

A view that has begun something and waits for its end returns a :class:`WaitingResponse`. The server of the production shape and
of the embedded default (:class:`Handler`) gives the request's thread and connection back, waits on the event loop, and takes a
thread again for the moments in which it looks. Where there is no such server (tests, WSGI), the view waits by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol, cast

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse

from toolhub.kernel.db import release_connection
from toolhub.kernel.handlers import problem_of, respond

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from django.core.handlers.asgi import ASGIRequest
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

WAITS = "toolhub.waits"  # in a scope: whoever serves the request understands a WaitingResponse
LEFT = "toolhub.left"  # in a scope: the response that is not there yet


class Waits(Protocol):
    """What the end of something is heard with."""

    async def wait_async(self, seconds: float) -> None: ...


def can_wait(request: HttpRequest) -> bool:
    """Whether a view may answer this request with a :class:`WaitingResponse`."""
    return bool(getattr(request, "scope", {}).get(WAITS))


class WaitingResponse(HttpResponse):
    """An answer that is not there yet.

    ``look(last)`` runs in a thread: it returns the answer, or None when there is none yet, which it may not when ``last`` is
    true. ``end()`` is called when nobody waits any more.
    """

    request: HttpRequest  # that is to be answered; whoever understands this response sets it

    def __init__(
        self, waiter: Waits, *, at_most_s: float, look: Callable[[bool], HttpResponse | None], end: Callable[[], object]
    ) -> None:
        super().__init__(status=202)
        self._waiter, self._until = waiter, time.monotonic() + at_most_s
        self._look, self._end = look, end

    def give_up(self) -> None:
        self._end()

    async def filled(self, places: asyncio.Semaphore) -> HttpResponse:
        """The answer, with the headers that the middleware gave to this one."""
        try:
            while True:
                left = self._until - time.monotonic()
                if left > 0:
                    await self._waiter.wait_async(left)
                async with places:
                    found = await sync_to_async(self._looked, thread_sensitive=False)(left <= 0)
                if found is not None:
                    break
        finally:
            self._end()
        for name, value in self.items():
            if name not in ("Content-Length", "Content-Type"):
                found.headers.setdefault(name, value)
        return found

    def _looked(self, last: bool) -> HttpResponse | None:
        try:
            return self._look(last)
        except Exception as error:  # noqa: BLE001  mapped and logged like what a view raises
            return respond(self.request, problem_of(error, self.request))
        finally:
            release_connection()


def _given_up(working: asyncio.Future[HttpResponseBase]) -> None:
    """Nobody is there any more who would have the answer."""
    if not working.cancelled() and working.exception() is None:
        response = working.result()
        if isinstance(response, WaitingResponse):
            response.give_up()


class Handler(ASGIHandler):
    """Django's own, where at most so many requests are worked on at a time, and any number waits."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._places = asyncio.Semaphore(at_once)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Mapping[str, Any]]],
        send: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        scope[WAITS] = True
        try:
            await super().__call__(scope, receive, send)
        finally:
            waiting: WaitingResponse | None = scope.pop(LEFT, None)
            if waiting is not None and sys.exc_info()[0] is not None:
                waiting.give_up()
        if waiting is not None:
            await self._answer_later(waiting, receive, send)

    async def run_get_response(self, request: HttpRequest) -> HttpResponseBase:
        working = asyncio.ensure_future(self._work_on(request))
        try:
            response = await asyncio.shield(working)
        except asyncio.CancelledError:  # the caller has gone, and the view goes on until it returns
            working.add_done_callback(_given_up)
            raise
        if isinstance(response, WaitingResponse):
            response.request = request
            cast("dict[str, Any]", cast("ASGIRequest", request).scope)[LEFT] = response
        return response

    async def _work_on(self, request: HttpRequest) -> HttpResponseBase:
        async with self._places:
            return await super().run_get_response(request)

    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        if not isinstance(response, WaitingResponse):
            await super().send_response(response, send)

    async def _answer_later(self, waiting: WaitingResponse, receive: Any, send: Any) -> None:
        """Until the answer is there or the caller has gone. What was begun goes on without its caller."""
        answer = asyncio.create_task(waiting.filled(self._places))
        gone = asyncio.create_task(self._gone(receive))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                await super().send_response(answer.result(), send)
        finally:
            for task in (answer, gone):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    @staticmethod
    async def _gone(receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
