"""Chains: is a plan carried out step by step, each call governed and witnessed, and what becomes of it when a step does not
succeed?
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from access.consents import services as consents
from access.grants import services as grant_services
from evidence.models import Fact, Snapshot
from evidence.services import open_values
from invocations import services
from invocations.chains import orchestration
from invocations.chains.models import Chain
from invocations.models import Invocation
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.calls import assert_problem, kinds_of, writer
from tests.support.chains import ENVELOPE, TEXT, calls, chain_of, facts, of, states, step, submit, undo
from tests.support.deferred_answers import post_without_a_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
FAILS = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="no")
LOST = RunOutcome(RunStatus.LOST)


@pytest.mark.req("TOOLS-32")
def test_each_step_gets_what_those_before_it_have_delivered(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    answer = submit(caller, step("first", text="a"), step("second", text=of("first")), step("third", text=of("second")))

    assert answer.status_code == 202, answer.json()
    chain = chain_of(answer)
    assert answer.headers["Location"] == f"/api/v1/chains/{chain.wire_id}"
    assert answer.headers["Retry-After"] == "1"
    assert [call.state for call in calls(chain)] == ["queued"]  # one after the other

    bell.deliver()

    chain.refresh_from_db()
    made = calls(chain)
    assert chain.state == "succeeded"
    assert [call.state for call in made] == ["succeeded"] * 3
    assert all(kinds_of(call) == ["invocation.began", "invocation.ended"] for call in made)
    assert facts(chain) == ["chain.began", "chain.ended"]
    begun = [json.loads(bytes(Fact.objects.get(invocation_id=call.pk, kind="invocation.began").leaf)) for call in made]
    assert [leaf["data"]["chain"]["step"] for leaf in begun] == ["first", "second", "third"]
    assert {leaf["data"]["chain"]["id"] for leaf in begun} == {chain.wire_id}
    body = caller.get(f"/chains/{chain.wire_id}")
    assert body.status_code == 200
    last = body.json()["data"]["steps"][2]["call"]["url"].removeprefix("/api/v1")
    assert caller.get(last).json()["data"] == {"text": "a+++"}


@pytest.mark.req("TOOLS-32")
def test_data_that_looks_like_a_reference_is_sent_as_data(
    caller: Caller, chainable: None, bell: Bell, sandbox: ScriptedSandbox, scripted: dict[str, Any]
) -> None:
    said = {"$from": "first", "$data": [1]}
    submit(caller, step("first"), {**step("second"), "arguments": {"text": of("first"), "more": {"$data": said}}})
    bell.deliver()

    assert json.loads(sandbox.calls[-1][1].arguments) == {"text": "x+", "more": said}


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("outcome", "state", "reason"),
    [(FAILS, "failed", "TOOL.EXECUTION_FAILED"), (LOST, "outcome_unknown", "SANDBOX.WORKER_LOST")],
)
def test_a_chain_stops_at_the_first_step_that_does_not_succeed(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any], outcome: RunOutcome, state: str, reason: str
) -> None:
    scripted["bad"] = outcome
    chain = chain_of(submit(caller, step("first"), step("second", text="bad"), step("third", text=of("second"))))
    bell.deliver()

    assert states(chain) == ["succeeded", "failed", "skipped"]
    assert [call.state for call in calls(chain)] == ["succeeded", state]
    body = caller.get(f"/chains/{chain.wire_id}").json()
    assert body["ok"] is False
    assert body["error"]["reason"] == "CHAIN.STOPPED"
    assert body["error"]["details"] == {"step": "second", "reason": reason, "compensated": "none"}
    assert body["data"]["state"] == "failed"
    ended = json.loads(bytes(Fact.objects.get(subject=chain.wire_id, kind="chain.ended").leaf))
    assert [each["state"] for each in ended["data"]["steps"]] == ["succeeded", "failed", "skipped"]
    assert ended["reason"] == reason


@pytest.mark.req("TOOLS-32")
def test_a_step_is_decided_on_again_when_it_is_made(
    caller: Caller, operator: Person, chainable: None, bell: Bell, scripted: dict[str, Any], sandbox: ScriptedSandbox
) -> None:
    chain = chain_of(submit(caller, step("first"), step("second", text=of("first"))))
    call = calls(chain)[0]
    answer = sandbox.during

    def revoke() -> None:
        assert call.grant_id is not None
        grant_services.revoke_grant(grant_id=call.grant_id, reason="taken back", by=operator.by)
        answer()

    sandbox.during = revoke
    bell.deliver()

    assert states(chain) == ["succeeded", "failed"]
    denied = calls(chain)[1]
    assert (denied.state, denied.reason) == ("denied", "AUTH.NO_GRANT")
    assert kinds_of(denied) == ["invocation.began", "invocation.ended"]


# Trying again.


@pytest.mark.req("TOOLS-32")
def test_a_step_of_a_keyed_tool_is_made_again_with_the_same_key(
    caller: Caller,
    enable: Callable[..., Any],
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
    sandbox: ScriptedSandbox,
) -> None:
    enable("keyed", idempotency="keyed", output_schema=TEXT, implementation={"module": "sample.tools", "entry": "echo"})
    scripted["x"] = [FAILS, FAILS, {"text": "at last"}]
    chain = chain_of(submit(caller, step("one", "keyed", retry=2)))
    for _ in range(3):
        bell.deliver()
        assert orchestration.find_due_chains() == []  # not before its pause is over
        Chain.objects.filter(pk=chain.pk).update(next_at=datetime.now(UTC))
        for id in orchestration.find_due_chains():
            orchestration.continue_chain(id)

    chain.refresh_from_db()
    assert chain.state == "succeeded"
    assert [call.state for call in calls(chain)] == ["failed", "failed", "succeeded"]
    keys = [call.context["idempotency_key"] for _, call in sandbox.calls]
    assert len(set(keys)) == 1
    assert keys[0]


@pytest.mark.req("TOOLS-32")
def test_a_host_whose_clock_is_behind_makes_no_step_twice(
    caller: Caller,
    enable: Callable[..., Any],
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable("keyed", idempotency="keyed", output_schema=TEXT, implementation={"module": "sample.tools", "entry": "echo"})
    scripted["x"] = [FAILS, {"text": "at last"}]
    chain = chain_of(submit(caller, step("one", "keyed", retry=2)))
    bell.deliver()
    behind = UUID(int=calls(chain)[0].pk.int - (60_000 << 80))  # a minute, in the time that an id begins with
    monkeypatch.setattr(services, "new_id", lambda: behind)
    Chain.objects.filter(pk=chain.pk).update(next_at=datetime.now(UTC))

    orchestration.continue_chain(chain.pk)
    orchestration.continue_chain(chain.pk)  # as anybody may at any time

    assert [call.state for call in calls(chain)] == ["queued", "failed"]
    bell.deliver()
    chain.refresh_from_db()
    assert (chain.state, len(calls(chain))) == ("succeeded", 2)


@pytest.mark.req("TOOLS-32")
def test_what_was_tried_often_enough_has_failed(
    caller: Caller, enable: Callable[..., Any], chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    enable("keyed", idempotency="keyed", implementation={"module": "sample.tools", "entry": "echo"})
    scripted["x"] = FAILS
    chain = chain_of(submit(caller, step("one", "keyed", retry=1)))
    bell.deliver()
    Chain.objects.filter(pk=chain.pk).update(next_at=datetime.now(UTC))
    orchestration.continue_chain(chain.pk)
    bell.deliver()

    chain.refresh_from_db()
    assert (chain.state, len(calls(chain))) == ("failed", 2)


# Undoing.


@pytest.mark.req("TOOLS-32")
def test_what_was_done_is_undone_in_reverse_order(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any], sandbox: ScriptedSandbox
) -> None:
    scripted["bad"] = FAILS
    chain = chain_of(
        submit(
            caller,
            step("first", text="a", compensate=undo(text=of("first"))),
            step("second", text="b"),
            step("third", text="c", compensate=undo(text=of("third"))),
            step("fourth", text="bad", compensate=undo(text="never")),
        )
    )
    bell.deliver()

    chain.refresh_from_db()
    assert chain.state == "failed"
    assert states(chain, "compensation") == ["succeeded", "succeeded", "skipped"]
    assert [json.loads(call.arguments)["text"] for _, call in sandbox.calls] == ["a", "b", "c", "bad", "c+", "a+"]
    assert all(kinds_of(call) == ["invocation.began", "invocation.ended"] for call in calls(chain))
    body = caller.get(f"/chains/{chain.wire_id}").json()
    assert body["error"]["details"]["compensated"] == "all"
    assert body["data"]["steps"][0]["compensation"]["state"] == "succeeded"


@pytest.mark.req("TOOLS-32")
def test_what_cannot_be_undone_is_said_and_the_rest_is_undone_all_the_same(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    scripted["bad"] = FAILS
    chain = chain_of(
        submit(
            caller,
            step("first", compensate=undo()),
            step("second", text="b", compensate=undo(text="bad")),
            step("third", text="bad"),
        )
    )
    bell.deliver()

    assert states(chain, "compensation") == ["succeeded", "failed"]
    body = caller.get(f"/chains/{chain.wire_id}").json()
    assert body["error"]["details"]["compensated"] == "partly"
    assert body["error"]["details"]["step"] == "third"


# Cancelling.


@pytest.mark.req("TOOLS-32")
def test_a_chain_that_is_cancelled_ends_its_call_and_undoes_what_was_done(
    caller: Caller, chainable: None, bell: Bell, sandbox: ScriptedSandbox, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("first", compensate=undo()), step("second", text="b"), step("third")))
    scripted["b"] = RunOutcome(RunStatus.CANCELLED)
    answer = sandbox.during

    def cancel() -> None:
        answer()
        if len(sandbox.calls) == 2:
            cancelled = caller.delete(f"/chains/{chain.wire_id}")
            assert cancelled.status_code == 202, cancelled.json()
            assert cancelled.json()["data"]["cancel_asked"] is True
            assert_problem(caller.delete(f"/chains/{chain.wire_id}"), 409, "STATE.CONFLICT")

    sandbox.during = cancel
    bell.deliver()
    chain.refresh_from_db()
    assert (chain.state, chain.reason) == ("cancelled", "REQUEST.CANCELLED")
    assert states(chain) == ["succeeded", "failed", "skipped"]
    assert states(chain, "compensation") == ["succeeded"]
    assert [call.state for call in calls(chain)] == ["succeeded", "cancelled", "succeeded"]
    assert facts(chain) == ["chain.began", "chain.cancel_asked", "chain.ended"]
    assert_problem(caller.delete(f"/chains/{chain.wire_id}"), 409, "STATE.CONFLICT")


# Waiting for a person.


@pytest.mark.req("TOOLS-32", "TOOLS-19")
@pytest.mark.parametrize("approved", [True, False])
def test_a_chain_waits_for_the_person_who_decides_about_one_of_its_steps(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Any],
    chainable: None,
    bell: Bell,
    scripted: dict[str, Any],
    approved: bool,
) -> None:
    writer(enable)
    steps = step("first"), step("second", "write", text=of("first")), step("third")
    assert_problem(submit(caller, *steps), 403, "POLICY.CONSENT_REQUIRED")
    chain = chain_of(submit(caller, *steps, on_consent="hold", purpose="to write it down"))
    bell.deliver()

    held = calls(chain)[1]
    assert (held.state, states(chain)) == ("held", ["succeeded", "running", "waiting"])
    assert caller.get(f"/chains/{chain.wire_id}").json()["data"]["waits_for_a_person"] is True
    assert held.consent_id is not None
    decide = consents.approve_consent if approved else consents.deny_consent
    decide(consent_id=held.consent_id, reason="because of a test", by=operator.by)
    bell.deliver()

    chain.refresh_from_db()
    assert chain.state == ("succeeded" if approved else "failed")
    assert chain.reason == ("" if approved else "POLICY.CONSENT_DENIED")


# Sending it again, and what is kept.


@pytest.mark.req("TOOLS-32", "SPEC-5")
def test_a_plan_that_is_sent_again_with_its_key_is_the_same_chain(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    key = {"Idempotency-Key": "plan-1"}
    first = submit(caller, step("first"), headers=key)
    again = submit(caller, step("first"), headers=key)
    other = submit(caller, step("first", text="other"), headers=key)

    assert chain_of(again) == chain_of(first)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert_problem(other, 422, "IDEMPOTENCY.KEY_REUSED")
    assert Invocation.objects.count() == 1


@pytest.mark.req("TOOLS-32")
def test_values_of_a_plan_are_nowhere_in_clear(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("first", text="the-value"), step("second", text=of("first"))))
    bell.deliver()

    assert not [fact for fact in Fact.objects.all() if b"the-value" in bytes(fact.leaf)]
    assert "the-value" not in json.dumps([*Chain.objects.values(), *chain.steps.values()], default=str)
    sealed = open_values(Snapshot.objects.get(invocation_id=chain.pk))
    assert sealed["plan"]["steps"][0]["arguments"] == {"text": "the-value"}


@pytest.mark.req("SVC-8", "TOOLS-32")
def test_the_plan_that_a_tool_returned_is_carried_out_only_when_the_caller_submits_it(
    caller: Caller, enable: Callable[..., Any], chainable: None, worker: None
) -> None:
    enable("plans")
    proposed = caller.invoke("sample.tools.plans", {"text": "hello"}).json()
    assert Chain.objects.count() == 0

    body = {"request_id": "test-request-2", "actor": {"type": "agent", "id": "x"}}
    plan = proposed["call"]["post_execution_plan"]
    answer = caller.post("/chains", body | {"plan": plan}, Prefer="wait=20")

    assert answer.status_code == 200, answer.json()
    assert answer.json()["data"]["state"] == "succeeded"
    first = answer.json()["data"]["steps"][0]["call"]["url"].removeprefix("/api/v1")
    assert caller.get(first).json()["data"]["text"] == "hello"


@pytest.mark.req("TOOLS-32")
def test_who_waits_for_a_chain_is_answered_at_its_end_without_a_thread_that_waits(
    caller: Caller, chainable: None, worker: None
) -> None:
    body = ENVELOPE | {"plan": {"steps": [step("first", text="hello")]}}

    answer = post_without_a_thread("/chains", body, caller.headers() | {"Prefer": "wait=20"})

    assert (answer.status_code, "Retry-After" in answer.headers) == (200, False)
    said = json.loads(answer.content)["data"]
    assert (said["state"], answer.headers["Location"]) == ("succeeded", f"/api/v1/chains/{said['chain_id']}")
