"""Plain exchanges: which messages pass the SDK's transport by, and does a client get the same by either way, byte for byte?"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.agents.api_keys import compute_digest
from access.authentication import bearer, known_keys
from access.authentication.known_keys import KeyHolder
from access.models import ApiKey
from invocations.mcp import endpoint, plain_exchanges
from invocations.models import Invocation, Tally
from tests.support.entry_paths import Sent, at_the_door, modern_request, usual_headers
from tests.support.made_calls import ECHO
from tests.support.mcp_streams import Stream, converse
from tests.support.request_ways import take_sdk_transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
LATEST = "2025-11-25"
REVISIONS = ("2026-07-28", LATEST, "2025-06-18", "")
CALL = {"name": ECHO, "arguments": {"text": "x"}}
# What is another one in each answer: ids, times and what holds them.
_OWN = re.compile(
    r"mcp-[0-9a-f-]{36}|\d+(?:\.\d+)?(?= ms)|(inv|fct|snp|con)_[0-9a-z]{26}|\d{4}-\d\d-\d\dT[0-9:.]+(?:\+00:00|Z)"
    r"|(?<=ms\\\":)[0-9. ]+|(?<=\"ms\":)[0-9. ]+|[0-9a-f]{64}|[0-9a-f]{32}"
)


@pytest.fixture(autouse=True)
def open_echo(enable: Callable[..., Any], grant: Callable[..., Any], bell: Bell, scripted: Any) -> None:
    enable()
    grant()


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages of plain exchanges."""
    found: list[Any] = []
    answer = plain_exchanges.answer_plain_message

    async def note(message: Any, *rest: Any) -> None:
        found.append(message.id)
        await answer(message, *rest)

    monkeypatch.setattr(endpoint, "answer_plain_message", note)
    return found


def build_request(caller: Caller, revision: str, params: Any, **more: Any) -> tuple[bytes, dict[str, str]]:
    if revision == REVISIONS[0]:
        body, headers = modern_request(caller, "tools/call", params)
        said = json.loads(body)
        said["params"]["_meta"] |= params.get("_meta", {}) if isinstance(params.get("_meta"), dict) else {}
    else:
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = usual_headers(caller) | ({"MCP-Protocol-Version": revision} if revision else {})
    return json.dumps(said | more).encode(), headers


