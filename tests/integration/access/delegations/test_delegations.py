"""Delegations: does a grant that agents hand on to each other let through what it should, for as long as it should, and is it
seen?
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.agents.services import disable_agent, enable_agent
from access.budgets.services import set_budget
from access.delegations.services import revoke_delegation
from access.grants import services as grants
from access.grants.attenuation import RequestedTerms
from access.halts import services as halts
from access.models import BudgetWindow, Grant, Reach
from access.problems import DelegationRefused, DelegationTooWide
from evidence.models import Fact
from kernel.problems import Conflict, SchemaInvalid
from tests.conftest import make_caller
from tests.support.calls import row_of
from tests.support.delegations import ECHO, SHORT, SOON, hand_on, leaf, refused_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-32", "TOOLS-15", "TOOLS-16")
def test_an_agent_calls_with_what_another_handed_on_and_no_further(
    caller: Caller, helper: Caller, enable: Callable[..., Tool], grant: Callable[..., Grant], bell: Bell
) -> None:
    enable()
    given = grant(may_delegate=1)
    assert refused_as(helper.invoke(ECHO, {"text": "hi"})) == "AUTH.NO_GRANT"

    handed_on = hand_on(given, caller, helper, RequestedTerms(tools=ECHO, conditions=[SHORT]))

    answer = helper.invoke(ECHO, {"text": "hi"})
    row = row_of(answer)
    assert answer.status_code == 200
    assert row.grant_id == handed_on.pk
    assert row.actors == [{"agent": caller.agent.wire_id, "grant": given.wire_id}]
    assert leaf("invocation.began")["actors"] == row.actors
    assert refused_as(helper.invoke(ECHO, {"text": "much longer"})) == "AUTH.CONDITION_UNMET"
    assert row_of(caller.invoke(ECHO, {"text": "much longer"})).actors == []
    assert "actors" not in leaf("invocation.began")


@pytest.mark.req("TOOLS-32")
def test_a_chain_is_named_from_its_beginning_and_counts_against_the_budget_of_each_grant(
    caller: Caller,
    helper: Caller,
    third: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable()
    given = grant(may_delegate=2, calls_limit=3)
    first = hand_on(given, caller, helper, depth=1, calls_limit=2)
    second = hand_on(first, helper, third)
    set_budget(scope="grant", dimension="calls", amount=100, grant_id=second.pk, by=operator.by)

    done = row_of(third.invoke(ECHO, {"text": "hi"}))

    assert done.actors == [
        {"agent": caller.agent.wire_id, "grant": given.wire_id},
        {"agent": helper.agent.wire_id, "grant": first.wire_id},
    ]
    assert {each["of"]: each["limit"] for each in done.budget if each["scope"] == "grant"} == {
        given.wire_id: 3,
        first.wire_id: 2,
        second.wire_id: 100,
    }
    used = {row.budget.grant_id: row.used for row in BudgetWindow.objects.select_related("budget")}
    assert used == {given.pk: 1, first.pk: 1, second.pk: 1}
    assert helper.invoke(ECHO, {"text": "hi"}).status_code == 200
    assert refused_as(third.invoke(ECHO, {"text": "hi"})) == "QUOTA.BUDGET_EXCEEDED"
    assert caller.invoke(ECHO, {"text": "hi"}).status_code == 200
    assert refused_as(caller.invoke(ECHO, {"text": "hi"})) == "QUOTA.BUDGET_EXCEEDED"


@pytest.mark.req("TOOLS-32", "TOOLS-15")
@pytest.mark.parametrize("what", ["revoke", "take_back", "expire", "disable the first", "disable the second", "halt"])
def test_whatever_ends_above_ends_everything_below_with_the_next_call(
    what: str,
    caller: Caller,
    helper: Caller,
    third: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable()
    given = grant(may_delegate=2, expires_at=SOON)
    first = hand_on(given, caller, helper, depth=1)
    second = hand_on(first, helper, third)

    def call() -> Any:
        return third.invoke(ECHO, {"text": "hi"})

    def seen() -> int:
        return len(third.get("/tools?view=llm").json()["data"]["tools"])

    assert call().status_code == 200
    assert seen() == 1

    match what:
        case "revoke":
            grants.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)
        case "take_back":
            revoke_delegation(grant_id=first.pk, by=caller.by)
        case "expire":
            Grant.objects.filter(pk=given.pk).update(expires_at=timezone.now())
        case "halt":
            halts.throw_halt(reach=Reach.AGENT, target=helper.agent.wire_id, reason="wait", by=operator.by)
        case _:
            gone = caller if what.endswith("first") else helper
            disable_agent(agent_id=gone.agent.pk, reason="gone", by=operator.by)

    assert refused_as(call()) == "AUTH.NO_GRANT"
    shown = Grant.objects.with_chain().get(pk=second.pk).state
    if what == "halt":
        return
    assert seen() == 0
    assert shown == {"revoke": "revoked", "take_back": "revoked", "expire": "expired"}.get(what, "suspended")
    listed = third.get(f"/grants?state={shown}").json()["data"]["grants"]
    assert second.wire_id in {each["id"] for each in listed}
    assert not [
        each for each in third.get("/grants?state=active").json()["data"]["grants"] if each["id"] == second.wire_id
    ]
    if shown == "suspended":
        enable_agent(agent_id=gone.agent.pk, reason="back", by=operator.by)
        assert call().status_code == 200


@pytest.mark.req("TOOLS-32", "TOOLS-15")
def test_a_call_that_waits_does_not_run_when_what_is_above_was_taken_back(
    caller: Caller, helper: Caller, enable: Callable[..., Tool], grant: Callable[..., Grant], bell: Bell
) -> None:
    enable()
    bell.answers = False
    first = hand_on(grant(may_delegate=1), caller, helper)
    waits = row_of(helper.invoke(ECHO, {"text": "hi"}, headers={"Prefer": "respond-async"}))
    revoke_delegation(grant_id=first.pk, by=caller.by)

    bell.deliver()

    waits.refresh_from_db()
    assert (waits.state, waits.reason) == ("cancelled", "AUTH.NO_GRANT")


WIDER: list[tuple[RequestedTerms, dict[str, Any], str]] = [
    (RequestedTerms(tools="*"), {}, "/tools"),
    (RequestedTerms(tools="sample.* | tag:x"), {}, "/tools"),
    (RequestedTerms(scopes=[{"resource": "soul:fs:/", "action": "read"}]), {}, "/scopes/0"),
    (RequestedTerms(capabilities={"net": [{"host": "a.example.org"}]}), {}, "/capabilities"),
    (RequestedTerms(), {"expires_at": SOON + timedelta(seconds=1)}, "/expires_at"),
    (RequestedTerms(), {"depth": 2}, "/depth"),
]


@pytest.mark.req("TOOLS-32", "TOOLS-15", "TOOLS-16")
@pytest.mark.parametrize(("asked", "more", "place"), WIDER)
def test_what_would_be_wider_is_refused_and_said(
    asked: RequestedTerms, more: dict[str, Any], place: str, caller: Caller, helper: Caller, grant: Callable[..., Grant]
) -> None:
    scopes = [{"resource": "soul:fs:/data", "action": "read"}]
    files = {"fs": [{"path": "/data", "actions": ["read"]}]}
    given = grant(may_delegate=2, expires_at=SOON, scopes=scopes, capabilities=files)

    with pytest.raises(DelegationTooWide) as caught:
        hand_on(given, caller, helper, asked, **more)

    assert [finding["pointer"] for finding in caught.value.details["findings"]] == [place]
    assert not Grant.objects.exclude(delegated_from=None).exists()
    assert not Fact.objects.filter(kind="delegation.given").exists()


@pytest.mark.req("TOOLS-32")
def test_nobody_hands_on_what_may_not_be_or_to_oneself_or_back(
    caller: Caller, helper: Caller, third: Caller, operator: Person, grant: Callable[..., Grant]
) -> None:
    plain, given = grant(), grant(may_delegate=3)
    with pytest.raises(DelegationRefused, match="may not be handed on"):
        hand_on(plain, caller, helper)
    with pytest.raises(DelegationRefused, match="to itself"):
        hand_on(given, caller, caller)
    first = hand_on(given, caller, helper, depth=1)
    second = hand_on(first, helper, third)
    with pytest.raises(DelegationRefused, match="handed back"):
        hand_on(first, helper, caller)
    with pytest.raises(DelegationRefused, match="any further"):
        hand_on(second, third, make_caller(operator.by, "fourth"))
    with pytest.raises(Grant.DoesNotExist):
        hand_on(given, helper, third)  # not its own
    disable_agent(agent_id=third.agent.pk, reason="gone", by=operator.by)
    with pytest.raises(Conflict, match="disabled"):
        hand_on(given, caller, third)
    grants.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)
    with pytest.raises(DelegationRefused, match="revoked"):
        hand_on(first, helper, make_caller(operator.by, "fifth"))


def test_only_operators_say_that_a_grant_may_be_handed_on_and_how_often(
    caller: Caller, grant: Callable[..., Grant], operator: Person
) -> None:
    for depth in (-1, 4):
        with pytest.raises(SchemaInvalid):
            grant(may_delegate=depth)
    with pytest.raises(SchemaInvalid):
        grants.give_grant(agent_id=None, tools="*", reason="x", may_delegate=1, by=operator.by)
    assert grant().may_delegate == 0
    assert "may_delegate" in leaf("grant.given")


def test_what_was_handed_on_is_not_extended_beyond_what_it_came_from(
    caller: Caller, helper: Caller, operator: Person, grant: Callable[..., Grant]
) -> None:
    given = grant(may_delegate=1, expires_at=SOON)
    first = hand_on(given, caller, helper, expires_at=SOON - timedelta(hours=1))

    for until in (None, SOON + timedelta(hours=1)):
        with pytest.raises(SchemaInvalid):
            grants.extend_grant(grant_id=first.pk, expires_at=until, reason="more", by=operator.by)

    assert grants.extend_grant(grant_id=first.pk, expires_at=SOON, reason="more", by=operator.by).expires_at == SOON
