"""MCP pending calls: what does an MCP client hear of a call that has not ended, and how does it take one back?"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult

from access.consents import services as consents
from access.models import Consent
from evidence.models import Fact
from invocations.answer.wake_ups import InProcessWaker
from invocations.mcp import tool_calls
from invocations.models import Invocation
from invocations.run import execution
from invocations.sandbox.base import RunEvent, RunOutcome, RunStatus
from kernel.database.connections import release_connection
from tests.support.background_runs import wait_for
from tests.support.calls import PAIR, kinds_of, writer
from tests.support.mcp_clients import TASKS, Wire, called, error_of, ring_in_threads, talk, web_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp import Client

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("each_mcp_way")]
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
BY_URL: dict[str, Any] = {"elicitation": {"url": {}}}
BY_FORM: dict[str, Any] = {"elicitation": {}}  # as clients said it before there were addresses
WITH_TASKS: dict[str, Any] = {"extensions": {TASKS: {}}}
PATIENCE_S = 60
CALLERS = 12


@contextmanager
def working(bell: Bell) -> Iterator[None]:
    """Calls run in a thread of their own, as in a worker."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            if bell.rung:
                bell.rung.pop(0)
                try:
                    execution.run_queued_calls()
                finally:
                    release_connection()

    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_S)


