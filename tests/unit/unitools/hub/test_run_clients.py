"""Run clients: do both clients begin a run once, follow it over broken connections, and tell what it came to, whatever that is?"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.scripted_hub import DROP, both, refusal, scripted
from unitools.hub import Event, NotUnderstood, StillRunning
from unitools.hub.errors import Conflict, Refused

RUN = "run_1"
STEPS = [
    {"turn": 1, "role": "model", "tool": "model.a.main", "state": "succeeded", "reason": None, "cost_micros": 1500,
     "call": {"call_id": "inv_1", "url": "/api/v1/invocations/inv_1"}},
    {"turn": 1, "role": "tool", "tool": "a.b.c", "state": "failed", "reason": "TOOL.UNKNOWN", "cost_micros": None, "call": None},
]  # fmt: skip
GOES_ON: dict[str, Any] = {
    "run_id": RUN,
    "state": "running",
    "stop_reason": None,
    "waits_for_a_person": False,
    "steps": [],
}
ENDED = GOES_ON | {
    "state": "succeeded",
    "stop_reason": "finished",
    "model": "model.a.main",
    "steps": STEPS,
    "cost_micros": 1500,
    "unpriced_calls": 1,
    "answer": {"text": "Done.", "finish_reason": "stop", "model": "m-1"},
}
STREAM = {"Content-Type": "text/event-stream"}


def envelope(data: Any, problem: Any = None) -> dict[str, Any]:
    return {"ok": problem is None, "data": data, "warnings": [], "error": problem}


def events(*given: tuple[str, str, Any]) -> bytes:
    texts = [(f"id: {id}\n" if id else "") + f"event: {kind}\ndata: {json.dumps(data)}\n\n" for id, kind, data in given]
    return "".join(texts).encode()


ACCEPTED: Any = (202, {}, envelope(GOES_ON))
WHOLE: Any = (200, {}, envelope(ENDED))
DELTA = {"turn": 1, "step": 0, "offset": 0, "text": "Do"}


@pytest.mark.req("RUN-1")
@both
def test_a_run_is_begun_once_and_followed_over_a_broken_connection(using: Any) -> None:
    heard: list[Event] = []
    first = events(("1", "model.asked", {"turn": 1}), ("", "model.delta", DELTA))
    rest = events(("2", "model.answered", {"text": "Done."}), ("over", "end", envelope(ENDED)))
    with scripted(DROP, ACCEPTED, (200, STREAM, first), (200, STREAM, rest), WHOLE) as server:
        answer = using(
            server.url,
            lambda hub: hub.run(
                "main",
                "Order it.",
                tools="group:a",
                max_tokens=50,
                limits={"steps": 3},
                on_consent="hold",
                purpose="to order",
                on_event=heard.append,
                envelope={"user_id": "ann"},
            ),
        )

    assert (answer.run_id, answer.text, answer.stop_reason, answer.is_finished) == (RUN, "Done.", "finished", True)
    assert (answer.cost, answer.unpriced_calls) == (Decimal("0.0015"), 1)
    assert [(each.role, each.tool, each.reason, each.call_id) for each in answer.steps] == [
        ("model", "model.a.main", "", "inv_1"),
        ("tool", "a.b.c", "TOOL.UNKNOWN", ""),
    ]
    assert [(each.kind, each.data.get("text")) for each in heard] == [
        ("model.asked", None),
        ("model.delta", "Do"),
        ("model.answered", "Done."),
    ]
    lost, begun, opened, resumed, read = server.heard
    assert lost.headers["idempotency-key"] == begun.headers["idempotency-key"]
    said = json.loads(begun.body)
    assert said | {"request_id": "", "actor": {}} == {
        "request_id": "",
        "actor": {},
        "model": "main",
        "arguments": {
            "messages": [{"role": "user", "segments": [{"type": "text", "text": "Order it."}]}],
            "tools": ["group:a"],
            "max_tokens": 50,
        },
        "limits": {"steps": 3},
        "on_consent": "hold",
        "purpose": "to order",
        "user_id": "ann",
    }
    assert [each.path for each in (begun, opened, read)] == [
        "/api/v1/runs",
        f"/api/v1/runs/{RUN}/events",
        f"/api/v1/runs/{RUN}",
    ]
    assert (opened.headers.get("last-event-id"), resumed.headers["last-event-id"]) == (None, "1")


@pytest.mark.req("RUN-1")
@both
def test_a_run_that_has_come_to_no_answer_is_told_and_not_raised(using: Any) -> None:
    problem = {"code": "CONFLICT", "reason": "RUN.STOPPED", "message": "The run ended with `money`.", "details": {}}
    stopped = ENDED | {"state": "stopped", "stop_reason": "money", "answer": {"text": "So far."}}
    with scripted(ACCEPTED, (404, {}, b""), (200, {}, envelope(stopped, problem))) as server:
        answer = using(server.url, lambda hub: hub.run("main", "Order it."))

    assert (answer.state, answer.stop_reason, answer.text, answer.is_finished) == ("stopped", "money", "So far.", False)
    assert isinstance(answer.problem, Conflict)
    assert answer.problem.reason == "RUN.STOPPED"


@pytest.mark.req("RUN-1")
@both
def test_a_run_that_was_over_before_is_read_at_once(using: Any) -> None:
    with scripted((200, {"Idempotency-Replayed": "true"}, envelope(ENDED))) as server:
        answer = using(server.url, lambda hub: hub.run("main", "Order it.", key="k-1"))

    assert (answer.text, answer.replayed) == ("Done.", True)
    assert server.heard[0].headers["idempotency-key"] == '"k-1"'


@pytest.mark.req("RUN-1")
@both
def test_what_is_refused_is_raised_as_of_any_call(using: Any) -> None:
    with scripted((403, {}, refusal("AUTH.FORBIDDEN", "no"))) as server, pytest.raises(Refused) as refused:
        using(server.url, lambda hub: hub.run("main", "Order it."))
    with scripted((404, {}, b""), (200, {}, envelope({"x": 1}))) as server, pytest.raises(NotUnderstood):
        using(server.url, lambda hub: hub.wait_for_run(RUN))
    with scripted() as server, pytest.raises(ValueError, match="begins with run_"):
        using(server.url, lambda hub: hub.cancel_run("../consents"))

    assert refused.value.reason == "AUTH.FORBIDDEN"


@pytest.mark.req("RUN-1")
@both
def test_a_run_that_waits_for_a_person_goes_on_and_is_found_again(using: Any) -> None:
    held = (202, {"Retry-After": "20"}, envelope(GOES_ON | {"waits_for_a_person": True}))
    with scripted(held, (404, {}, b""), held) as server, pytest.raises(StillRunning) as waiting:
        using(server.url, lambda hub: hub.run("main", "Order it.", timeout_s=10))
    assert (waiting.value.call_id, waiting.value.state) == (RUN, "held")

    with scripted((404, {}, b""), WHOLE) as server:
        assert using(server.url, lambda hub: hub.wait_for_run(RUN)).text == "Done."
    cancelled: Any = (200, {}, envelope(ENDED | {"state": "cancelled"}, {"code": "CONFLICT", "message": "Cancelled."}))
    with scripted(cancelled) as server:
        assert using(server.url, lambda hub: hub.cancel_run(RUN)) == "cancelled"
    assert (server.heard[0].method, server.heard[0].path) == ("DELETE", f"/api/v1/runs/{RUN}")
