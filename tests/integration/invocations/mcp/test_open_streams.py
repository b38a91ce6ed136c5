"""Open streams: does an answer that is still being given over MCP end with the connection of its program?"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.db import InterfaceError

from access.authentication.held_credentials import HeldCredential, HeldKind
from invocations.mcp import open_streams
from invocations.mcp.endpoint import PATH
from invocations.mcp.open_streams import OpenStreams, TrackedSend
from invocations.mcp.refusals import refuse_ended
from invocations.stopped_streams import StreamTopic

if TYPE_CHECKING:
    from collections.abc import Callable

NOW = datetime(2026, 11, 28, tzinfo=UTC)
TOPIC = StreamTopic(uuid4(), uuid4())


async def in_thread(work: Any) -> Any:
    return work()


def follow(
    monkeypatch: pytest.MonkeyPatch,
    look: Callable[[set[Any]], tuple[set[Any], datetime]],
    *,
    begins: bool,
    looks: int,
) -> tuple[list[dict[str, Any]], list[str]]:
    """What was sent, and what became of an answer that takes so many looks. Its token ends at ``NOW``."""
    monkeypatch.setattr(open_streams, "LOOK_EVERY_S", 0.0)
    sent: list[dict[str, Any]] = []
    became: list[str] = []

    async def run() -> None:
        enough, seen = asyncio.Event(), 0

        def find_ended(ids: Any, *_of_halts: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen > looks:
                enough.set()
            ended, now = look(set(ids))
            return ended, {}, now

        async def send(message: Any) -> None:
            sent.append(dict(message))

        monkeypatch.setattr(open_streams, "_find_ended", find_ended)
        tracked = TrackedSend(send, partial(refuse_ended, PATH))

        async def answer() -> None:
            try:
                if begins:
                    await tracked({"type": "http.response.start", "status": 200, "headers": []})
                await enough.wait()
                await tracked({"type": "http.response.body", "body": b"all", "more_body": False})
                became.append("given")
            except asyncio.CancelledError:
                became.append("cut")
                raise

        streams, held = OpenStreams(in_thread), HeldCredential(HeldKind.CONNECTION, uuid4())
        await asyncio.wait_for(streams.give(held, answer(), tracked, ends=NOW, topic=TOPIC), timeout=30)
        assert not streams._open

    asyncio.run(run())
    return sent, became


def ended(ids: set[Any]) -> tuple[set[Any], datetime]:
    return ids, NOW - timedelta(seconds=1)


def alive(_: set[Any]) -> tuple[set[Any], datetime]:
    return set(), NOW - timedelta(seconds=1)


def later(_: set[Any]) -> tuple[set[Any], datetime]:
    return set(), NOW


@pytest.mark.req("CONN-1")
def test_a_stream_that_has_begun_ends_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, became = follow(monkeypatch, ended, begins=True, looks=9)

    assert became == ["cut"]
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.req("CONN-1")
def test_who_was_told_nothing_yet_is_told_that_it_may_not_and_where_it_may_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent, _ = follow(monkeypatch, ended, begins=False, looks=9)

    headers = dict(sent[0]["headers"])
    assert sent[0]["status"] == 401
    assert b"resource_metadata=" in headers[b"www-authenticate"]
    assert b'error="invalid_token"' in headers[b"www-authenticate"]
    assert headers[b"content-type"].startswith(b"application/")
    assert [each["type"] for each in sent] == ["http.response.start", "http.response.body"]


@pytest.mark.req("CONN-1")
def test_what_is_given_while_the_connection_lives_is_given_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, became = follow(monkeypatch, alive, begins=True, looks=3)

    assert became == ["given"]
    assert sent[-1]["body"] == b"all"


@pytest.mark.req("CONN-1")
def test_a_stream_ends_with_its_token_and_what_was_not_begun_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    _, begun = follow(monkeypatch, later, begins=True, looks=9)
    _, not_begun = follow(monkeypatch, later, begins=False, looks=3)

    assert (begun, not_begun) == (["cut"], ["given"])  # a 401 would have the call made again with a newer token


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("error", [InterfaceError("connection already closed"), RuntimeError("no new thread")])
def test_a_look_that_fails_is_not_the_last(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def fail_once(ids: set[Any]) -> Any:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise error
        return ended(ids)

    _, became = follow(monkeypatch, fail_once, begins=True, looks=9)

    assert became == ["cut"]
