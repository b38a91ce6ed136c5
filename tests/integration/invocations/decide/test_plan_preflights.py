"""Plan preflights: is a plan of several calls judged call by call and as a whole, with no more questions than it has tools?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.budgets.services import set_budget
from evidence.models import Fact
from invocations.decide.preflight import STEPS
from invocations.models import Invocation, Tally
from tests.support.calls import ask, assert_problem, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
YEAR = 31_536_000


def plan(*calls: tuple[str, Any], **envelope: Any) -> dict[str, Any]:
    said = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    return {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "calls": said, **envelope}


def asked(caller: Caller, *calls: tuple[str, Any]) -> dict[str, Any]:
    answer = caller.post("/preflight", plan(*calls))
    assert answer.status_code == 200, answer.json()
    data: dict[str, Any] = answer.json()["data"]
    return data


@pytest.mark.req("TOOLS-14")
def test_each_call_of_a_plan_is_answered_in_its_place_whatever_is_wrong_with_the_others(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    writer(enable)
    grant()

    calls = asked(
        caller,
        (ECHO, {"text": "x"}),
        ("sample.tools.nothing", {}),
        (ECHO, {"text": 5}),
        (ECHO, [1]),
        (ECHO, "text"),
        (WRITE, {}),
    )["calls"]

    assert [(each["tool"], each["allow"], each["refused_at"]) for each in calls] == [
        (ECHO, True, None),
        ("sample.tools.nothing", False, "tool"),
        (ECHO, False, "input_schema"),
        (ECHO, False, "input_schema"),
        (ECHO, False, "input_schema"),
        (WRITE, False, "consent"),
    ]
    assert calls[1]["problem"]["reason"] == "TOOL.UNKNOWN"
    assert all([step["name"] for step in each["steps"]] == list(STEPS) for each in calls)
    assert len({frozenset(each) for each in calls}) == 1  # one shape


@pytest.mark.req("TOOLS-14")
def test_a_plan_of_one_call_says_what_its_preflight_says(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant(calls_limit=3)

    alone, [planned] = ask(caller, ECHO, {"text": "x"}), asked(caller, (ECHO, {"text": "x"}))["calls"]

    for each in (alone, planned):
        for step in each["steps"]:
            step.pop("ms")
    assert planned == alone


@pytest.mark.req("TOOLS-14")
def test_a_plan_costs_one_look_for_each_tool_in_it(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    writer(enable)
    grant()
    asked(caller, (ECHO, {}), (WRITE, {}))  # compiles what is kept, and begins the tally of the minute

    def statements(*calls: tuple[str, Any]) -> int:
        with CaptureQueriesContext(connection) as queries:
            asked(caller, *calls)
        return len(queries)

    assert statements(*[(ECHO, {"text": str(n)}) for n in range(100)]) == statements((ECHO, {}))
    assert statements((ECHO, {}), (WRITE, {})) <= statements((ECHO, {})) + 1


@pytest.mark.req("TOOLS-14")
def test_calls_that_fit_alone_may_not_fit_together(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    budget = set_budget(
        scope="agent", agent_id=caller.agent.pk, dimension="calls", amount=2, window_s=YEAR, by=operator.by
    )

    two = asked(caller, *[(ECHO, {})] * 2)
    three = asked(caller, *[(ECHO, {})] * 3)

    assert [each["allow"] for each in three["calls"]] == [True] * 3
    assert two["together"]["fits"] is True
    assert three["together"]["fits"] is False
    assert three["together"]["short"] == [budget.wire_id]
    assert [(each["budget"], each["takes"]) for each in three["together"]["budgets"]] == [(budget.wire_id, 3)]


@pytest.mark.req("TOOLS-14")
def test_a_plan_leaves_one_tally_and_nothing_else(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()

    asked(caller, (ECHO, {}), (ECHO, {"text": 5}), ("sample.tools.nothing", {}))

    assert list(Tally.objects.values_list("kind", "agent", "tool", "reason", "count")) == [
        ("invocation.preflighted", caller.agent.wire_id, "", "", 3)
    ]
    assert not Invocation.objects.exists()
    assert not Fact.objects.filter(kind__startswith="invocation.").exists()


@pytest.mark.req("TOOLS-14")
@pytest.mark.parametrize(
    ("calls", "pointer"),
    [
        ([], "/calls"),
        ([{"tool": ECHO, "arguments": {}}] * 101, "/calls"),
        ([{"tool": ECHO, "arguments": {}, "argumets": {}}], "/calls/0/argumets"),
        ([{"tool": ECHO}], "/calls/0/arguments"),
        ([{"tool": ECHO, "arguments": None}], "/calls/0/arguments"),
        ([{"arguments": {}}], "/calls/0/tool"),
        ({"tool": ECHO}, "/calls"),
    ],
)
def test_a_plan_of_another_shape_is_refused_by_the_name_of_the_field(calls: Any, pointer: str, caller: Caller) -> None:
    body = assert_problem(caller.post("/preflight", plan() | {"calls": calls}), 422, "SCHEMA.VALIDATION_FAILED")

    assert pointer in {finding["pointer"] for finding in body["error"]["details"]["findings"]}
