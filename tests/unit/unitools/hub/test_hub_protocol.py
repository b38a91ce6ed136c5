"""Hub protocol: what does a client of a hub send, and what does it do about each answer? No network: the steps are answered by
hand.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from kernel.problems import PlatformCode
from unitools.hub import errors, protocol
from unitools.hub.errors import NotUnderstood, Refused, StillRunning, Unreachable, build_refusal
from unitools.hub.protocol import (
    CallSpec,
    ConnectionLost,
    HubRequest,
    Pause,
    Reply,
    RetryLimits,
    StreamClose,
    StreamRead,
    StreamRequest,
)

if TYPE_CHECKING:
    from collections.abc import Generator

CALL = CallSpec({"request_id": "request-1", "arguments": {"a": 1}}, "key-1")
ID = "inv_1"


@dataclass
class Scene:
    """Carries out a plan with answers written down beforehand. Time passes only while it pauses."""

    answers: list[Any]
    sent: list[HubRequest] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    now: float = 0.0
    closed: int = 0

    def patience(self, timeout_s: float = 60, attempts: int = 4) -> RetryLimits:
        return RetryLimits(timeout_s, attempts, lambda: self.now)

    def play(self, plan: Generator[protocol.Step, Any, Any]) -> Any:
        try:
            step = next(plan)
            while True:
                came = self._do(step)
                step = plan.throw(came) if isinstance(came, ConnectionLost) else plan.send(came)
        except StopIteration as done:
            return done.value

    def _do(self, step: protocol.Step) -> Any:
        match step:
            case Pause():
                self.pauses.append(step.seconds)
                self.now += step.seconds
                return None
            case StreamClose():
                self.closed += 1
                return None
            case HubRequest():
                self.sent.append(step)
        return self.answers.pop(0)


def answer(status: int = 200, **changes: Any) -> Reply:
    headers = changes.pop("headers", {})
    call = {"call_id": ID, "tool": "a.b.c", "version": "1.0.0", "state": "succeeded", "status": "ok"}
    body = {"ok": True, "data": {"x": 1}, "warnings": [], "error": None, "call": call | changes.pop("call", {})}
    return Reply(status, headers, json.dumps(body | changes).encode())


def refused(status: int, reason: str, retryable: str, headers: dict[str, str] | None = None, **details: Any) -> Reply:
    error = {"code": "CONFLICT", "reason": reason, "message": "No.", "retryable": retryable, "details": details}
    return answer(status, ok=False, data=None, error=error, headers=headers or {})


def pending(state: str = "running") -> Reply:
    return answer(202, data=None, call={"state": state, "status": "pending"}, headers={"retry-after": "1"})


def test_every_code_of_the_hub_has_a_class_of_its_own() -> None:
    assert set(errors.BY_CODE) == set(map(str, PlatformCode))


def test_a_code_that_this_version_does_not_know_is_still_a_refusal() -> None:
    problem = build_refusal({"code": "NEW_ONE", "message": "No.", "reason": "A.B", "remedy": "Do that."})

    assert type(problem) is Refused
    assert (problem.code, problem.retryable, str(problem)) == ("NEW_ONE", "no", "A.B: No. Do that.")


@pytest.mark.parametrize("retryable", ["yes", "same_key"])
def test_what_may_be_sent_again_is_sent_after_the_time_that_the_hub_names_with_the_same_key_and_body(
    retryable: str,
) -> None:
    scene = Scene([refused(503, "QUEUE.UNAVAILABLE", retryable, {"retry-after": "7"}), answer()])

    got = scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience()))

    assert (got.data, scene.pauses) == ({"x": 1}, [7.0])
    first, second = scene.sent
    assert first.body == second.body
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == '"key-1"'


@pytest.mark.parametrize("retryable", ["no", "after_action", "a word of later"])
def test_what_sending_again_cannot_change_is_sent_once(retryable: str) -> None:
    scene = Scene([refused(403, "AUTH.NO_GRANT", retryable)])

    with pytest.raises(errors.Conflict) as raised:
        scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience()))

    assert (raised.value.reason, raised.value.status, raised.value.call_id) == ("AUTH.NO_GRANT", 403, ID)
    assert len(scene.sent) == 1


@pytest.mark.parametrize(
    "said",
    [
        refused(502, "DOMAIN.UPSTREAM_ERROR", "yes"),
        refused(503, "SANDBOX.START_FAILED", "yes", {"idempotency-replayed": "true"}),
    ],
    ids=["the tool has run", "the hub keeps this answer"],
)
def test_a_call_that_has_ended_is_not_sent_again_although_a_new_one_might_help(said: Reply) -> None:
    scene = Scene([said])

    with pytest.raises(Refused):
        scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience()))

    assert len(scene.sent) == 1


def test_a_connection_that_broke_off_is_tried_again_with_the_same_key() -> None:
    scene = Scene([ConnectionLost("reset", sent=True), ConnectionLost("refused", sent=False), answer()])

    assert scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience())).call_id == ID
    assert {send.headers["Idempotency-Key"] for send in scene.sent} == {'"key-1"'}
    assert len(scene.sent) == 3


def test_it_gives_up_after_so_many_attempts_and_says_that_the_request_may_have_arrived() -> None:
    scene = Scene([ConnectionLost("reset", sent=True)] * 4)

    with pytest.raises(Unreachable) as raised:
        scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience(attempts=4)))

    assert raised.value.may_have_arrived
    assert len(scene.pauses) == 3


def test_it_does_not_wait_longer_than_it_may_for_a_hub_that_wants_a_later_try() -> None:
    scene = Scene([refused(429, "QUOTA.RATE_LIMITED", "yes", {"retry-after": "3600"})])

    with pytest.raises(Refused) as raised:
        scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience(timeout_s=60)))

    assert (raised.value.retry_after_s, scene.pauses) == (3600.0, [])


def test_something_that_is_no_hub_is_said_to_be_none() -> None:
    scene = Scene([Reply(200, {}, b"<html>Welcome</html>")])

    with pytest.raises(NotUnderstood, match="address of the hub"):
        scene.play(protocol.preflight_call("a.b.c", {}, scene.patience()))


def test_a_proxy_before_a_hub_that_is_away_is_asked_again() -> None:
    scene = Scene([Reply(502, {}, b"<html>Bad gateway</html>"), answer()])

    assert scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience())).call_id == ID


def test_a_second_request_with_the_key_of_a_call_that_runs_gets_the_answer_of_that_call() -> None:
    busy = refused(409, "IDEMPOTENCY.IN_PROGRESS", "no", first_call=ID)
    scene = Scene([busy, Reply(429, {}), answer()])

    assert scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience())).call_id == ID
    assert [send.path for send in scene.sent[1:]] == [
        f"/api/v1/invocations/{ID}/events",
        f"/api/v1/invocations/{ID}",
    ]


def test_a_call_that_takes_long_is_followed_and_goes_on_after_the_stream_broke_off() -> None:
    heard: list[tuple[str, Any]] = []
    scene = Scene(
        [
            pending(),
            Reply(200, {}),
            "retry: 1000\n\nid: 1\nevent: progress\nda",
            'ta: {"fraction": 0.5}\n\n: here\n\n',
            ConnectionLost("reset", sent=True),
            Reply(200, {}),
            'id: 2\nevent: log\r\ndata: {"line": "b"}\r\n\r\n',
            "id: 3\nevent: end\ndata: {}\n\n",
            answer(),
        ]
    )

    got = scene.play(
        protocol.invoke_tool(
            "a.b.c", CALL, scene.patience(), on_event=lambda each: heard.append((each.kind, each.data))
        )
    )

    assert got.data == {"x": 1}
    assert heard == [("progress", {"fraction": 0.5}), ("log", {"line": "b"})]
    opened = [send for send in scene.sent if isinstance(send, StreamRequest)]
    assert [send.headers.get("Last-Event-ID") for send in opened] == [None, "1"]
    assert scene.closed == 2


def test_where_there_is_no_stream_it_asks_as_often_as_the_hub_says() -> None:
    scene = Scene([pending(), Reply(404, {}), pending(), pending(), answer()])

    assert scene.play(protocol.invoke_tool("a.b.c", CALL, scene.patience())).call_id == ID
    assert scene.pauses == [1.0, 1.0]


def test_when_the_time_is_over_the_call_goes_on_and_can_be_found_again() -> None:
    scene = Scene([Reply(404, {}), *[pending("held")] * 5])

    with pytest.raises(StillRunning) as raised:
        scene.play(protocol.wait_for_call(ID, scene.patience(timeout_s=3)))

    assert (raised.value.call_id, raised.value.state) == (ID, "held")
    assert isinstance(raised.value, TimeoutError)


def test_a_call_that_failed_while_it_was_waited_for_raises_what_it_failed_with_and_is_read_once() -> None:
    failed = answer(200, ok=False, error={"code": "TIMEOUT", "reason": "QUEUE.TIMEOUT", "retryable": "yes"})
    scene = Scene([Reply(404, {}), failed])

    with pytest.raises(errors.TimedOut):
        scene.play(protocol.wait_for_call(ID, scene.patience()))


@pytest.mark.parametrize("odd", ["", "inv_1/../../tools", "https://elsewhere", "cns_1"])
def test_only_the_id_of_a_call_is_asked_for(odd: str) -> None:
    with pytest.raises(ValueError, match="inv_"):
        next(protocol.wait_for_call(odd, Scene([]).patience()))


def test_a_tool_s_name_cannot_lead_elsewhere() -> None:
    scene = Scene([answer()])

    scene.play(protocol.preflight_call("../agents?x=", {}, scene.patience()))

    assert scene.sent[0].path == "/api/v1/tools/..%2Fagents%3Fx%3D/preflight"


def test_a_list_of_tools_that_has_not_changed_is_the_one_that_was_found_before() -> None:
    listed = answer(data={"tools": [{"name": "a"}]}, warnings=["few"], headers={"etag": '"1"'})
    scene = Scene([listed, Reply(304, {})])

    first = scene.play(protocol.discover_tools({"dialect": "openai", "q": "a b"}, scene.patience()))
    second = scene.play(protocol.discover_tools({"dialect": "openai", "q": "a b"}, scene.patience(), first))

    assert (first.payload, first.warnings, second) == ([{"name": "a"}], ("few",), first)
    assert [send.headers.get("If-None-Match") for send in scene.sent] == [None, '"1"']
    assert scene.sent[0].path == "/api/v1/tools?dialect=openai&q=a+b"


def test_what_a_model_proposed_is_told_call_by_call_and_nothing_is_raised() -> None:
    error = {"code": "FORBIDDEN", "reason": "AUTH.NO_GRANT", "message": "No."}
    calls = [
        {"id": "1", "name": "a.b.c", "status": "ok", "answer": {"data": 7, "call": {"call_id": ID, "status": "ok"}}},
        {"id": "2", "name": "a.b.d", "status": "denied", "answer": {"error": error, "call": None}},
        {"id": "3", "name": "a.b.e", "status": "ok", "answer": {"call": {"call_id": "inv_2", "status": "pending"}}},
    ]
    scene = Scene([answer(data={"dialect": "openai", "messages": ["m"], "calls": calls})])

    got = scene.play(protocol.dispatch_response(CALL, scene.patience()))

    assert (got.dialect, got.messages) == ("openai", ["m"])
    assert [(each.tool, each.status, each.data, each.is_pending) for each in got.calls] == [
        ("a.b.c", "ok", 7, False),
        ("a.b.d", "denied", None, False),
        ("a.b.e", "ok", None, True),
    ]
    assert isinstance(got.calls[1].problem, errors.Forbidden)


def test_an_event_of_any_length_is_refused() -> None:
    scene = Scene([Reply(200, {}), "data: " + "x" * 5_000_000])

    with pytest.raises(ValueError, match="too long"):
        scene.play(protocol.wait_for_call(ID, scene.patience()))


def test_the_next_piece_is_asked_for_only_while_there_is_time() -> None:
    scene = Scene([Reply(200, {}), ": here\n\n", None, pending()])
    plan = protocol.wait_for_call(ID, scene.patience(timeout_s=0.4))

    with pytest.raises(StillRunning):
        scene.play(plan)

    assert not any(isinstance(send, StreamRead) for send in scene.sent)


@pytest.mark.parametrize(
    ("send", "times"),
    [
        (HubRequest("POST", "/api/v1/grants", {}), 1),
        (HubRequest("PATCH", "/api/v1/grants", {}), 1),
        (HubRequest("POST", "/api/v1/grants", {}, {"Idempotency-Key": "k"}), 2),
        (HubRequest("POST", "/api/v1/capsules", b"", safe=True), 2),
        (HubRequest("GET", "/api/v1/grants"), 2),
        (HubRequest("GET", "/api/v1/grants", safe=False), 1),
    ],
)
@pytest.mark.parametrize("lost", [ConnectionLost("gone", sent=True), Reply(502, {}, b"bad gateway")])
def test_what_may_have_had_an_effect_is_not_sent_twice(send: HubRequest, times: int, lost: Any) -> None:
    scene = Scene([lost, answer()])

    with suppress(Unreachable, NotUnderstood):
        scene.play(protocol.request_envelope(send, scene.patience()))

    assert len(scene.sent) == times
