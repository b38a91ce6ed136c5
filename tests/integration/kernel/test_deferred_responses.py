"""Deferred responses: does a caller that waits cost no thread, and get its answer all the same?"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

from invocations.answer.wake_ups import InProcessWaker
from kernel.http.deferred_responses import Handler, WaitingResponse, can_wait
from kernel.ids import new_id

if TYPE_CHECKING:
    from django.http import HttpRequest

waker = InProcessWaker()
THING = new_id()
done = threading.Event()
may_return = threading.Event()
ended: list[str] = []


def waits(request: HttpRequest) -> HttpResponse:
    """Answers when the thing is done, or after 30 s."""
    assert can_wait(request)
    listening = waker.listen(THING)
    waiter = listening.__enter__()

    def look(last: bool) -> HttpResponse | None:
        return JsonResponse({"last": last, "done": done.is_set()}, status=201) if last or done.is_set() else None

    def end() -> None:
        ended.append("end")
        listening.__exit__(None, None, None)

    may_return.wait(60)
    at_most_s = 0 if "impatient" in request.GET else 30
    return WaitingResponse(waiter, at_most_s=at_most_s, look=look, end=end)


def breaks(request: HttpRequest) -> HttpResponse:
    def look(last: bool) -> HttpResponse | None:
        raise ZeroDivisionError

    return WaitingResponse(waker_of_nobody, at_most_s=0, look=look, end=lambda: ended.append("end"))


class waker_of_nobody:  # noqa: N801  stands in for an object
    @staticmethod
    async def wait_async(seconds: float) -> None:
        await asyncio.sleep(0)


urlpatterns = [path("waits", waits), path("api/breaks", breaks)]


@pytest.fixture(autouse=True)
def own_addresses(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["kernel.http.middleware.assign_request_id", "django.middleware.common.CommonMiddleware"]
    done.clear()
    may_return.set()
    ended.clear()


def ask(handler: Handler, address: str, query: str = "") -> Any:
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": query.encode(),
        "headers": [(b"host", b"testserver")],
    }
    return ApplicationCommunicator(handler, scope)  # type: ignore[no-untyped-call]


async def begun(handler: Handler, address: str = "/waits", query: str = "") -> Any:
    asked = ask(handler, address, query)
    await asked.send_input({"type": "http.request", "body": b"", "more_body": False})
    return asked


async def answer(asked: Any) -> tuple[int, dict[str, str], Any]:
    start = await asked.receive_output(20)
    body = await asked.receive_output(20)
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, json.loads(body["body"])


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.req("TOOLS-14")
def test_any_number_waits_while_one_is_worked_on_at_a_time() -> None:
    async def story() -> tuple[int, list[Any]]:
        handler = Handler(1)
        before = threading.active_count()
        asked = [await begun(handler) for _ in range(60)]
        await until(lambda: len(waker._waiters.get(THING, [])) == 60)
        threads = threading.active_count() - before
        done.set()
        waker.wake(THING)
        return threads, [await answer(each) for each in asked]

    threads, answers = asyncio.run(story())

    assert threads < 10
    assert [(status, said) for status, _, said in answers] == [(201, {"last": False, "done": True})] * 60
    assert ended == ["end"] * 60
    assert waker._waiters == {}


def test_the_answer_has_what_the_middleware_says_and_its_own_length() -> None:
    async def story() -> Any:
        asked = await begun(Handler(1), query="impatient")
        return await answer(asked)

    status, headers, said = asyncio.run(story())

    assert (status, said) == (201, {"last": True, "done": False})
    assert headers["x-request-id"]
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(json.dumps(said))


def test_who_goes_away_is_not_waited_for() -> None:
    async def story() -> None:
        asked = await begun(Handler(1))
        await until(lambda: waker._waiters.get(THING))
        await asked.send_input({"type": "http.disconnect"})
        await asked.wait(60)

    asyncio.run(story())

    assert ended == ["end"]
    assert waker._waiters == {}


def test_who_goes_away_while_the_view_still_works_leaves_nothing_behind() -> None:
    may_return.clear()

    async def story() -> None:
        asked = await begun(Handler(1))
        await until(lambda: waker._waiters.get(THING))
        await asked.send_input({"type": "http.disconnect"})
        await asked.wait(60)
        may_return.set()
        await until(lambda: ended)

    asyncio.run(story())

    assert ended == ["end"]
    assert waker._waiters == {}


@pytest.mark.unmapped
def test_a_look_that_breaks_is_a_problem_and_not_a_broken_line() -> None:
    async def story() -> Any:
        return await answer(await begun(Handler(1), "/api/breaks"))

    status, headers, said = asyncio.run(story())

    assert (status, said["error"]["reason"]) == (500, "UNKNOWN.INTERNAL")
    assert headers["content-type"] == "application/problem+json"
    assert ended == ["end"]


def test_a_stream_that_is_found_when_its_caller_has_gone_is_closed() -> None:
    closed = threading.Event()

    def look(last: bool) -> StreamingHttpResponse:
        stream = StreamingHttpResponse(iter(["x"]))
        stream._resource_closers.append(closed.set)  # type: ignore[attr-defined]
        return stream

    async def story() -> None:
        go_on = asyncio.Event()

        async def in_thread(work: Any) -> Any:
            await go_on.wait()
            return await asyncio.to_thread(work)

        waiting = WaitingResponse(waker_of_nobody, at_most_s=0, look=look, end=lambda: None)
        asking = asyncio.create_task(waiting.filled(in_thread))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking})
        go_on.set()
        await asyncio.to_thread(closed.wait, 20)

    asyncio.run(story())

    assert closed.is_set()
