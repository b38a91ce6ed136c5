"""Call event stream: can a caller follow its call as events, break off and come back, and miss nothing?"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient

from access import services as access
from access.models import ApiKey
from evidence.models import Fact
from invocations.event_streams import stream as event_streams_stream
from invocations.event_streams.stream import CallFollower, StreamCredentials, StreamCursor
from invocations.models import Invocation
from invocations.sandbox.base import RunEvent
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"
LOOKS = 400


@pytest.fixture
def queued(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    """A call that waits for a worker, which takes it when the bell is delivered."""
    enable()
    grant()
    bell.answers = False
    return row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))


def parsed(text: str) -> list[dict[str, Any]]:
    """The events of a stream: {id, event, data}."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "event" in fields:
            found.append(fields | {"data": json.loads(fields["data"])})
    return found


def address(call: Invocation) -> str:
    return f"/api/v1/invocations/{call.wire_id}/events"


def follow(caller: Caller, call: Invocation, last: str = "") -> list[dict[str, Any]]:
    """The whole stream, of a call that has ended."""

    async def read() -> str:
        headers = caller.headers() | {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        answer = await AsyncClient().get(address(call), headers=headers)
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == "text/event-stream"
        return b"".join([part async for part in answer.streaming_content]).decode()  # type: ignore[attr-defined]

    return parsed(async_to_sync(read)())


def follower(caller: Caller, call: Invocation, last: str = "") -> CallFollower:
    return CallFollower(call.pk, StreamCredentials(caller.key, "127.0.0.1"), StreamCursor.read(last))


def names(events: list[dict[str, Any]]) -> list[str]:
    return [each["event"] for each in events]


def until(follower: CallFollower, event: str) -> list[dict[str, Any]]:
    """Look until this event has come."""
    found, pause = [], threading.Event()
    for _ in range(LOOKS):
        found += parsed(follower.look())
        if event in names(found):
            return found
        pause.wait(0.05)
    raise AssertionError(f"No {event} in {names(found)}")


@pytest.mark.req("TOOLS-32")
def test_a_call_is_followed_from_the_queue_to_its_answer(
    queued: Invocation, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    mine = follower(caller, queued)
    waiting, running = parsed(mine.look()), []

    def speak() -> None:
        sandbox.tell(RunEvent("stdout", "for the author\n"))
        sandbox.tell(RunEvent("progress", progress={"log": "Two of four rows."}))
        sandbox.tell(RunEvent("progress", progress={"fraction": 0.5, "message": "Half of it"}))
        running.extend(until(mine, "progress"))

    sandbox.during = speak
    bell.deliver()
    ended = parsed(mine.look())

    assert names(waiting) == ["state", "evidence"]
    assert waiting[0]["data"] == {"call_id": queued.wire_id, "state": "queued", "attempt": 0}
    assert [each["data"]["state"] for each in running if each["event"] == "state"] == ["running"]
    assert [each["data"]["text"] for each in running if each["event"] == "log"] == ["Two of four rows."]
    assert next(each["data"]["fraction"] for each in running if each["event"] == "progress") == 0.5
    assert names(ended) == ["evidence", "evidence", "state", "end"]  # the last segment, the End
    assert ended[-1]["data"] == caller.get(f"/invocations/{queued.wire_id}").json()
    assert mine.is_over
    told = [each["data"] for each in [*waiting, *running, *ended] if each["event"] == "evidence"]
    kept = Fact.objects.filter(invocation_id=queued.pk).exclude(kind="snapshot.read").order_by("id")
    assert [(each["kind"], each["leaf_hash"]) for each in told] == [
        (fact.kind, bytes(fact.leaf_hash).hex()) for fact in kept
    ]
    assert Fact.objects.filter(invocation_id=queued.pk, kind="snapshot.read").exists()
    assert "for the author" not in str([*waiting, *running])


@pytest.mark.req("TOOLS-32")
def test_whoever_comes_back_gets_the_rest_and_nothing_twice(
    queued: Invocation, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_SEGMENT_S = 0
    mine = follower(caller, queued)

    def speak() -> None:
        for number in range(300):  # more than are kept of what is said now
            sandbox.tell(RunEvent("progress", progress={"log": f"line {number}"}))
            if number % 100 == 99:
                until(mine, "log")

    sandbox.during = speak
    bell.deliver()

    whole = follow(caller, queued)

    assert [each["data"]["text"] for each in whole if each["event"] == "log"] == [f"line {n}" for n in range(300)]
    assert names(whole)[-2:] == ["state", "end"]
    assert len({each["id"] for each in whole}) == len(whole)
    for at in range(0, len(whole) - 1, 7):
        rest = follow(caller, queued, last=whole[at]["id"])
        assert [each["id"] for each in rest] == [each["id"] for each in whole[at + 1 :]]
        assert [each["data"] for each in rest[:-1]] == [each["data"] for each in whole[at + 1 : -1]]
    over = caller.get(f"/invocations/{queued.wire_id}/events", **{"Last-Event-ID": whole[-1]["id"]})
    assert over.status_code == 204


def test_a_key_that_is_revoked_meanwhile_ends_the_stream(queued: Invocation, caller: Caller) -> None:
    mine = follower(caller, queued)
    assert "state" in names(parsed(mine.look()))

    access.revoke_key(key_id=ApiKey.objects.get(agent=caller.agent).pk, by=caller.by)

    events = parsed(mine.look())
    assert names(events) == ["error"]
    assert events[0]["data"]["reason"] == "AUTH.UNAUTHENTICATED"
    assert "id" not in events[0]
    assert mine.is_over


def test_where_the_answer_is_redacted_no_line_is_told(
    queued: Invocation, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    Invocation.objects.update(obligations=[{"action": "mask", "pointer": "/name"}])
    mine, seen = follower(caller, queued), []

    def speak() -> None:
        sandbox.tell(RunEvent("progress", progress={"log": "Jane Doe"}))
        sandbox.tell(RunEvent("progress", progress={"fraction": 0.25, "message": "Jane Doe"}))
        seen.extend(until(mine, "progress"))

    sandbox.during = speak
    bell.deliver()

    assert next(each["data"] for each in seen if each["event"] == "progress") == {"fraction": 0.25}
    assert "Jane" not in str(seen)
    assert "log" not in names(follow(caller, queued))


def test_only_the_agent_itself_may_follow_and_it_asks_for_events(
    queued: Invocation, caller: Caller, foreign_caller: Caller
) -> None:
    path = f"/invocations/{queued.wire_id}/events"

    assert_problem(foreign_caller.get(path), 404, "RESOURCE.NOT_FOUND")
    assert_problem(caller.get(path, Accept="application/json"), 406, "REQUEST.NOT_ACCEPTABLE")
    for wrong in ("7", "running.1.2.3.4", "nothing.0.0.0.0-0-0-0-0-0-0-0-0", "\u0661.0.0.0.0"):
        assert_problem(caller.get(path, **{"Last-Event-ID": wrong}), 400, "REQUEST.MALFORMED")


class Reader:
    """One stream on the event loop, as the server reads it."""

    def __init__(self, caller: Caller, call: Invocation) -> None:
        credentials = StreamCredentials(caller.key, "127.0.0.1")
        self._stream = event_streams_stream.stream_events(
            CallFollower(call.pk, credentials, StreamCursor()), agent=caller.by.id
        )
        self.text = ""
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for part in self._stream:
            self.text += part

    async def has(self, text: str) -> None:
        for _ in range(LOOKS):
            if text in self.text:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"No {text!r} in {self.text!r}")

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


def test_a_hundred_readers_take_no_thread_each_and_the_next_one_is_told_to_wait(
    queued: Invocation, caller: Caller, settings: Any
) -> None:
    settings.TOOLHUB_STREAMS_PER_AGENT = 100
    before = threading.active_count()

    async def read() -> tuple[int, Any]:
        readers = [Reader(caller, queued) for _ in range(100)]
        for reader in readers:
            await reader.has("event: state")
        threads = threading.active_count()
        refused = await AsyncClient().get(address(queued), headers=caller.headers())
        for reader in readers:
            await reader.leave()
        return threads - before, refused

    threads, refused = async_to_sync(read)()

    assert threads < 40
    assert_problem(refused, 429, "STREAM.TOO_MANY")
    assert refused.headers["Retry-After"]
    assert event_streams_stream._open == {}  # who leaves makes room


def test_of_many_that_come_at_once_no_more_are_let_in(
    queued: Invocation, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was looked at before any of them was counted."""
    credentials = event_streams_stream.StreamCredentials(caller.key, "")
    monkeypatch.setitem(event_streams_stream._open, caller.by.id, 20)

    async def read() -> list[str]:
        stream = event_streams_stream.stream_events(
            CallFollower(queued.pk, credentials, StreamCursor()), agent=caller.by.id
        )
        return [text async for text in stream]

    (said,) = async_to_sync(read)()

    assert said.startswith("event: error")
    assert "STREAM.TOO_MANY" in said


def test_a_stream_with_nothing_to_tell_says_that_it_is_there(
    queued: Invocation, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_streams_stream, "HEARTBEAT_S", 0)

    async def read() -> str:
        reader = Reader(caller, queued)
        await reader.has(": here\n\n")
        await reader.leave()
        return reader.text

    assert async_to_sync(read)().startswith("retry: ")
