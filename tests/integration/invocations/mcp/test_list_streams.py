"""List streams: does a client that listens, in either revision, hear that its list has changed, and when its stream ends?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async

from access import services as access
from invocations.mcp import list_streams, list_watch, open_streams
from registry.installations import services as installations
from tests.conftest import make_caller
from tests.support.entry_paths import at_the_door, modern_request, usual_headers
from tests.support.mcp_streams import CHANGED, OLDER, Stream, converse

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_watch, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(open_streams, "LOOK_EVERY_S", 0.01)


@pytest.fixture
def listed(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable("echo")
    grant()


def pause(operator: Person) -> Any:
    return sync_to_async(installations.pause_installation)(name=ECHO, reason="for a test", by=operator.by)


@pytest.mark.req("CONN-4")
def test_a_client_of_an_older_revision_hears_with_get(
    listed: None, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def say() -> None:
        stream = Stream(b"", usual_headers(caller) | OLDER, "GET")
        await stream.until(lambda: "data:\n\n" in stream.text)
        assert stream.messages == []
        await pause(operator)
        await stream.until(lambda: stream.messages)
        assert stream.messages == [{"jsonrpc": "2.0", "method": CHANGED}]
        monkeypatch.setattr(list_streams, "HEARTBEAT_S", 0.01)
        await stream.leave()
        assert dict(stream.sent[0]["headers"])[b"content-type"] == b"text/event-stream"
        assert stream.sent[-1]["more_body"] is False

    converse(say)


@pytest.mark.req("CONN-4")
def test_who_comes_back_is_told_what_it_missed_and_nothing_else(listed: None, caller: Caller, operator: Person) -> None:
    async def begin(last: str) -> tuple[str, list[Any]]:
        stream = Stream(b"", usual_headers(caller) | OLDER | ({"Last-Event-ID": last} if last else {}), "GET")
        await stream.until(lambda: "data:\n\n" in stream.text)
        await stream.leave()
        return stream.text.partition("id: ")[2].partition("\n")[0], stream.messages

    async def say() -> None:
        first, told = await begin("")
        assert (await begin(first), told) == ((first, []), [])
        await pause(operator)
        second, told = await begin(first)
        assert second != first
        assert [each["method"] for each in told] == [CHANGED]

    converse(say)


@pytest.mark.req("CONN-4")
def test_an_older_client_gets_no_event_without_a_message(listed: None, caller: Caller) -> None:
    async def say() -> None:
        stream = Stream(b"", usual_headers(caller) | {"MCP-Protocol-Version": "2025-06-18"}, "GET")
        await stream.until(lambda: "retry" in stream.text)
        await stream.leave()
        assert "data" not in stream.text

    converse(say)


@pytest.mark.req("CONN-4")
def test_a_client_of_the_newer_revision_hears_by_its_subscription(
    listed: None, caller: Caller, operator: Person
) -> None:
    asked = {"notifications": {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["x:y"]}}

    async def say() -> None:
        stream = Stream(*modern_request(caller, "subscriptions/listen", asked), "POST")
        await stream.until(lambda: stream.messages)
        (first,) = stream.messages
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}  # what the hub has of it
        await pause(operator)
        await stream.until(lambda: len(stream.messages) == 2)
        told = stream.messages[1]
        assert (told["method"], told["params"]["_meta"][SUBSCRIPTION]) == (CHANGED, 1)
        list_watch.close_streams()
        await stream.task
        assert stream.messages[2]["id"] == 1
        assert "result" in stream.messages[2]

    converse(say)


@pytest.mark.req("CONN-4")
@pytest.mark.parametrize("modern", [True, False])
def test_a_stream_ends_with_the_key_that_it_was_opened_with(
    modern: bool, listed: None, caller: Caller, operator: Person
) -> None:
    asked = modern_request(caller, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    key_id = caller.by.key_id
    assert key_id is not None

    async def say() -> None:
        stream = Stream(*(asked if modern else (b"", usual_headers(caller) | OLDER)), "POST" if modern else "GET")
        await stream.until(lambda: len(stream.sent) > 1)
        await sync_to_async(access.revoke_key)(key_id=key_id, by=operator.by)
        await stream.task
        assert stream.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    converse(say)


@pytest.mark.req("CONN-4")
def test_who_may_not_list_may_not_listen(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other", scopes=("invocations:create",))
    listen = modern_request(other, "subscriptions/listen", {"notifications": {"toolsListChanged": True}})

    for sent in (at_the_door(b"", usual_headers(other), "GET"), at_the_door(*listen)):
        assert (sent.status, sent.body["error"]["details"]["missing"]) == (403, "tools:read")


@pytest.mark.req("CONN-4")
def test_an_agent_that_listens_often_enough_is_told_so_in_either_revision(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_STREAMS_PER_AGENT = 0

    older = at_the_door(b"", usual_headers(caller), "GET")
    newer = at_the_door(*modern_request(caller, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))

    assert (older.status, older.body["error"]["reason"]) == (429, "STREAM.TOO_MANY")
    assert newer.body["error"]["data"]["reason"] == "STREAM.TOO_MANY"


@pytest.mark.req("CONN-4")
def test_the_hub_says_that_lists_change_in_both_revisions(caller: Caller) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()

    older = at_the_door(said, usual_headers(caller)).body["result"]
    newer = at_the_door(*modern_request(caller, "server/discover")).body["result"]

    assert older["capabilities"]["tools"] == newer["capabilities"]["tools"] == {"listChanged": True}


@pytest.mark.req("CONN-4")
def test_a_session_of_somebody_else_opens_no_stream(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other")
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
    session = at_the_door(said, usual_headers(caller)).headers["mcp-session-id"]

    assert at_the_door(b"", usual_headers(other) | {"Mcp-Session-Id": session}, "GET").status == 404
