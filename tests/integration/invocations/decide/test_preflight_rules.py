"""Preflight rules: does a rule that can be taken back hold at every moment, from being written in one place?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.decide import preflight, rules
from invocations.decide.looks import LOOKS, AnswerLook, CallLook, ClaimLook, ListingLook, Look, RuleMoment
from invocations.decide.preflight import STEPS
from invocations.decide.rules import RULES, Rule
from invocations.mcp.tool_list import list_tools_after
from invocations.models import Invocation
from kernel.problems import Forbidden
from tests.support.calls import PAIR, ask, kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"
PAGE = Path(__file__).resolve().parents[4] / "docs" / "explanation" / "a-call.md"


class OfficeHours:
    """A rule as somebody might add it, and nothing else than that."""

    def __init__(self) -> None:
        self.open, self.looks = True, list[RuleMoment]()

    def check(self, look: Look) -> None:
        self.looks.append(look.moment)
        if not self.open:
            raise Forbidden("The office is closed.", remedy="Call again tomorrow.")


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch, enable: Callable[..., Tool], grant: Callable[..., Any]) -> OfficeHours:
    hours = OfficeHours()
    added = (*RULES, Rule("office_hours", "grant", hours.check))
    monkeypatch.setattr(rules, "RULES", added)
    monkeypatch.setattr(preflight, "RULES_BY_STEP", preflight.group_by_step(added))
    enable(idempotency="keyed")
    grant()
    return hours


@pytest.mark.req("TOOLS-14")
def test_a_new_rule_holds_at_the_call_and_in_its_preflight(office: OfficeHours, caller: Caller, bell: Bell) -> None:
    assert ask(caller, ECHO)["allow"]
    office.open = False

    asked, answer = ask(caller, ECHO), caller.invoke(ECHO, {"text": "x"})

    assert (asked["allow"], asked["refused_at"], asked["problem"]["message"]) == (
        False,
        "grant",
        "The office is closed.",
    )
    assert [step["name"] for step in asked["steps"]] == list(STEPS)
    assert (answer.status_code, answer.json()["call"]["refused_at"]) == (403, "grant")
    assert set(office.looks) == {RuleMoment.CALL}


@pytest.mark.req("TOOLS-10")
def test_a_new_rule_holds_when_the_call_is_claimed(
    office: OfficeHours, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    assert caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}).status_code == 202
    office.open = False

    bell.deliver()

    row = Invocation.objects.get()
    assert (row.state, row.reason) == ("cancelled", "AUTH.FORBIDDEN")
    assert kinds_of(row) == PAIR
    assert sandbox.calls == []
    assert office.looks == [RuleMoment.CALL, RuleMoment.CLAIM]


@pytest.mark.req("TOOLS-10")
def test_a_new_rule_holds_when_an_answer_is_given_again(
    office: OfficeHours, caller: Caller, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    first = caller.invoke(ECHO, {"text": "x"}, idempotency_key="k1")
    assert first.status_code == 200, first.json()
    assert caller.invoke(ECHO, {"text": "x"}, idempotency_key="k1").json()["data"] == first.json()["data"]
    office.open = False

    again = caller.invoke(ECHO, {"text": "x"}, idempotency_key="k1")

    assert (again.status_code, again.json()["error"]["message"]) == (403, "The office is closed.")
    assert again.json()["data"] is None
    assert len(sandbox.calls) == 1
    assert Fact.objects.filter(kind="invocation.replayed").count() == 1
    assert office.looks[-1] is RuleMoment.ANSWER


LISTS: dict[str, Callable[[Caller], list[str]]] = {
    "REST": lambda caller: list(caller.get("/tools?dialect=openai").json()["data"]["names"].values()),
    "MCP": lambda caller: [
        (each.meta or {})["toolhub/tool"] for each in list_tools_after("", by=caller.by, modern=True).tools
    ],
}


@pytest.mark.req("TOOLS-10")
@pytest.mark.parametrize("door", LISTS)
def test_a_new_rule_holds_in_lists_of_tools(door: str, office: OfficeHours, caller: Caller) -> None:
    assert LISTS[door](caller) == [ECHO]
    office.open = False

    assert LISTS[door](caller) == []
    assert set(office.looks) == {RuleMoment.LISTING}


def check_anything(look: Look) -> None:
    """A rule that asks by no moment."""


def check_call_only(look: CallLook) -> None:
    """A rule about what only a call has."""


@pytest.mark.req("TOOLS-10", "TOOLS-14")
def test_a_rule_holds_at_the_moments_whose_looks_its_check_takes() -> None:
    assert Rule("new", "grant", check_anything).holds_again == set(RuleMoment) - {RuleMoment.CALL}
    assert Rule("new", "grant", check_call_only).holds_again == set()
    assert [each.moment for each in LOOKS] == list(RuleMoment)
    assert all(RuleMoment.CALL in rules.read_moments(rule.check) for rule in RULES)


@pytest.mark.req("TOOLS-14")
def test_the_page_about_calls_says_where_each_rule_holds_again() -> None:
    words = {RuleMoment.CLAIM: "claim", RuleMoment.ANSWER: "answer", RuleMoment.LISTING: "lists"}
    _, *told = re.findall(r"^\| (\w+) \| (\w+) \| .* \| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert told == [
        (rule.step, rule.name, ", ".join(word for moment, word in words.items() if moment in rule.holds_again) or "–")
        for rule in RULES
    ]


NOTHING: Any = None


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("check", "look"),
    [
        (rules.check_tool, AnswerLook(NOTHING, NOTHING, NOTHING)),
        (rules.check_meant_for_model, ClaimLook(NOTHING, NOTHING)),
        (rules.check_consent, ListingLook(NOTHING, {})),
    ],
)
def test_a_rule_lets_nothing_pass_at_a_moment_that_it_does_not_know(check: Callable[[Any], object], look: Look) -> None:
    with pytest.raises(AssertionError):
        check(look)
