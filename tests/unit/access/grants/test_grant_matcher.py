"""Grant matcher: does a grant let through exactly the calls that it names, and does a refusal say the smallest one that would?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.grants.matcher import (
    CallRequirements,
    GrantValue,
    check_granted,
    find_covering_grants,
    grant_problem,
    holds_scope,
    missing_scopes,
    smallest_grant,
)
from access.problems import ConditionUnmet, NoGrant, ScopeMissing
from kernel.ids import encode, new_id
from unitools.expressions import Subject

NOW = datetime(2026, 11, 22, tzinfo=UTC)
AGENT, OTHER = new_id(), new_id()
TOOL = Subject("commerce.order.create", frozenset({"orders"}), "Write", "High", frozenset({"net"}))
READ = {"resource": "soul:fs:/data", "action": "read"}
EURO = {"pointer": "/currency", "op": "equals", "value": "EUR"}
SMALL = {"pointer": "/total", "op": "at_most", "value": 100}


def wanted(**changes: Any) -> CallRequirements:
    values: dict[str, Any] = {"tool": TOOL, "agent_id": AGENT, "agent_name": "assistant", "arguments": {}}
    return CallRequirements(**(values | changes))


def a_grant(tools: str = "*", **changes: Any) -> GrantValue:
    return GrantValue(new_id(), tools, **changes)


@pytest.mark.req("TOOLS-15")
def test_a_grant_covers_what_its_expression_names_for_its_agent_while_it_lasts() -> None:
    named = [a_grant(tools) for tools in ("*", "commerce.*", "commerce.order.create", "tag:orders", "~effect:Read")]
    not_named = [
        a_grant("commerce.pricing.*"),
        a_grant("commerce.orde.*"),
        a_grant("not an (expression"),
        a_grant(agent_id=OTHER),
        a_grant(expires_at=NOW),
    ]
    alive = a_grant(agent_id=AGENT, expires_at=NOW + timedelta(microseconds=1))

    found = find_covering_grants([*not_named, *named, alive], wanted(), now=NOW)

    assert {grant.id for grant in found} == {grant.id for grant in (*named, alive)}


def test_the_most_specific_grant_comes_first_and_the_agents_own_before_everybodys() -> None:
    tools = ["*", "tag:orders", "commerce.*", "commerce.order.*", "commerce.order.create"]
    everybodys = [a_grant(each) for each in tools]
    own = [a_grant(each, agent_id=AGENT) for each in tools]

    found = find_covering_grants([*everybodys, *own], wanted(), now=NOW)

    assert found == [*reversed(own), *reversed(everybodys)]


@pytest.mark.req("TOOLS-3")
@pytest.mark.parametrize(
    ("held", "asked", "holds"),
    [
        ("soul:fs:/data", "soul:fs:/data", True),
        ("soul:fs:/data", "soul:fs:/data/may.csv", True),
        ("soul:fs:/data/", "soul:fs:/data/may.csv", True),
        ("soul:fs:/data", "soul:fs:/database", False),
        ("soul:fs:/data", "soul:fs:/data/../etc", False),
        ("soul:fs:/data/x", "soul:fs:/data", False),
        ("soul:fs:", "soul:fs:/data", True),
        ("soul:fs", "soul:fsx:/data", False),
        ("soul:", "soul:net:example.org", True),
        ("soul:net:example", "soul:net:example.org", False),
    ],
)
def test_a_scope_holds_its_resource_and_what_is_below_it(held: str, asked: str, holds: bool) -> None:
    def scope(resource: str, action: str = "read") -> dict[str, str]:
        return {"resource": resource, "action": action}

    assert holds_scope(scope(held), scope(asked)) is holds
    assert holds_scope(scope(held, "*"), scope(asked)) is holds
    assert not holds_scope(scope(held, "write"), scope(asked))


def test_a_grant_without_scopes_bounds_none_and_one_with_an_empty_list_holds_none() -> None:
    assert missing_scopes(None, [READ]) == []
    assert missing_scopes([], [READ]) == [READ]
    assert missing_scopes([], []) == []


@pytest.mark.req("TOOLS-15")
def test_a_call_without_a_grant_is_told_the_smallest_one_ready_to_post() -> None:
    asked = wanted(scopes=[READ], capabilities={"net": [{"host": "shop.example"}]})

    with pytest.raises(NoGrant) as caught:
        check_granted([a_grant("other.*")], asked, now=NOW)

    smallest = caught.value.details["smallest_grant"]
    assert smallest == {
        "agent": encode("agt", AGENT),
        "tools": "commerce.order.create",
        "capabilities": {"net": [{"host": "shop.example"}]},
        "scopes": [READ],
        "conditions": [],
        "reason": "assistant needs commerce.order.create.",
    }
    answered = a_grant(smallest["tools"], agent_id=AGENT, scopes=smallest["scopes"], conditions=smallest["conditions"])
    assert check_granted([answered], asked, now=NOW) == [answered]


def test_a_scope_that_no_grant_holds_is_named() -> None:
    asked = wanted(scopes=[READ, {"resource": "soul:fs:/data", "action": "write"}])

    with pytest.raises(ScopeMissing, match="write on soul:fs:/data") as caught:
        check_granted([a_grant(scopes=[READ])], asked, now=NOW)

    assert caught.value.details["missing_scopes"] == [{"resource": "soul:fs:/data", "action": "write"}]
    assert caught.value.details["smallest_grant"]["scopes"] == list(asked.scopes)


def test_a_condition_that_is_not_met_is_named_without_the_argument() -> None:
    asked = wanted(arguments={"currency": "CHF-secret", "total": 5})

    with pytest.raises(ConditionUnmet, match="/currency must be") as caught:
        check_granted([a_grant(conditions=[EURO, SMALL])], asked, now=NOW)

    assert [each["pointer"] for each in caught.value.details["unmet"]] == ["/currency"]
    assert caught.value.details["smallest_grant"]["conditions"] == [SMALL]
    assert "secret" not in f"{caught.value.detail}{caught.value.remedy}{caught.value.details}"


def test_another_grant_that_covers_the_call_is_enough() -> None:
    narrow, wide = a_grant("commerce.order.create", conditions=[EURO]), a_grant("commerce.*")

    assert check_granted([narrow, wide], wanted(arguments={"currency": "CHF"}), now=NOW) == [wide]
    assert check_granted([narrow, wide], wanted(arguments={"currency": "EUR"}), now=NOW) == [narrow, wide]


def test_the_refusal_is_told_of_the_grant_that_lacks_least() -> None:
    far = a_grant("commerce.order.create", scopes=[], conditions=[EURO, SMALL])
    near = a_grant("*", conditions=[SMALL])

    problem = grant_problem([far, near], wanted(scopes=[READ], arguments={"total": 101}))

    assert isinstance(problem, ConditionUnmet)
    assert problem.details["grant"] == encode("grt", near.id)


SEGMENTS = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3)


@given(held=SEGMENTS, asked=SEGMENTS, more=SEGMENTS)
def test_a_scope_that_holds_something_holds_everything_below_it(
    held: list[str], asked: list[str], more: list[str]
) -> None:
    def scope(segments: list[str]) -> dict[str, str]:
        return {"resource": "soul:fs:/" + "/".join(segments), "action": "read"}

    assert holds_scope(scope(held), scope(asked)) is (asked[: len(held)] == held)
    if holds_scope(scope(held), scope(asked)):
        assert holds_scope(scope(held), scope([*asked, *more]))


@given(conditions=st.lists(st.sampled_from([EURO, SMALL]), unique_by=str), currency=st.sampled_from(["EUR", "CHF"]))
def test_the_smallest_grant_would_allow_the_very_call(conditions: list[Any], currency: str) -> None:
    asked = wanted(scopes=[READ], arguments={"currency": currency, "total": 101})
    refusing = a_grant(conditions=conditions, scopes=[])

    smallest = grant_problem([refusing], asked).details["smallest_grant"]
    given_now = a_grant(smallest["tools"], scopes=smallest["scopes"], conditions=smallest["conditions"])

    assert check_granted([refusing, given_now], asked, now=NOW) == [given_now]
    assert smallest_grant(asked)["tools"] == TOOL.id
