"""Chain examination: what is found about a plan before anything of it runs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from evidence.models import Fact
from invocations.chains import orchestration
from invocations.chains.models import Chain
from invocations.models import Invocation, Tally
from tests.support.budgets import DAY
from tests.support.calls import assert_problem
from tests.support.chains import ENVELOPE, TEXT, ask, calls, chain_of, of, states, step, submit, undo

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db(transaction=True)


def refused(caller: Caller, status: int, reason: str, *steps: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    """The answer to a plan that is not accepted; nothing of it has run, and that it was refused is a fact."""
    body = assert_problem(submit(caller, *steps, **envelope), status, reason)
    assert (Chain.objects.count(), Invocation.objects.count()) == (0, 0)
    assert Fact.objects.get(kind="chain.refused").reason == reason
    details: dict[str, Any] = body["error"]["details"]
    return details


@pytest.mark.req("TOOLS-32")
def test_what_one_step_promises_must_fit_where_another_uses_it(
    caller: Caller, enable: Callable[..., Any], chainable: None
) -> None:
    properties = {"text": {"type": "string"}, "count": {"type": "integer"}, "short": {"type": "string", "maxLength": 5}}
    enable("strict", input_schema={"type": "object", "properties": properties, "additionalProperties": False})
    steps = (
        step("one"),
        {
            "id": "two",
            "tool": "sample.tools.strict",
            "arguments": {"count": of("one"), "short": of("one"), "text": of("one")},
        },
    )
    details = refused(caller, 422, "CHAIN.INCOMPATIBLE", *steps)

    found = {each["pointer"].rpartition("/")[2]: each for each in details["findings"]}
    assert set(found) == {"count", "short"}
    assert found["count"]["certain"] is True
    assert found["count"]["pointer"] == "/plan/steps/1/arguments/count"
    assert (found["short"]["certain"], "maxLength" in found["short"]["message"]) == (False, True)


@pytest.mark.req("TOOLS-32")
def test_a_caller_may_answer_for_what_is_not_shown_but_not_for_what_cannot_be(
    caller: Caller, enable: Callable[..., Any], chainable: None
) -> None:
    short = {
        "type": "object",
        "properties": {"short": {"type": "string", "maxLength": 5}, "count": {"type": "integer"}},
    }
    enable("strict", input_schema=short)
    assumed = of("one", assume_compatible=True)
    two = {"id": "two", "tool": "sample.tools.strict"}
    said = ask(caller, step("one"), two | {"arguments": {"short": assumed}})
    never = ask(caller, step("one"), two | {"arguments": {"count": assumed}})

    assert said["allow"] is True
    assert "maxLength" in said["steps"][1]["warnings"][0]
    assert never["problem"]["reason"] == "CHAIN.INCOMPATIBLE"


@pytest.mark.req("TOOLS-32")
def test_what_was_assumed_and_is_not_there_fails_the_step(
    caller: Caller, chainable: None, bell: Bell, scripted: dict[str, Any]
) -> None:
    chain = chain_of(submit(caller, step("one"), step("two", text=of("one", "/more", assume_compatible=True))))
    bell.deliver()

    chain.refresh_from_db()
    assert (chain.state, chain.reason) == ("failed", "CHAIN.VALUE_MISSING")
    assert states(chain) == ["succeeded", "failed"]
    assert len(calls(chain)) == 1


@pytest.mark.req("TOOLS-32")
def test_a_plan_that_a_tool_passed_on_is_no_part_of_its_output(
    caller: Caller, enable: Callable[..., Any], chainable: None
) -> None:
    promised = {
        "type": "object",
        "required": ["post_execution_plan"],
        "properties": {"post_execution_plan": {"type": "string"}},
    }
    enable("plans", output_schema=promised)

    refused(
        caller, 422, "CHAIN.INCOMPATIBLE", step("one", "plans"), step("two", text=of("one", "/post_execution_plan"))
    )


@pytest.mark.req("TOOLS-32")
def test_what_is_written_down_in_the_plan_is_held_against_the_input_schema(
    caller: Caller, enable: Callable[..., Any], chainable: None
) -> None:
    properties = {"text": {"type": "string"}, "count": {"type": "integer"}}
    enable("strict", input_schema={"type": "object", "properties": properties, "required": ["count"]})
    two = {"id": "two", "tool": "sample.tools.strict"}
    missing = ask(caller, step("one"), two | {"arguments": {"text": of("one")}})
    wrong = ask(caller, step("one"), two | {"arguments": {"text": of("one"), "count": "many"}})
    right = ask(caller, step("one"), two | {"arguments": {"text": of("one"), "count": 1}})

    assert missing["problem"]["reason"] == wrong["problem"]["reason"] == "SCHEMA.VALIDATION_FAILED"
    assert wrong["steps"][1]["problems"][0]["details"]["findings"][0]["pointer"] == "/plan/steps/1/arguments/count"
    assert right["allow"] is True


@pytest.mark.req("TOOLS-32")
def test_every_step_is_looked_at_also_after_the_first_that_is_in_the_way(
    caller: Caller, enable: Callable[..., Any], chainable: None
) -> None:
    enable("raises")
    said = ask(
        caller,
        step("one", "nowhere"),
        step("two", "raises", retry=1),
        step("three", compensate=undo("elsewhere")),
        step("four"),
    )

    assert said["allow"] is False
    assert said["at"] == "/plan/steps/0"
    assert [(each["id"], each["role"], each["allow"]) for each in said["steps"]] == [
        ("one", "step", False), ("two", "step", False), ("three", "step", True), ("four", "step", True),
        ("three", "compensation", False),
    ]  # fmt: skip
    reasons = [each["problems"][0]["reason"] for each in said["steps"] if each["problems"]]
    assert reasons == ["TOOL.UNKNOWN", "CHAIN.RETRY_NEEDS_KEY", "TOOL.UNKNOWN"]
    assert (Chain.objects.count(), Fact.objects.filter(kind__startswith="chain.").count()) == (0, 0)
    assert Tally.objects.get(kind="invocation.preflighted").count == 5


@pytest.mark.req("TOOLS-32")
def test_a_step_without_a_grant_refuses_the_whole(
    caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    enable("echo", output_schema=TEXT)
    enable("raises")
    grant("sample.tools.echo")

    details = refused(caller, 403, "AUTH.NO_GRANT", step("one"), step("two", "raises"))
    assert details["step"] == "two"


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("plan", "pointer"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [step(f"s{number}") for number in range(21)]}, "steps"),
        ({"steps": [step("one", retry=6)]}, "retry"),
        ({"steps": [{**step("one"), "on_failure": "stop"}]}, "on_failure"),
        ({"steps": [{**step("one"), "arguments": []}]}, "arguments"),
        ([], "plan"),
    ],
)
def test_a_plan_of_another_shape_is_refused_by_name(caller: Caller, chainable: None, plan: Any, pointer: str) -> None:
    body = assert_problem(caller.post("/chains", ENVELOPE | {"plan": plan}), 422, "SCHEMA.VALIDATION_FAILED")

    assert pointer in body["error"]["details"]["findings"][0]["pointer"]


@pytest.mark.req("TOOLS-32")
def test_a_plan_that_is_too_large_is_refused(caller: Caller, chainable: None) -> None:
    assert_problem(submit(caller, step("one", text="x" * 300_000)), 413, "REQUEST.TOO_LARGE")


@pytest.mark.req("TOOLS-32")
def test_a_chain_asks_nobody_by_itself(caller: Caller, chainable: None) -> None:
    answer = submit(caller, step("one"), on_consent="ask", purpose="to test")

    assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-32")
def test_the_budget_of_the_whole_is_looked_at(caller: Caller, operator: Person, chainable: None) -> None:
    set_budget(scope="tenant", dimension="calls", amount=2, window_s=DAY, by=operator.by)
    steps = step("one", compensate=undo()), step("two")
    said = ask(caller, *steps)

    assert said["problem"]["reason"] == "QUOTA.BUDGET_EXCEEDED"
    assert [(each["dimension"], each["takes"], each["remaining"]) for each in said["budgets"]] == [("calls", 3, 2)]
    refused(caller, 429, "QUOTA.BUDGET_EXCEEDED", *steps)
    assert orchestration.find_due_chains() == []
