"""An output that does not match its schema is repaired where the manifest allows it, and everybody is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.models import Fact
from invocations.models import Invocation
from invocations.queue import outbox
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.value_keys import find_values_key
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
SCHEMA = {
    "type": "object",
    "required": ["to", "total"],
    "properties": {"to": {"type": "string"}, "total": {"type": "integer"}},
    "additionalProperties": False,
}
WRONG = {"to": "john@example.com", "total": "12", "phone": "13812345678"}


@pytest.fixture
def call(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Callable[..., Any]:
    """``call(value, *repairs)``: make a call of a tool that returns the value and whose manifest allows the repairs."""

    def make(value: Any, *repairs: str) -> Any:
        enable(side_effect="None", output_schema=SCHEMA, output_repair=list(repairs))
        grant()
        sandbox.outcome = RunOutcome(RunStatus.OK, value=value)
        return caller.invoke(ECHO, {})

    return make


def end_of(answer: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row_of(answer).pk, kind="invocation.ended").leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data


@pytest.mark.req("TOOLS-23")
def test_a_repaired_output_is_delivered_with_a_warning_and_a_record(call: Callable[..., Any]) -> None:
    answer = call(WRONG, "coerce", "drop_unknown")

    assert answer.json()["data"] == {"to": "john@example.com", "total": 12}
    (warning,) = answer.json()["warnings"]
    assert "coerce at /total" in warning
    assert "drop_unknown at /" in warning
    end = end_of(answer)
    assert end["repairs"] == [{"kind": "coerce", "pointer": "/total"}, {"kind": "drop_unknown", "pointer": ""}]
    assert "13812345678" not in warning + json.dumps(end)
    assert end["raw_output"]["commit"] == fingerprint_under(find_values_key(row_of(answer)), evidence.json_bytes(WRONG))


@pytest.mark.req("TOOLS-23")
def test_without_leave_of_the_manifest_the_call_fails_as_before(call: Callable[..., Any]) -> None:
    answer = call(WRONG)

    assert answer.json()["error"]["reason"] == "SCHEMA.OUTPUT_INVALID"
    assert "repairs" not in end_of(answer)


@pytest.mark.req("TOOLS-23")
def test_what_the_allowed_repairs_do_not_mend_fails(call: Callable[..., Any]) -> None:
    answer = call({"to": "x"}, "wrap", "coerce", "drop_unknown")

    assert answer.json()["error"]["reason"] == "SCHEMA.OUTPUT_INVALID"
    assert [step["status"] for step in row_of(answer).steps if step["name"] == "output.repair"] == ["failed"]


@pytest.mark.req("SVC-8", "TOOLS-23")
def test_a_plan_is_passed_through_beside_a_repair(call: Callable[..., Any]) -> None:
    plan = [{"tool": "x"}]

    answer = call({"to": "x", "total": "3", "post_execution_plan": plan}, "coerce")

    assert answer.json()["data"] == {"to": "x", "total": 3}
    assert answer.json()["call"]["post_execution_plan"] == plan


@pytest.mark.req("TOOLS-23", "TOOLS-25")
def test_obligations_are_carried_out_on_what_was_repaired(
    call: Callable[..., Any], bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(invocation_id: UUID, work_class: str) -> None:
        obligation = {"action": "redact", "detector": "email"}
        Invocation.objects.filter(pk=invocation_id).update(obligations=[obligation])
        bell.ring(invocation_id, work_class)

    monkeypatch.setattr(outbox, "send_wake_up", send)

    answer = call(WRONG, "coerce", "drop_unknown")

    assert answer.json()["data"] == {"to": "[redacted:email]", "total": 12}
    end = end_of(answer)
    assert (len(end["repairs"]), end["obligations"][0]["count"]) == (2, 1)
    assert end["raw_output"]["commit"] == fingerprint_under(find_values_key(row_of(answer)), evidence.json_bytes(WRONG))
