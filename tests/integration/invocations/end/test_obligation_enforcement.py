"""Obligation enforcement: what a policy obliges the hub to do to an output is done before anybody gets it or it is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence import services as evidence
from evidence.models import Fact, Snapshot, SnapshotKind
from invocations.models import Invocation
from invocations.queue import outbox
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
EMAIL, CARD, PHONE = "john@example.com", "4111 1111 1111 1111", "13812345678"
OUTPUT_SCHEMA = {
    "type": "object",
    "required": ["to", "total"],
    "properties": {
        "to": {"type": "string", "format": "email"},
        "total": {"type": "integer"},
        "note": {"type": "string"},
    },
    "additionalProperties": False,
}


@pytest.fixture
def call(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """``call(outcome, obligation, …)``: make a call under obligations, of a tool of which the run comes out like that."""
    enable(side_effect="None", output_schema=OUTPUT_SCHEMA)
    grant()

    def make(outcome: RunOutcome, *obligations: dict[str, Any]) -> Any:
        def send(invocation_id: UUID, work_class: str) -> None:
            Invocation.objects.filter(pk=invocation_id).update(obligations=list(obligations))
            bell.ring(invocation_id, work_class)

        monkeypatch.setattr(outbox, "send_wake_up", send)
        sandbox.outcome = outcome
        return caller.invoke(ECHO, {})

    return make


def ok(value: Any, **rest: Any) -> RunOutcome:
    return RunOutcome(RunStatus.OK, value=value, report=rest.pop("report", {}), **rest)


def end_of(answer: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        bytes(Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended").leaf)
    )["data"]
    return data


def kept_of(answer: Any) -> str:
    """All that the hub has stored of the values of a call."""
    rows = Snapshot.objects.filter(invocation_id=row_of(answer).pk)
    return str([evidence.open_values(row) for row in rows])


@pytest.mark.req("TOOLS-25", "SPEC-10")
def test_the_caller_and_the_evidence_get_the_masked_output_and_never_the_raw_one(call: Callable[..., Any]) -> None:
    value = {"to": EMAIL, "total": 3, "note": f"call {PHONE}", "post_execution_plan": {"then": f"mail {EMAIL}"}}
    outcome = ok(value, report={"warnings": [f"{EMAIL} is new"]}, stdout=f"sent to {EMAIL}")

    answer = call(outcome, {"action": "mask", "pointer": "/to"}, {"action": "redact", "detector": "all"})

    assert answer.status_code == 200, answer.json()
    body = answer.json()
    assert body["data"] == {"to": "j***@e***.com", "total": 3, "note": "call [redacted:phone]"}
    assert body["warnings"] == ["[redacted:email] is new"]
    assert body["call"]["post_execution_plan"] == {"then": "mail [redacted:email]"}
    applied = [
        {"action": "mask", "pointer": "/to", "count": 1},
        {"action": "redact", "detector": "email", "count": 1},
        {"action": "redact", "detector": "phone", "count": 1},
    ]
    assert body["call"]["obligations"] == applied
    end = end_of(answer)
    assert end["obligations"] == applied
    assert end["output"]["commit"] != end["raw_output"]["commit"]
    assert end["raw_output"]["commit"].startswith("hmac-sha256:")
    for raw in (EMAIL, PHONE):
        assert raw not in kept_of(answer)
        assert raw not in answer.content.decode()


@pytest.mark.req("TOOLS-25")
def test_an_answer_that_is_read_again_is_the_masked_one(call: Callable[..., Any], caller: Caller) -> None:
    answer = call(ok({"to": EMAIL, "total": 3}), {"action": "mask", "detector": "email"})

    again = caller.get(f"/invocations/{answer.json()['call']['call_id']}")

    assert again.json()["data"] == {"to": "j***@e***.com", "total": 3} == answer.json()["data"]
    assert again.json()["call"]["obligations"] == answer.json()["call"]["obligations"]


@pytest.mark.req("TOOLS-25")
@pytest.mark.parametrize(
    "obligation",
    [
        {"action": "mask", "pointer": "/nowhere"},
        {"action": "redact", "pointer": "/total"},
        {"action": "watermark"},
        {"action": "redact", "pointer": ""},
    ],
)
def test_an_output_that_cannot_be_made_safe_is_withheld_and_the_call_has_failed(
    obligation: dict[str, Any], call: Callable[..., Any]
) -> None:
    answer = call(ok({"to": EMAIL, "total": 3}), obligation)

    body = assert_problem(answer, 500, "POLICY.OBLIGATION_FAILED")
    assert body["call"]["state"] == "failed"
    assert kinds_of(row_of(answer)) == PAIR
    end = end_of(answer)
    assert end["obligations"][0]["failed"] is True
    assert "output" not in end
    assert not Snapshot.objects.filter(invocation_id=row_of(answer).pk, kind=SnapshotKind.OUTPUT).exists()
    assert EMAIL not in kept_of(answer) + answer.content.decode()


@pytest.mark.req("TOOLS-25")
def test_where_the_policy_says_degrade_the_call_has_succeeded_and_gives_no_data(call: Callable[..., Any]) -> None:
    answer = call(ok({"to": EMAIL, "total": 3}), {"action": "watermark", "on_failure": "degrade"})

    assert answer.status_code == 200
    body = answer.json()
    assert (body["ok"], body["data"], body["call"]["state"]) == (True, None, "succeeded")
    assert "withheld" in body["warnings"][-1]
    assert body["call"]["obligations"] == [{"action": "watermark", "failed": True}]
    assert EMAIL not in kept_of(answer) + answer.content.decode()


@pytest.mark.req("TOOLS-25")
def test_what_a_tool_says_when_it_refuses_goes_through_the_detectors(call: Callable[..., Any]) -> None:
    outcome = RunOutcome(
        RunStatus.DOMAIN_ERROR,
        error_code="OUT_OF_STOCK",
        error_message=f"{EMAIL} took the last one",
        error_details={"by": EMAIL, "left": 0},
        stderr=f"card {CARD}",
    )

    answer = call(outcome, {"action": "mask", "detector": "all"}, {"action": "mask", "pointer": "/to"})

    error = answer.json()["error"]
    assert error["message"] == "j***@e***.com took the last one"
    assert error["details"] == {"by": "j***@e***.com", "left": 0}
    assert EMAIL not in kept_of(answer)
    assert CARD not in kept_of(answer)


def test_without_obligations_nothing_is_changed_and_nothing_more_is_said(call: Callable[..., Any]) -> None:
    answer = call(ok({"to": EMAIL, "total": 3}))

    assert answer.json()["data"] == {"to": EMAIL, "total": 3}
    assert answer.json()["call"]["obligations"] == []
    assert not {"obligations", "raw_output"} & set(end_of(answer))
