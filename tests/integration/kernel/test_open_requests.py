"""Open requests: is whoever still waits when the process ends told so, in the form of what was asked?"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from kernel.http.open_requests import LAST_WORDS, LATE_START, keep_open_requests, refuse_open_requests

if TYPE_CHECKING:
    from kernel.http.body_limits import Application, Receive, Send

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
MEASURED = START | {"headers": [(b"Content-Length", b"3")]}
WORDED: dict[str, Any] = {LAST_WORDS: lambda problem: f"data: {problem.reason}\n\n".encode()}
END = {"type": "http.response.body", "body": b"", "more_body": False}


def ask(application: Application, *, path: str = "/api/v1/tools", **scope: Any) -> tuple[list[dict[str, Any]], bool]:
    """What was sent when the process ended as the application waited, and whether the server saw it end by itself."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> Any:
        return {"type": "http.request"}

    async def serve() -> bool:
        said = {"type": "http", "path": path, "root_path": "", **scope}
        asked: asyncio.Task[None] = asyncio.ensure_future(keep_open_requests(application)(said, receive, send))
        for _ in range(3):
            await asyncio.sleep(0)
        refuse_open_requests()
        await asyncio.wait({asked}, timeout=30)
        ended = asked.done()
        asked.cancel()
        await asyncio.wait({asked})
        return ended and not asked.cancelled()

    return sent, asyncio.run(serve())


async def waits(scope: Any, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


async def streams(scope: Any, receive: Receive, send: Send) -> None:
    await send(START)
    await asyncio.Event().wait()


@pytest.mark.req("TOOLS-14")
def test_who_waits_is_told_that_the_hub_stops_and_when_to_ask_again() -> None:
    sent, ended = ask(waits)

    said = json.loads(sent[1]["body"])
    assert ended
    assert sent[0]["status"] == 503
    assert dict(sent[0]["headers"])[b"retry-after"] == b"5"
    assert (said["error"]["reason"], said["error"]["retryable"]) == ("HUB.STOPPING", "same_key")


@pytest.mark.req("TOOLS-14")
def test_it_is_said_in_the_format_that_the_address_speaks() -> None:
    sent, _ = ask(waits, path="/v1/chat/completions")

    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error"]["code"] == "HUB.STOPPING"


@pytest.mark.req("CONN-4")
def test_a_stream_ends_with_what_its_reader_understands() -> None:
    plain, _ = ask(streams)
    worded, _ = ask(streams, **WORDED)

    assert plain == [START, END]
    assert worded == [START, END | {"body": b"data: HUB.STOPPING\n\n"}]


@pytest.mark.req("CONN-4")
def test_an_application_that_takes_it_for_its_own_end_leaves_no_stream_open() -> None:
    async def swallows(scope: Any, receive: Receive, send: Send) -> None:
        try:
            await streams(scope, receive, send)
        except asyncio.CancelledError:
            await send(END)  # of another task, too late

    sent, ended = ask(swallows)

    assert (sent, ended) == ([START, END], True)


@pytest.mark.req("TOOLS-14")
def test_what_says_how_long_it_is_and_what_was_sent_whole_are_left_alone() -> None:
    async def sends_a_file(scope: Any, receive: Receive, send: Send) -> None:
        await send(MEASURED)
        await asyncio.Event().wait()

    async def is_done(scope: Any, receive: Receive, send: Send) -> None:
        await send(START)
        await send(END)

    assert ask(is_done) == ([START, END], True)

    async def look() -> tuple[bool, list[Any]]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        said = {"type": "http", "path": "/", "root_path": ""}
        asked: asyncio.Task[None] = asyncio.ensure_future(keep_open_requests(sends_a_file)(said, None, send))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        refuse_open_requests()
        await asyncio.sleep(0)
        goes_on = not asked.done()
        asked.cancel()
        await asyncio.wait({asked})
        return goes_on, sent

    assert asyncio.run(look()) == (True, [MEASURED])


@pytest.mark.req("TOOLS-14")
def test_what_would_have_become_a_stream_is_ended_as_one() -> None:
    scope: dict[str, Any] = WORDED | {LATE_START: START}

    sent, ended = ask(waits, **scope)

    assert sent == [START, {"type": "http.response.body", "body": b"data: HUB.STOPPING\n\n", "more_body": False}]
    assert ended
