"""Open streams: does an answer that is still being given over MCP end with the connection of its program?"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from invocations.mcp import open_streams
from invocations.mcp.open_streams import OpenStreams, TrackedSend

pytestmark = pytest.mark.req("CONN-3")


async def in_thread(work: Any) -> Any:
    return work()


def follow(monkeypatch: pytest.MonkeyPatch, *, ends: bool, begins: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """What was sent, and what became of the answer."""
    monkeypatch.setattr(open_streams, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(open_streams, "_find_ended", lambda ids: ids if ends else [])
    sent: list[dict[str, Any]] = []
    became: list[str] = []

    async def run() -> None:
        async def send(message: Any) -> None:
            sent.append(dict(message))

        tracked, ended = TrackedSend(send), asyncio.Event()

        async def answer() -> None:
            try:
                if begins:
                    await tracked({"type": "http.response.start", "status": 200, "headers": []})
                if ends:
                    await ended.wait()
                await tracked({"type": "http.response.body", "body": b"all", "more_body": False})
                became.append("given")
            except asyncio.CancelledError:
                became.append("cut")
                raise

        streams, id = OpenStreams(in_thread), uuid4()
        await asyncio.wait_for(streams.give(id, answer(), tracked), timeout=30)
        assert isinstance(id, UUID)
        assert not streams._open

    asyncio.run(run())
    return sent, became


def test_a_stream_that_has_begun_ends_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, became = follow(monkeypatch, ends=True, begins=True)

    assert became == ["cut"]
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_who_was_told_nothing_yet_is_told_that_it_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, _ = follow(monkeypatch, ends=True, begins=False)

    assert sent[0]["status"] == 401


def test_what_is_given_while_the_connection_lives_is_given_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, became = follow(monkeypatch, ends=False, begins=True)

    assert became == ["given"]
    assert sent[-1]["body"] == b"all"
