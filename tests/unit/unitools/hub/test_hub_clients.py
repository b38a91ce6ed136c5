"""Hub clients: do both clients carry out what is planned, over a real connection, and does the key stay where it belongs?"""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  pydantic reads the annotation
from decimal import Decimal
from typing import Any

import pytest

from tests.support.scripted_hub import DROP, ID, KEY, blocking, both, envelope, refusal, scripted
from unitools.hub import HubClient, HubError, NotUnderstood, Refused, Unreachable
from unitools.hub.responses import convert_response


@dataclass
class Quote:
    price: Decimal
    at: datetime


@both
def test_a_request_that_got_no_answer_is_sent_again_and_stays_one_call(using: Any) -> None:
    later = (429, {"Retry-After": "0"}, refusal("QUOTA.CONCURRENCY", "yes"))
    with scripted(DROP, later, (200, {}, envelope({"price": "1.10", "at": "2026-11-23T01:00:00Z"}))) as server:
        answer = using(server.url, lambda hub: hub.invoke("a.b.c", {"symbol": "X"}, into=Quote))

    assert (answer.data.price, answer.data.at.year, answer.call_id) == (Decimal("1.10"), 2026, ID)
    assert len({each.headers["idempotency-key"] for each in server.heard}) == 1
    assert len({json.loads(each.body)["request_id"] for each in server.heard}) == 1
    assert {each.headers["authorization"] for each in server.heard} == {f"Bearer {KEY}"}


@both
def test_two_calls_have_two_keys(using: Any) -> None:
    with scripted(*[(200, {}, envelope())] * 2) as server:
        for _ in range(2):
            using(server.url, lambda hub: hub.invoke("a.b.c", {}))

    assert len({each.headers["idempotency-key"] for each in server.heard}) == 2


@both
def test_a_long_call_is_followed_to_its_end_over_the_wire(using: Any) -> None:
    stream = b'retry: 1000\n\nid: 1\nevent: progress\ndata: {"fraction": 1}\n\nid: 2\nevent: end\ndata: {}\n\n'
    heard: list[Any] = []
    with scripted(
        (202, {"Retry-After": "1"}, envelope(state="running")),
        (200, {"Content-Type": "text/event-stream"}, stream),
        (200, {}, envelope({"done": True})),
    ) as server:
        answer = using(server.url, lambda hub: hub.invoke("a.b.c", {}, on_event=heard.append))

    assert answer.data == {"done": True}
    assert [(event.kind, event.data) for event in heard] == [("progress", {"fraction": 1})]


@both
def test_all_that_is_asked_goes_to_its_address(using: Any) -> None:
    with scripted(
        (200, {}, envelope({"tools": [], "next": None})),
        (200, {}, envelope({"allow": True, "tool": "a.b.c", "version": "1.0.0", "problem": None})),
        (202, {}, envelope(state="queued")),
        (200, {}, envelope(state="cancelled")),
        (200, {}, envelope({"messages": [], "calls": []})),
    ) as server:
        assert using(server.url, lambda hub: hub.discover(dialect="openai", limit=5)).payload == []
        assert using(server.url, lambda hub: hub.preflight("a.b.c", {})).allow
        assert using(server.url, lambda hub: hub.begin("a.b.c", {})).state == "queued"
        assert using(server.url, lambda hub: hub.cancel(ID)) == "cancelled"
        assert using(server.url, lambda hub: hub.dispatch({"choices": []})).messages == []

    assert [(each.method, each.path) for each in server.heard] == [
        ("GET", "/api/v1/tools?dialect=openai&limit=5"),
        ("POST", "/api/v1/tools/a.b.c/preflight"),
        ("POST", "/api/v1/tools/a.b.c/invoke"),
        ("DELETE", f"/api/v1/invocations/{ID}"),
        ("POST", "/api/v1/dispatch"),
    ]


@both
def test_the_key_is_in_no_message_and_no_log_whatever_happens(using: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = []
    scripts: list[list[Any]] = [[DROP] * 2, [(401, {}, refusal("AUTH.UNAUTHENTICATED", "no"))], [(200, {}, b"<html>")]]
    for script in scripts:
        with scripted(*script) as server, pytest.raises(HubError) as raised:
            using(server.url, lambda hub: hub.invoke("a.b.c", {}, timeout_s=1.1))
        told.append("".join(traceback.format_exception(raised.value)) + repr(raised.value))

    assert [KEY in text for text in [*told, caplog.text]] == [False] * 4


def test_the_key_is_not_shown_with_the_client() -> None:
    with HubClient("http://127.0.0.1:1", KEY) as hub:
        assert repr(hub) == "HubClient('http://127.0.0.1:1')"


def test_an_answer_that_leads_elsewhere_is_not_followed_with_the_key() -> None:
    with (
        scripted() as elsewhere,
        scripted((302, {"Location": f"{elsewhere.url}/steal"}, b"")) as server,
        pytest.raises(NotUnderstood),
    ):
        blocking(server.url, lambda hub: hub.preflight("a.b.c", {}))

    assert elsewhere.heard == []


def test_a_hub_that_is_not_there_is_unreachable_and_nothing_has_arrived() -> None:
    with scripted() as gone:
        pass

    with HubClient(gone.url, KEY, attempts=2) as hub, pytest.raises(Unreachable) as raised:
        hub.preflight("a.b.c", {})

    assert not raised.value.may_have_arrived


@pytest.mark.parametrize("url", ["hub.example.org", "ftp://hub", "https://key@hub.example.org", "https://"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="address of a hub"):
        HubClient(url, KEY)


def test_key_and_address_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLHUB_URL", raising=False)
    monkeypatch.delenv("TOOLHUB_API_KEY", raising=False)
    with pytest.raises(LookupError, match="TOOLHUB_URL and TOOLHUB_API_KEY"):
        HubClient.from_environment()
    monkeypatch.setenv("TOOLHUB_API_KEY", KEY)
    with scripted((403, {}, refusal("AUTH.FORBIDDEN", "no"))) as server:
        monkeypatch.setenv("TOOLHUB_URL", f"{server.url}/")
        with HubClient.from_environment() as hub, pytest.raises(Refused):
            hub.preflight("a.b.c", {})

    assert server.heard[0].path == "/api/v1/tools/a.b.c/preflight"


def test_objects_of_a_provider_s_sdk_are_sent_as_json() -> None:
    class Message:
        def model_dump(self, **how: Any) -> dict[str, Any]:
            return {"how": how["mode"]}

    assert convert_response([Message(), {"type": "text"}]) == [{"how": "json"}, {"type": "text"}]


@pytest.mark.parametrize("key", ["SECRET\n", "SECRET\r\nX-More: 1", "SECRET\0", "SECRET KEY", "SECRET\u00e9", ""])
def test_a_key_that_cannot_be_sent_is_not_told(key: str) -> None:
    """The HTTP library would quote the header in its error."""
    with HubClient("http://127.0.0.1:1", key) as hub, pytest.raises(ValueError, match="API key") as raised:
        hub.invoke("a.b.c", {})

    assert "SECRET" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("url", ["http://:pass@hub", "http://name@hub", "http://hub#part", "http://hub?", "ftp://hub"])
def test_an_address_with_more_than_a_place_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="address of a hub"):
        HubClient(url, "key")