@pytest.fixture
def url(bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    bell.answers = False
    ring_in_threads(bell, monkeypatch)
    with web_server(threads=2) as found, working(bell):
        yield found


@pytest.fixture
def held_up(sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The tool runs until this is set."""
    go = threading.Event()
    monkeypatch.setattr(sandbox, "during", lambda: go.wait(PATIENCE_S))
    yield go
    go.set()


def running() -> bool:
    return Invocation.objects.filter(state="running").exists()


@pytest.mark.req("TOOLS-32", "TOOLS-17")
@pytest.mark.parametrize("modern", [True, False])
def test_progress_reaches_the_client_that_asked_for_it_on_the_stream_of_its_call(
    modern: bool,
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()

    told: list[float | None] = []
    tell = tool_calls.Progress.tell

    async def noted(progress: tool_calls.Progress, live: dict[str, Any] | None) -> None:
        await tell(progress, live)
        told.append(((live or {}).get("progress") or {}).get("fraction"))

    monkeypatch.setattr(tool_calls.Progress, "tell", noted)

    def speak() -> None:
        for fraction in (0, 0.5, 0.25, 1):
            sandbox.tell(RunEvent("progress", progress={"fraction": fraction, "message": f"{fraction}"}))
            wait_for(lambda: told and told[-1] == fraction)  # noqa: B023  waited for at once

    sandbox.during = speak
    wire = Wire.of(url, caller, modern=modern)
    if not modern:
        wire.initialize()

    answer = wire.call(ECHO, {}, _meta={"progressToken": "p-1"})
    quiet = Wire.of(url, caller)
    sandbox.during = lambda: None

    assert answer.result["structuredContent"] == {"text": "scripted"}
    notes = [each["params"] for each in answer.notes]
    assert [each["method"] for each in answer.notes] == ["notifications/progress"] * len(notes)
    assert {each["progressToken"] for each in notes} == {"p-1"}
    assert [each["progress"] for each in notes] == [0, 0.5, 1]
    assert (notes[1]["message"], notes[1]["total"]) == ("0.5", 1)
    assert quiet.call(ECHO, {}).notes == []


def leave_in_the_middle(wire: Wire, id: int = 7) -> None:
    """Ask for a call and go away when it runs."""
    body = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": wire._params({"name": ECHO, "arguments": {}})}
    headers = {
        "Authorization": f"Bearer {wire.key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **wire._headers("tools/call", {"name": ECHO}),
    }
    connection = http.client.HTTPConnection(wire.url.removeprefix("http://"), timeout=PATIENCE_S)
    connection.request("POST", "/mcp", json.dumps(body), headers)
    wait_for(running)
    connection.close()


@pytest.mark.req("TOOLS-32", "TOOLS-17")
def test_a_client_of_2026_takes_its_call_back_by_going_away(
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
    held_up: threading.Event,
) -> None:
    enable()
    grant()
    sandbox.outcome = RunOutcome(RunStatus.CANCELLED)

    leave_in_the_middle(Wire.of(url, caller))

    wait_for(lambda: Invocation.objects.get().cancel_asked_at)
    held_up.set()
    wait_for(lambda: Invocation.objects.get().is_final)
    assert Invocation.objects.get().state == "cancelled"
    assert "invocation.cancel_asked" in kinds_of(Invocation.objects.get())


@pytest.mark.req("TOOLS-32", "TOOLS-17")
def test_an_older_client_takes_its_call_back_with_a_word_in_its_session_and_not_by_losing_the_connection(
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
    held_up: threading.Event,
) -> None:
    enable()
    grant()
    wire, other = Wire.of(url, caller, modern=False), Wire.of(url, caller, modern=False)
    wire.initialize()
    other.initialize()
    leave_in_the_middle(wire, id=7)

    assert other.tell("notifications/cancelled", {"requestId": 7}).status == 202
    assert wire.tell("notifications/cancelled", {"requestId": 8}).status == 202
    assert wire.ask("ping", id=9).result == {}
    assert Invocation.objects.get().cancel_asked_at is None
    wire.tell("notifications/cancelled", {"requestId": 7, "reason": "enough"})

    wait_for(lambda: Invocation.objects.get().cancel_asked_at)
    sandbox.outcome = RunOutcome(RunStatus.CANCELLED)
    held_up.set()
    wait_for(lambda: Invocation.objects.get().is_final)
    assert Invocation.objects.get().state == "cancelled"


@pytest.mark.req("SVC-1")
def test_many_callers_wait_without_a_thread_each(
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    held_up: threading.Event,
) -> None:
    """The server of this module has two threads."""
    enable()
    enable("raises")
    grant()

    def made() -> int:
        try:
            return Invocation.objects.filter(tool=ECHO).count()
        finally:
            release_connection()

    async def calls(client: Client) -> list[Any]:
        waiting = [asyncio.ensure_future(client.call_tool(ECHO, {"text": str(number)})) for number in range(CALLERS)]
        while await asyncio.to_thread(made) < CALLERS:
            await asyncio.sleep(0.05)
        assert (await client.call_tool("sample.tools.raises", {"text": 1})).is_error  # refused while they all wait
        held_up.set()
        return await asyncio.gather(*waiting)

    assert [each.is_error for each in talk(url, caller.key, calls)] == [False] * CALLERS


@pytest.fixture
def needs_consent(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    consent, sentence = {"validity_seconds": 600}, "Write something down[: {text}]"
    writer(enable, data_classes=["payment"], consent=consent, call_sentence=sentence)
    grant()


@pytest.mark.req("TOOLS-19")
def test_a_client_that_shows_addresses_lets_its_user_decide_and_calls_again(
    url: str, caller: Caller, operator: Person, needs_consent: None, sandbox: ScriptedSandbox
) -> None:
    shown: list[Any] = []

    def approve() -> None:
        try:
            consents.approve_consent(consent_id=Consent.objects.get().pk, reason="I know it.", by=operator.by)
        finally:
            release_connection()

    async def ask(_: Any, params: Any) -> ElicitResult:
        shown.append(params)
        await asyncio.to_thread(approve)
        return ElicitResult(action="accept")

    result = talk(url, caller.key, called(WRITE, {"text": "x"}), elicitation_callback=ask)

    assert result.structured_content == {"text": "scripted"}
    assert [(each.mode, each.url.rpartition("/")[2]) for each in shown] == [("url", Consent.objects.get().wire_id)]
    assert shown[0].message.startswith(f"{WRITE} needs the consent of a person. Open the page, ")
    assert shown[0].message.endswith(": Write something down: “x”")
    refused, made = Invocation.objects.order_by("id")
    assert (refused.state, made.state) == ("denied", "succeeded")
    assert [kind for kind in kinds_of(refused) if kind in PAIR] == PAIR


@pytest.mark.req("TOOLS-19")
def test_without_that_the_model_is_told_whom_to_show_what(url: str, caller: Caller, needs_consent: None) -> None:
    async def decline(_: Any, __: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    told = talk(url, caller.key, called(WRITE, {"text": "x"}))
    declined = talk(url, caller.key, called(WRITE, {"text": "x"}), elicitation_callback=decline)
    older = Wire.of(url, caller, modern=False, capabilities=BY_URL)
    older.initialize()
    refused = older.call(WRITE, {"text": "x"})

    consent = Consent.objects.get()  # the three are one request
    assert [error_of(each)["reason"] for each in (told, declined)] == ["POLICY.CONSENT_REQUIRED"] * 2
    assert error_of(told)["details"]["consent"] == consent.wire_id
    assert consent.wire_id in error_of(told)["details"]["url"]
    assert refused.code == -32042
    (wanted,) = refused.message["error"]["data"]["elicitations"]
    assert (wanted["mode"], wanted["elicitationId"]) == ("url", consent.wire_id)
    assert Fact.objects.filter(kind="consent.requested").count() == 1


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize(
    ("action", "decided"),
    [("accept", True), ("accept", False), ("decline", False), ("decline", True), ("cancel", True), ("nonsense", True)],
)
def test_an_older_client_with_forms_alone_shows_the_address_in_one_and_the_hub_looks_again_when_it_is_accepted(
    action: str,
    decided: bool,
    url: str,
    caller: Caller,
    operator: Person,
    needs_consent: None,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waker = InProcessWaker()
    monkeypatch.setattr("invocations.mcp.consent_elicitation.get_waker", lambda: waker)
    older = Wire.of(url, caller, modern=False, capabilities=BY_FORM)
    older.initialize()

    with older.stream("tools/call", {"name": WRITE, "arguments": {"text": "x"}}) as messages:
        asked = next(messages)
        consent = Consent.objects.get()
        if decided:
            consents.approve_consent(consent_id=consent.pk, reason="I know it.", by=operator.by)
        release_connection()
        told = older.answer(asked["id"], {"action": action})
        (answer,) = messages

    assert (asked["method"], told.status) == ("elicitation/create", 202)
    assert consent.wire_id in asked["params"]["message"]
    assert asked["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    result = answer["result"]
    if decided and action == "accept":
        assert result["structuredContent"] == {"text": "scripted"}
    else:
        assert sandbox.calls == []
        assert json.loads(result["content"][0]["text"])["error"]["reason"] == "POLICY.CONSENT_REQUIRED"
    assert Fact.objects.filter(kind="consent.requested").count() == 1


@pytest.mark.req("TOOLS-19")
def test_a_newer_client_with_forms_alone_gets_one_in_place_of_a_result(
    url: str, caller: Caller, operator: Person, needs_consent: None, sandbox: ScriptedSandbox
) -> None:
    wire = Wire.of(url, caller, capabilities=BY_FORM)

    shown = wire.call(WRITE, {"text": "x"}).result
    consent = Consent.objects.get()
    consents.approve_consent(consent_id=consent.pk, reason="I know it.", by=operator.by)
    release_connection()
    declined = wire.call(WRITE, {"text": "x"}, inputResponses={"consent": {"action": "decline"}}).result
    assert json.loads(declined["content"][0]["text"])["error"]["reason"] == "POLICY.CONSENT_REQUIRED"
    assert sandbox.calls == []
    made = wire.call(WRITE, {"text": "x"}, inputResponses={"consent": {"action": "accept"}}).result

    assert shown["resultType"] == "input_required"
    (request,) = shown["inputRequests"].values()
    assert (request["method"], request["params"]["mode"]) == ("elicitation/create", "form")
    assert consent.wire_id in request["params"]["message"]
    assert request["params"]["message"].endswith(": Write something down: “x”")
    assert made["structuredContent"] == {"text": "scripted"}


@pytest.mark.req("TOOLS-32", "TOOLS-17")
def test_a_tool_that_takes_long_is_a_task_for_a_client_that_knows_them_and_waited_for_by_others(
    url: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
    held_up: threading.Event,
) -> None:
    enable(**{"async": True})
    enable("raises")
    grant()
    wire, plain = Wire.of(url, caller, capabilities=WITH_TASKS), Wire.of(url, caller)

    task = wire.call(ECHO, {}).result
    wait_for(running)
    at_work = wire.ask("tasks/get", {"taskId": task["taskId"]}).result
    held_up.set()
    wait_for(lambda: Invocation.objects.get().is_final)
    done = wire.ask("tasks/get", {"taskId": task["taskId"]}).result

    assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", None)
    assert task["taskId"] == Invocation.objects.get().wire_id
    assert (at_work["status"], at_work["resultType"]) == ("working", "complete")
    assert "result" not in at_work
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"] == {"text": "scripted"}
    assert plain.call(ECHO, {}).result["structuredContent"] == {"text": "scripted"}
    assert [plain.ask(f"tasks/{what}", {"taskId": task["taskId"]}).code for what in ("get", "cancel", "update")] == [
        -32021
    ] * 3
    assert plain.ask("server/discover").result["capabilities"]["extensions"] == {TASKS: {}}
    assert wire.call("sample.tools.raises", {}).result["resultType"] == "complete"


@pytest.mark.req("TOOLS-32", "TOOLS-17")
def test_a_task_is_cancelled_as_often_as_its_client_likes_and_is_nobody_elses(
    url: str,
    caller: Caller,
    foreign_caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    sandbox: ScriptedSandbox,
    held_up: threading.Event,
) -> None:
    enable(**{"async": True})
    grant()
    sandbox.outcome = RunOutcome(RunStatus.CANCELLED)
    wire, foreign = (Wire.of(url, each, capabilities=WITH_TASKS) for each in (caller, foreign_caller))
    task = {"taskId": wire.call(ECHO, {}).result["taskId"]}
    wait_for(running)

    assert [foreign.ask(f"tasks/{what}", task).code for what in ("get", "cancel", "update")] == [-32602] * 3
    assert wire.ask("tasks/get", {"taskId": "nonsense"}).code == -32602
    assert Invocation.objects.get().cancel_asked_at is None
    assert wire.ask("tasks/cancel", task).result["resultType"] == "complete"
    held_up.set()
    wait_for(lambda: Invocation.objects.get().is_final)
    assert wire.ask("tasks/get", task).result["status"] == "cancelled"
    assert set(wire.ask("tasks/cancel", task).result) <= {"resultType", "_meta"}


@pytest.mark.req("TOOLS-19", "TOOLS-32")
def test_a_call_that_waits_for_a_person_is_a_task_that_says_where_they_decide(
    url: str, caller: Caller, operator: Person, needs_consent: None, sandbox: ScriptedSandbox, bell: Bell
) -> None:
    wire = Wire.of(url, caller, capabilities=WITH_TASKS | BY_URL)
    silent = Wire.of(url, caller, capabilities=WITH_TASKS)
    task = {"taskId": wire.call(WRITE, {"text": "x"}).result["taskId"]}

    held, unshown = wire.ask("tasks/get", task).result, silent.ask("tasks/get", task).result
    assert wire.ask("tasks/update", task | {"inputResponses": {"consent": {"action": "accept"}}}).result
    consents.approve_consent(consent_id=Consent.objects.get().pk, reason="I know it.", by=operator.by)
    wait_for(lambda: Invocation.objects.get().is_final)

    assert held["status"] == "input_required"
    assert held["inputRequests"]["consent"]["params"]["url"].endswith(Consent.objects.get().wire_id)
    assert unshown["status"] == "working"
    assert Consent.objects.get().wire_id in unshown["statusMessage"]
    assert wire.ask("tasks/get", task).result["result"]["structuredContent"] == {"text": "scripted"}
    assert [kind for kind in kinds_of(Invocation.objects.get()) if kind in PAIR] == PAIR


@pytest.mark.req("TOOLS-32", "TOOLS-17")
def test_an_older_client_asks_for_a_task_and_waits_for_its_result(
    url: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], sandbox: ScriptedSandbox
) -> None:
    enable()
    grant()
    wire = Wire.of(url, caller, modern=False)
    said = wire.initialize()["capabilities"]

    task = wire.call(ECHO, {}, task={"ttl": 60_000}).result["task"]
    result = wire.ask("tasks/result", {"taskId": task["taskId"]}).result
    refused = wire.call(ECHO, {"text": 1}, task={}).result["task"]

    assert said["tasks"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert wire.ask("tools/list").result["tools"][0]["execution"] == {"taskSupport": "optional"}
    assert result["structuredContent"] == {"text": "scripted"}
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}
    assert wire.ask("tasks/get", {"taskId": task["taskId"]}).result["status"] == "completed"
    assert refused["status"] == "failed"
    assert wire.ask("tasks/result", {"taskId": refused["taskId"]}).result["isError"]
    listed = wire.ask("tasks/list").result["tasks"]
    assert [each["taskId"] for each in listed] == [refused["taskId"], task["taskId"]]
    assert wire.ask("tasks/cancel", {"taskId": task["taskId"]}).code == -32602
    assert wire.ask("tasks/update", {"taskId": task["taskId"]}).code == -32601
    assert Wire.of(url, caller, capabilities=WITH_TASKS).ask("tasks/list").code == -32601
