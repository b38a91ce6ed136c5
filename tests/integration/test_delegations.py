"""Does a grant that agents hand on to each other let through what it should, for as long as it should, and is it seen?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access import grants, halts
from access.agents import disable_agent, enable_agent
from access.budgets.services import set_budget
from access.delegations import hand_on_grant, take_back_delegation
from access.models import BudgetWindow, Grant, Reach
from access.narrowing import Asked
from access.problems import DelegationRefused, DelegationTooWide
from evidence.models import Fact
from invocations.models import Invocation
from tests.calls import assert_problem, row_of
from tests.conftest import make_caller
from toolhub.kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.calls import Bell
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
SOON = timezone.now() + timedelta(days=1)
SHORT = {"pointer": "/text", "op": "length_at_most", "value": 5}


@pytest.fixture
def helper(caller: Caller, operator: Person) -> Caller:
    return make_caller(operator.by, "helper")


@pytest.fixture
def third(caller: Caller, operator: Person) -> Caller:
    return make_caller(operator.by, "third")


def hand_on(given: Grant, giver: Caller, to: Caller, asked: Asked | None = None, **more: Any) -> Grant:
    said: dict[str, Any] = {"expires_at": SOON, "purpose": "to help"} | more
    return hand_on_grant(grant_id=given.pk, to_agent_id=to.agent.pk, by=giver.by, asked=asked, **said)


def leaf(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(Fact.objects.filter(kind=kind).latest("id").leaf))["data"]
    return found


def refused_as(answer: Any) -> str | None:
    return answer.json()["error"]["reason"] if answer.status_code != 200 else None


@pytest.mark.req("TOOLS-32", "TOOLS-15", "TOOLS-16")
def test_an_agent_calls_with_what_another_handed_on_and_no_further(
    caller: Caller, helper: Caller, enable: Callable[..., Tool], grant: Callable[..., Grant], bell: Bell
) -> None:
    enable()
    given = grant(may_delegate=1)
    assert refused_as(helper.invoke(ECHO, {"text": "hi"})) == "AUTH.NO_GRANT"

    handed_on = hand_on(given, caller, helper, Asked(tools=ECHO, conditions=[SHORT]))

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
            take_back_delegation(grant_id=first.pk, by=caller.by)
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
    take_back_delegation(grant_id=first.pk, by=caller.by)

    bell.deliver()

    waits.refresh_from_db()
    assert (waits.state, waits.reason) == ("cancelled", "AUTH.NO_GRANT")


WIDER: list[tuple[Asked, dict[str, Any], str]] = [
    (Asked(tools="*"), {}, "/tools"),
    (Asked(tools="sample.* | tag:x"), {}, "/tools"),
    (Asked(scopes=[{"resource": "soul:fs:/", "action": "read"}]), {}, "/scopes/0"),
    (Asked(capabilities={"net": [{"host": "a.example.org"}]}), {}, "/capabilities"),
    (Asked(), {"expires_at": SOON + timedelta(seconds=1)}, "/expires_at"),
    (Asked(), {"depth": 2}, "/depth"),
]


@pytest.mark.req("TOOLS-32", "TOOLS-15", "TOOLS-16")
@pytest.mark.parametrize(("asked", "more", "place"), WIDER)
def test_what_would_be_wider_is_refused_and_said(
    asked: Asked, more: dict[str, Any], place: str, caller: Caller, helper: Caller, grant: Callable[..., Grant]
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


@pytest.mark.req("TOOLS-32")
def test_over_rest_an_agent_hands_on_sees_and_takes_back(
    caller: Caller, helper: Caller, third: Caller, foreign_caller: Caller, grant: Callable[..., Grant]
) -> None:
    given = grant(may_delegate=1)
    body = {
        "grant": given.wire_id,
        "to_agent": helper.agent.wire_id,
        "tools": ECHO,
        "conditions": [SHORT],
        "expires_at": SOON.isoformat(),
        "purpose": "to echo",
        "calls_limit": 5,
    }

    made = caller.post("/delegations", body)

    assert made.status_code == 201
    said = made.json()["data"]
    assert made.headers["Location"] == f"/api/v1/delegations/{said['id']}"
    assert (said["agent"], said["tools"], said["calls_limit"]) == (helper.agent.wire_id, ECHO, 5)
    assert said["actors"] == [{"agent": caller.agent.wire_id, "grant": given.wire_id}]
    assert (said["delegated_from"], said["given_by"]) == (given.wire_id, caller.by.id)
    for one, sees in ((caller, True), (helper, True), (third, False), (foreign_caller, False)):
        listed = [each["id"] for each in one.get("/delegations").json()["data"]["delegations"]]
        assert (listed == [said["id"]]) is sees
        assert (one.get(f"/delegations/{said['id']}").status_code == 200) is sees
    assert_problem(caller.post("/delegations", body | {"tools": "*"}), 403, "AUTH.DELEGATION_TOO_WIDE")
    assert caller.post("/delegations", body | {"to_agent": foreign_caller.agent.wire_id}).status_code == 404
    assert caller.post("/delegations", body | {"expires_at": None}).status_code == 422
    assert helper.delete(f"/delegations/{said['id']}").status_code == 404
    assert caller.delete(f"/delegations/{said['id']}").json()["data"]["state"] == "revoked"
    assert leaf("delegation.revoked")["agent"] == helper.agent.wire_id
    assert caller.delete(f"/delegations/{said['id']}").status_code == 409


def test_a_key_hands_nothing_on_unless_that_was_said(caller: Caller, operator: Person) -> None:
    plain = make_caller(operator.by, "plain", scopes=("grants:request",))

    assert plain.get("/delegations").status_code == 200
    assert_problem(plain.post("/delegations", {}), 403, "AUTH.FORBIDDEN")


@pytest.mark.req("TOOLS-32")
def test_calls_under_what_an_agent_handed_on_are_found_by_that_agent(
    caller: Caller,
    helper: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable()
    hand_on(grant(may_delegate=1), caller, helper)
    done = row_of(helper.invoke(ECHO, {"text": "hi"}))

    assert list(Invocation.objects.by_or_for(pk=caller.agent.pk)) == [done]
    assert list(Invocation.objects.by_or_for(name="helper")) == [done]
    assert caller.get(f"/invocations/{done.wire_id}").status_code == 404  # what was said in it is not the giver's


@pytest.mark.req("TOOLS-32")
def test_the_page_of_a_grant_shows_where_it_came_from_and_what_became_of_it(
    caller: Caller, helper: Caller, third: Caller, operator: Person
) -> None:
    client = operator.client()
    client.post(
        "/grants/new", {"agent": caller.agent.pk, "tools": "sample.*", "may_delegate": "2", "reason": "to share"}
    )
    given = Grant.objects.get()
    first = hand_on(given, caller, helper, depth=1)
    second = hand_on(first, helper, third, Asked(tools=ECHO))

    for page in (given, first, second):
        shown = client.get(f"/grants/{page.wire_id}")
        assert [(depth, grant.pk) for depth, grant in shown.context["tree"]] == [
            (0, given.pk),
            (1, first.pk),
            (2, second.pk),
        ]
        assert "Handed on" in shown.content.decode()
    grants.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)
    assert client.get(f"/grants/{second.wire_id}").content.decode().count("Revoked") >= 3
    assert second.wire_id in client.get("/grants?state=revoked").content.decode()


@pytest.mark.req("TOOLS-32")
def test_who_decides_sees_for_whom_the_agent_calls(
    caller: Caller,
    helper: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable("write", side_effect="Write", idempotency="keyed", dry_run=True)
    given = grant(may_delegate=1)
    hand_on(given, caller, helper)
    body: dict[str, Any] = {"on_consent": "hold", "purpose": "to write", "idempotency_key": "k"}

    held = row_of(helper.invoke("sample.tools.write", {"text": "hi"}, **body))

    assert held.state == "held"
    assert held.consent is not None
    assert held.consent.agent_id == helper.agent.pk  # the consent is for who calls
    for path in (f"/consents/{held.consent.wire_id}", f"/invocations/{held.wire_id}"):
        assert "which handed the grant on" in operator.client().get(path).content.decode()
    operator.client().post(
        f"/consents/{held.consent.wire_id}/decision", {"decision": "approve", "mode": "once", "reason": "good"}
    )
    bell.deliver()
    held.refresh_from_db()
    assert held.actors == [{"agent": caller.agent.wire_id, "grant": given.wire_id}]


@pytest.mark.req("TOOLS-32")
def test_what_is_handed_on_unasked_stands_in_the_way_of_nothing(
    caller: Caller,
    helper: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
    operator: Person,
) -> None:
    """An agent that hands on little, of the very tool, neither narrows what another may do nor gets to see its calls."""
    enable()
    given = grant(may_delegate=1)
    own = grants.give_grant(agent_id=helper.agent.pk, tools="sample.*", reason="its work", by=operator.by)
    hand_on(given, caller, helper, Asked(tools=ECHO, capabilities={}, conditions=[]))

    row = row_of(helper.invoke(ECHO, {"text": "hi"}))

    assert (row.grant_id, row.actors) == (own.pk, [])


def test_nobody_is_handed_more_than_can_be_looked_at_with_each_call(
    caller: Caller, helper: Caller, grant: Callable[..., Grant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("access.delegations.MAX_IN_FORCE", 2)
    for _ in range(2):
        hand_on(grant(may_delegate=1), caller, helper)

    with pytest.raises(Conflict, match="2 grants of other agents already"):
        hand_on(grant(may_delegate=1), caller, helper)
