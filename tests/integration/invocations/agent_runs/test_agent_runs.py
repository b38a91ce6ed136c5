"""Agent runs: is a question taken to its answer call by call, each governed and witnessed, and does every limit stop it by its
own name?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.consents.services import approve_consent, deny_consent
from access.models import Consent
from access.roles import SCOPES
from evidence.models import Fact
from invocations.agent_runs.models import AgentRun
from invocations.agent_runs.serializers import EXAMPLE
from invocations.models import Invocation
from invocations.sandbox.base import RunOutcome, RunStatus
from llm.answers import FinishReason
from llm.problems import ProviderQuotaExhausted
from tests.conftest import make_caller
from tests.support.agent_runs import ECHO, list_calls, list_steps, propose, run_of, submit
from tests.support.calls import PAIR, assert_problem, kinds_of
from tests.support.model_calls import say
from tests.support.scripted_models import text_answer
from unitools.expressions import parse_cached

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
LOST = RunOutcome(RunStatus.LOST)


@pytest.fixture(autouse=True)
def granted(grant: Callable[..., Any]) -> None:
    grant()


def facts_of(run: AgentRun) -> list[str]:
    return list(Fact.objects.filter(subject=run.wire_id).order_by("id").values_list("kind", flat=True))


@pytest.mark.req("LLM-3", "RUN-1", "TOOLS-30")
def test_a_run_goes_from_the_question_over_its_tools_to_the_answer(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = [propose("a", "b"), propose("c"), text_answer("It is c.")]

    answer = submit(caller)
    assert answer.status_code == 202
    run = run_of(answer)
    assert answer.headers["Location"] == f"/api/v1/runs/{run.wire_id}"
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    assert list_steps(run) == [
        (1, "model", "succeeded"),
        (1, "tool", "succeeded"),
        (1, "tool", "succeeded"),
        (2, "model", "succeeded"),
        (2, "tool", "succeeded"),
        (3, "model", "succeeded"),
    ]
    made = list_calls(run)
    assert all(kinds_of(call) == PAIR for call in made)
    assert [call.proposed_by_id for call in made] == [None, made[0].pk, made[0].pk, None, made[3].pk, None]
    assert facts_of(run) == ["agent_run.began", "agent_run.ended"]
    body = caller.get(f"/runs/{run.wire_id}").json()
    assert (body["ok"], body["data"]["answer"]["text"]) == (True, "It is c.")
    begun = json.loads(bytes(Fact.objects.get(invocation_id=made[4].pk, kind="invocation.began").leaf))
    assert begun["data"]["agent_run"] == {"id": run.wire_id, "turn": 2, "position": 4, "try": 1}


@pytest.mark.req("RUN-1")
def test_the_model_is_told_what_its_calls_were_answered_and_nothing_of_its_words_is_lost(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = [propose("a", "b"), text_answer("Done")]
    submit(caller)
    driver.drive()

    first, second = bench.requests
    assert second.messages[: len(first.messages)] == first.messages
    assistant, *tools = second.messages[len(first.messages) :]
    assert [(each.id, each.name, each.arguments) for each in assistant.proposals] == [
        ("call_0", ECHO, {"text": "a"}),
        ("call_1", ECHO, {"text": "b"}),
    ]
    assert [(each.call_id, each.is_error) for each in tools] == [("call_0", False), ("call_1", False)]
    assert '{"text": "a+"}' in tools[0].segments[0].text
    assert '{"text": "b+"}' in tools[1].segments[0].text


@pytest.mark.req("UNI-3")
def test_the_example_of_the_reference_names_tools_by_expressions_that_can_be_read() -> None:
    for text in EXAMPLE.value["arguments"]["tools"]:
        assert parse_cached(text) is not None


@pytest.mark.req("RUN-1", "TOOLS-30")
def test_what_may_not_be_called_is_told_the_model_and_witnessed(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = [propose("a", tool="sample.tools.none"), propose("a"), text_answer("Well")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert run.state == "succeeded"
    assert list_steps(run)[1] == (1, "tool", "failed")
    said = bench.requests[1].messages[-1]
    assert said.is_error
    assert "TOOL.UNKNOWN" in said.segments[0].text


@pytest.mark.req("RUN-2")
@pytest.mark.parametrize(
    ("limits", "scripts", "why"),
    [
        ({"steps": 2}, [propose("a"), propose("b"), propose("c")], "steps"),
        ({"equal_calls": 2}, [propose("a"), propose("a"), propose("a")], "equal_calls"),
        ({"equal_calls": 1}, [propose("a", "a")], "equal_calls"),
        ({}, [propose(*map(str, range(101)))], "many_calls"),
        ({}, [text_answer("cut", FinishReason.LENGTH)], "length"),
        ({}, [text_answer("no", FinishReason.SAFETY)], "safety"),
    ],
)
def test_each_limit_stops_a_run_by_its_own_name(
    limits: dict[str, Any], scripts: list[Any], why: str, caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = scripts
    run = run_of(submit(caller, limits=limits))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) in [("stopped", why), ("failed", why)]
    answer = caller.get(f"/runs/{run.wire_id}")
    assert answer.status_code == 200
    assert answer.json()["error"]["details"]["stop_reason"] == why
    assert not Invocation.objects.filter(finished_at=None).exists()
    assert facts_of(run) == ["agent_run.began", "agent_run.ended"]


@pytest.mark.req("RUN-2")
def test_a_run_whose_time_is_over_ends_the_call_that_is_open(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = [propose("a"), text_answer("never")]
    run = run_of(submit(caller, limits={"seconds": 60}))
    driver.ask_models()
    AgentRun.objects.update(deadline_at=run.created_at)
    driver.look()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("stopped", "seconds")
    assert [call.state for call in list_calls(run)] == ["succeeded", "cancelled"]


@pytest.mark.req("RUN-2")
def test_a_tool_whose_outcome_nobody_knows_ends_the_run_before_the_model_proposes_it_again(
    caller: Caller, bench: ProviderBench, driver: RunDriver, scripted: dict[str, Any]
) -> None:
    scripted["a"] = LOST
    bench.scripts = [propose("a"), propose("a")]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("failed", "outcome_unknown")
    assert len(bench.requests) == 1


@pytest.mark.req("RUN-1")
def test_a_model_that_fails_ends_the_run_with_its_problem(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    bench.scripts = [(ProviderQuotaExhausted(),)]
    run = run_of(submit(caller))
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason, run.reason) == ("failed", "model_failed", "PROVIDER.QUOTA_EXHAUSTED")


# A person in between.


@pytest.fixture
def asks_a_person(caller: Caller, operator: Person, bench: ProviderBench, driver: RunDriver, enable: Any) -> None:
    enable("write", side_effect="Write", idempotency="keyed")
    bench.scripts = [propose("a", tool="sample.tools.write"), text_answer("Written.")]


HELD: dict[str, Any] = {
    "on_consent": "hold",
    "purpose": "to write",
    "arguments": say("Write", tools=["sample.tools.*"]),
}


@pytest.mark.req("RUN-2")
def test_a_held_call_pauses_the_run_and_its_approval_takes_it_on(
    caller: Caller, operator: Person, asks_a_person: None, driver: RunDriver
) -> None:
    run = run_of(submit(caller, **HELD))
    driver.drive()

    run.refresh_from_db()
    assert run.state == "running"
    assert run.paused_at is not None
    assert caller.get(f"/runs/{run.wire_id}").json()["data"]["waits_for_a_person"] is True
    AgentRun.objects.update(deadline_at=run.created_at)  # a pause takes as long as people need
    driver.look()
    approve_consent(consent_id=Consent.objects.get().pk, reason="yes", by=operator.by)
    driver.bell.rung = [row.pk for row in Invocation.objects.filter(state="queued")]
    AgentRun.objects.update(deadline_at=run.deadline_at)
    driver.drive()

    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("succeeded", "finished")
    assert not AgentRun.objects.exclude(paused_at=None).exists()


@pytest.mark.req("RUN-1")
def test_a_refused_consent_is_told_the_model(
    caller: Caller, operator: Person, asks_a_person: None, bench: ProviderBench, driver: RunDriver
) -> None:
    run = run_of(submit(caller, **HELD))
    driver.drive()
    deny_consent(consent_id=Consent.objects.get().pk, reason="not today", by=operator.by)
    driver.drive()

    run.refresh_from_db()
    assert run.state == "succeeded"
    assert "not today" in bench.requests[1].messages[-1].segments[0].text


@pytest.mark.req("RUN-1")
def test_a_cancelled_run_makes_no_further_call(caller: Caller, asks_a_person: None, driver: RunDriver) -> None:
    run = run_of(submit(caller, **HELD))
    driver.drive()

    answer = caller.delete(f"/runs/{run.wire_id}")

    assert answer.status_code == 200, answer.json()
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("cancelled", "cancelled")
    assert [call.state for call in list_calls(run)] == ["succeeded", "cancelled"]
    assert facts_of(run) == ["agent_run.began", "agent_run.cancel_asked", "agent_run.ended"]
    assert_problem(caller.delete(f"/runs/{run.wire_id}"), 409, "STATE.CONFLICT")


# Before it begins.


@pytest.mark.req("RUN-1", "TOOLS-20")
def test_a_run_that_is_sent_twice_with_one_key_is_one(caller: Caller, driver: RunDriver) -> None:
    key = {"Idempotency-Key": "k-1"}
    first, second = (submit(caller, headers=key) for _ in range(2))

    assert run_of(first) == run_of(second)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert_problem(submit(caller, headers=key, limits={"steps": 3}), 422, "IDEMPOTENCY.KEY_REUSED")


@pytest.mark.req("RUN-1")
def test_what_cannot_be_asked_is_refused_before_the_run_and_witnessed(
    caller: Caller, bench: ProviderBench, driver: RunDriver
) -> None:
    assert_problem(submit(caller, arguments={"messages": []}), 422, "SCHEMA.VALIDATION_FAILED")
    assert_problem(submit(caller, model="model.script.other"), 404, "TOOL.UNKNOWN")
    assert_problem(submit(caller, dry_run=True), 422, "SCHEMA.VALIDATION_FAILED")

    assert not AgentRun.objects.exists()
    assert bench.provider is None
    assert list(Fact.objects.filter(kind="agent_run.refused").values_list("reason", flat=True)) == [
        "SCHEMA.VALIDATION_FAILED",
        "TOOL.UNKNOWN",
    ]


@pytest.mark.req("RUN-1", "TOOLS-15")
@pytest.mark.parametrize("lacking", ["models:call", "invocations:create"])
def test_a_run_takes_the_scope_for_models_and_the_one_for_tools(
    lacking: str, operator: Person, driver: RunDriver
) -> None:
    scopes = tuple(each for each in SCOPES if each != lacking)

    assert_problem(submit(make_caller(operator.by, "limited", scopes)), 403, "AUTH.FORBIDDEN")
    assert not AgentRun.objects.exists()