def by_both(body: bytes, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    with monkeypatch.context() as patched:
        first = at_the_door(body, headers)
        take_sdk_transport(patched)
        return [compare(first), compare(at_the_door(body, headers))]


def compare(sent: Sent) -> tuple[int, list[tuple[str, str]], str]:
    headers = [(name, text) for name, text in sent.headers.items() if name != "content-length"]
    return sent.status, headers, _OWN.sub("…", sent.text)


MESSAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a call": (CALL, {}),
    "a call whose id is text": (CALL, {"id": "a-1"}),
    "a call by the tool's other name": (CALL | {"name": "sample_tools_echo"}, {}),
    "arguments that do not fit": (CALL | {"arguments": {"text": 1}}, {}),
    "arguments that are no object": (CALL | {"arguments": [1]}, {}),
    "a tool that there is not": (CALL | {"name": "sample.tools.none"}, {}),
    "a tool without a grant": (CALL | {"name": "sample.tools.raises"}, {}),
    "an envelope": (CALL | {"_meta": {"toolhub/envelope": {"user_id": "u1", "dry_run": True}}}, {}),
    "an envelope that is none": (CALL | {"_meta": {"toolhub/envelope": 1}}, {}),
    "an envelope with a wrong field": (CALL | {"_meta": {"toolhub/envelope": {"locale": "?", "x": 1}}}, {}),
    "a name in Chinese": (CALL | {"arguments": {"text": "报价"}}, {}),
    "a word beside": (CALL | {"else": 1}, {}),
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("name", MESSAGES)
def test_both_ways_answer_alike(
    name: str,
    revision: str,
    caller: Caller,
    enable: Callable[..., Any],
    taken: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable("raises")
    params, more = MESSAGES[name]
    body, headers = build_request(caller, revision, params, **more)

    plain, whole = by_both(body, headers, monkeypatch)

    assert plain == whole
    assert taken == [more.get("id", 1)]


OTHERS: dict[str, tuple[Any, dict[str, Any], dict[str, str]]] = {
    "progress is wanted": (CALL | {"_meta": {"progressToken": 1}}, {}, {}),
    "an id that is none": (CALL, {"id": True}, {}),
    "no id": (CALL, {"id": None}, {}),
    "another method": ({}, {"method": "tools/list"}, {}),
    "another version of JSON-RPC": (CALL, {"jsonrpc": "1.0"}, {}),
    "a member that is none": (CALL, {"else": 1}, {}),
    "a name that is none": (CALL | {"name": 1}, {}, {"Mcp-Name": "1"}),
    "a name that is looked up": (CALL | {"name": "Echo a text"}, {}, {}),
    "a name that differs": (CALL, {}, {"Mcp-Name": "sample.tools.write"}),
    "a revision of tomorrow": (CALL, {}, {"MCP-Protocol-Version": "2099-01-01"}),
    "a session that is none": (CALL, {}, {"Mcp-Session-Id": "a"}),
    "another kind of body": (CALL, {}, {"Content-Type": "text/plain"}),
    "an answer of one kind": (CALL, {}, {"Accept": "application/json"}),
    "another page": (CALL, {}, {"Origin": "https://else.example"}),
    "another host": (CALL, {}, {"Host": "else.example"}),
    "a key that is not known": (CALL, {}, {"Authorization": "Bearer hub_live_nobody"}),
    "a large message": (CALL | {"arguments": {"text": "x" * plain_exchanges.MAX_BYTES}}, {}, {}),
}


ONLY = {"a name that differs": REVISIONS[:1], "a session that is none": REVISIONS[1:2]}


@pytest.mark.parametrize(
    ("name", "revision"), [(name, each) for name in OTHERS for each in ONLY.get(name, REVISIONS[:2])]
)
def test_what_is_not_plain_takes_the_other_way(
    name: str, revision: str, caller: Caller, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    params, more, own = OTHERS[name]
    body, headers = build_request(caller, revision, params, **more)

    first, second = by_both(body, headers | own, monkeypatch)

    assert taken == []
    assert first == second


@pytest.mark.parametrize("revision", REVISIONS[:2])
@pytest.mark.parametrize("what", ["revoked", "expired", "elsewhere", "deleted"])
def test_a_known_key_that_counts_no_more_is_refused_as_by_the_other_way(
    what: str, revision: str, caller: Caller, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ApiKey.objects.filter(agent=caller.agent)
    match what:
        case "revoked":
            key.update(revoked_at=timezone.now(), revoked_by="somebody")
        case "expired":
            key.update(expires_at=timezone.now())
        case "elsewhere":
            key.update(networks=["192.0.2.0/24"])
        case "deleted":
            key.update(lookup="gone")

    plain, whole = by_both(*build_request(caller, revision, CALL), monkeypatch)

    assert plain == whole
    assert plain[0] == 401
    assert taken == [1]
    assert Tally.objects.get().count == 2
    assert not Invocation.objects.exists()


def test_who_is_taken_for_another_is_answered_by_the_other_way_and_for_themselves(
    caller: Caller, foreign_caller: Caller, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body, headers = build_request(caller, LATEST, CALL)
    theirs = KeyHolder(
        foreign_caller.by.tenant_id, foreign_caller.agent.pk, foreign_caller.by.key_id or caller.agent.pk
    )
    monkeypatch.setitem(known_keys._known, compute_digest(caller.key), theirs)

    sent = at_the_door(body, headers)

    assert not sent.body["result"]["isError"]
    assert taken == [1]
    (made,) = Invocation.objects.all()
    assert (made.tenant_id, made.agent_id) == (caller.by.tenant_id, caller.agent.pk)


def initialize(caller: Caller, **capabilities: Any) -> str:
    said = {"protocolVersion": LATEST, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": said}).encode()
    return at_the_door(body, usual_headers(caller)).headers["mcp-session-id"]


def test_a_session_is_that_of_its_own_agent(
    caller: Caller, foreign_caller: Caller, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body, headers = build_request(caller, LATEST, CALL)
    own, others = initialize(caller), initialize(foreign_caller)

    made = by_both(body, headers | {"Mcp-Session-Id": own}, monkeypatch)
    refused = by_both(body, headers | {"Mcp-Session-Id": others}, monkeypatch)

    assert (made[0], made[0][0]) == (made[1], 200)
    assert (refused[0], refused[0][0]) == (refused[1], 404)
    assert taken == [1, 1]
    assert Invocation.objects.filter(request_id__startswith="mcp-").count() == 2


def test_whoever_is_asked_by_forms_within_the_stream_takes_the_other_way(caller: Caller, taken: list[Any]) -> None:
    body, headers = build_request(caller, LATEST, CALL)

    sent = at_the_door(body, headers | {"Mcp-Session-Id": initialize(caller, elicitation={"form": {}})})

    assert not sent.body["result"]["isError"]
    assert taken == []


@pytest.mark.parametrize("revision", REVISIONS[:2])
def test_what_takes_long_becomes_a_stream_that_is_kept_alive(
    revision: str, caller: Caller, taken: list[Any], bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain_exchanges, "PING_S", 0.01)
    rings = asyncio.Event()
    wait_async = bell.wait_async

    async def wait(seconds: float) -> None:
        await rings.wait()
        await wait_async(seconds)

    monkeypatch.setattr(bell, "wait_async", wait)
    body, headers = build_request(caller, revision, CALL)

    async def say() -> None:
        stream = Stream(body, {"Content-Length": str(len(body))} | headers, "POST")
        await stream.until(lambda: stream.text.count(": ping") > 1)
        rings.set()
        await stream.task
        assert [each["id"] for each in stream.messages] == [1]
        assert stream.sent[0]["status"] == 200
        assert dict(stream.sent[0]["headers"])[b"content-type"] == b"text/event-stream"
        assert not stream.sent[-1].get("more_body")

    converse(say)
    assert taken == [1]


@pytest.mark.parametrize("revision", REVISIONS[:2])
@pytest.mark.parametrize(("key", "status"), [("revoked", 401), ("another's", 200)])
def test_nothing_is_kept_alive_before_it_is_known_who_asks(
    key: str,
    status: int,
    revision: str,
    caller: Caller,
    foreign_caller: Caller,
    taken: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else there would be two answers: the stream, and what is said to whoever may not, or is another."""
    if key == "revoked":
        ApiKey.objects.filter(agent=caller.agent).update(revoked_at=timezone.now(), revoked_by="somebody")
    else:
        known = KeyHolder(foreign_caller.by.tenant_id, foreign_caller.agent.pk, caller.agent.pk)
        monkeypatch.setitem(known_keys._known, compute_digest(caller.key), known)
    monkeypatch.setattr(plain_exchanges, "PING_S", 0.01)
    due = threading.Event()
    begin, resolve = plain_exchanges._LateStream._begin, bearer.resolve_header_principal

    def begin_now(stream: Any) -> None:
        begin(stream)
        due.set()

    def resolve_late(*asked: Any, **more: Any) -> Any:
        assert due.wait(30)
        return resolve(*asked, **more)

    monkeypatch.setattr(plain_exchanges._LateStream, "_begin", begin_now)
    monkeypatch.setattr(plain_exchanges, "resolve_header_principal", resolve_late)
    body, headers = build_request(caller, revision, CALL)

    async def say() -> None:
        stream = Stream(body, {"Content-Length": str(len(body))} | headers, "POST")
        await stream.task
        assert [each["status"] for each in stream.sent if each["type"] == "http.response.start"] == [status]

    converse(say)
    assert taken == [1]
