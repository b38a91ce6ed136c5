"""Grants: are grants given, extended, asked for and taken back as they may be, over services and REST?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.grants import requests
from access.grants import services as grants
from access.grants.services import give_grant
from access.models import Agent, Delivery, Grant, GrantRequest, Notification
from access.problems import SelfApproval
from evidence.models import Fact
from kernel.ids import new_id
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_caller
from tests.support.calls import assert_problem
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from kernel.principal import Principal
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
EURO = {"pointer": "/currency", "op": "equals", "value": "EUR"}
READ = {"resource": "soul:fs:/data", "action": "read"}


def give(caller: Caller, by: Principal, **changes: Any) -> Grant:
    arguments: dict[str, Any] = {"agent_id": caller.agent.pk, "tools": "*", "reason": "why", "by": by}
    return give_grant(**(arguments | changes))


def ask(caller: Caller, **changes: Any) -> GrantRequest:
    said: dict[str, Any] = {"agent_id": caller.agent.pk, "tools": "sample.*", "purpose": "to sell", "by": caller.by}
    return requests.request_grant(**(said | changes))


# Giving.


@pytest.mark.parametrize("tools", ["*", "a.b.c", "a.*", "a.b.*", "tag:x & ~effect:Write", "(safety:Low | domain:net)"])
def test_a_grant_names_tools_by_an_expression(tools: str, caller: Caller, operator: Person) -> None:
    assert give(caller, operator.by, tools=tools).tools == tools


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"tools": "a.b.c.d"}, "/tools"),
        ({"tools": "tag:x &"}, "/tools"),
        ({"tools": "colour:red"}, "/tools"),
        ({"tools": "a." * 300}, "/tools"),
        ({"scopes": {}}, "/scopes"),
        ({"scopes": ["read"]}, "/scopes"),
        ({"scopes": [{"resource": "/data", "action": "read"}]}, "/scopes"),
        ({"scopes": [READ | {"note": "x"}]}, "/scopes"),
        ({"scopes": [{"resource": "soul:fs:/" + "x" * 300, "action": "read"}] * 5}, "/scopes"),
        ({"conditions": [{"pointer": "/a", "op": "like"}]}, "/conditions/0/op"),
        ({"conditions": ["x"]}, "/conditions/0"),
    ],
)
def test_terms_that_mean_nothing_are_refused_at_their_place(
    changes: dict[str, Any], pointer: str, caller: Caller, operator: Person
) -> None:
    for call in (lambda: give(caller, operator.by, **changes), lambda: ask(caller, **changes)):
        with pytest.raises(SchemaInvalid) as caught:
            call()
        assert [finding["pointer"] for finding in caught.value.details["findings"]] == [pointer]
    assert not Grant.objects.exists()
    assert not GrantRequest.objects.exists()


def test_the_largest_grant_fits_into_its_fact(caller: Caller, operator: Person) -> None:
    scopes = [{"resource": "soul:fs:/" + "x" * 80, "action": "read"}] * 8
    conditions = [{"pointer": "/a", "op": "equals", "value": "x" * 1900}]
    bounds = {"fs": [{"path": f"/{number}" + "é" * 150, "actions": ["read"]} for number in range(20)]}

    give(
        caller,
        operator.by,
        tools=" | ".join(["tag:" + "x" * 39] * 10),
        reason="\x01" * 500,
        scopes=scopes,
        conditions=conditions,
        capabilities=bounds,
    )

    assert Fact.objects.filter(kind="grant.given").count() == 1


def test_a_grant_may_be_for_every_agent_but_not_from_an_agent(caller: Caller, operator: Person) -> None:
    everybodys = give(caller, operator.by, agent_id=None, conditions=[EURO], scopes=[READ])

    assert everybodys.agent is None
    assert b'"agent":"*"' in bytes(Fact.objects.get(kind="grant.given").leaf)
    with pytest.raises(SelfApproval):
        give(caller, caller.by, agent_id=None)


@pytest.mark.parametrize("agent", ["disabled", "deleted", "foreign"])
def test_an_agent_that_is_not_in_use_gets_no_grant_and_asks_for_none(
    agent: str, caller: Caller, foreign_caller: Caller, operator: Person
) -> None:
    agent_id = {"disabled": caller.agent.pk, "deleted": new_id(), "foreign": foreign_caller.agent.pk}[agent]
    Agent.objects.filter(pk=caller.agent.pk).update(disabled_at=timezone.now())
    expected = Conflict if agent == "disabled" else Agent.DoesNotExist

    with pytest.raises(expected):
        give(caller, operator.by, agent_id=agent_id)
    with pytest.raises(expected):
        ask(caller, agent_id=agent_id, by=operator.by)
    assert not Fact.objects.filter(kind__startswith="grant.").exists()


# Extending and taking back.


def test_a_grant_in_force_may_hold_longer_and_never_shorter(caller: Caller, operator: Person) -> None:
    soon, later = (timezone.now() + timedelta(days=days) for days in (1, 9))
    given = give(caller, operator.by, expires_at=soon)

    def extend(to: Any) -> Grant:
        return grants.extend_grant(grant_id=given.pk, expires_at=to, reason="more work", by=operator.by)

    assert extend(later).expires_at == later
    for to in (soon, later):
        with pytest.raises(SchemaInvalid):
            extend(to)
    assert extend(None).expires_at is None
    with pytest.raises(SchemaInvalid):
        extend(None)
    assert Fact.objects.filter(kind="grant.extended", subject=given.wire_id).count() == 2


@pytest.mark.parametrize("ended", ["revoked", "expired", "disabled", "foreign", "own"])
def test_a_grant_that_is_not_in_force_is_not_extended(
    ended: str, caller: Caller, operator: Person, stranger: Person
) -> None:
    given = give(caller, operator.by, expires_at=timezone.now() + timedelta(days=1))
    by: Principal = operator.by
    error: type[Exception] = Conflict
    match ended:
        case "revoked":
            grants.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)
        case "expired":
            Grant.objects.update(expires_at=timezone.now())
        case "disabled":
            Agent.objects.update(disabled_at=timezone.now())
        case "foreign":
            by, error = stranger.by, Grant.DoesNotExist
        case "own":
            by, error = caller.by, SelfApproval

    with pytest.raises(error):
        grants.extend_grant(grant_id=given.pk, expires_at=None, reason="more", by=by)
    assert not Fact.objects.filter(kind="grant.extended").exists()


def test_several_grants_are_revoked_at_once_all_or_none(caller: Caller, operator: Person, stranger: Person) -> None:
    ids = [give(caller, operator.by).pk for _ in range(3)]

    for wrong, by in (([*ids, new_id()], operator.by), (ids, stranger.by)):
        with pytest.raises(Grant.DoesNotExist):
            grants.revoke_grants(grant_ids=wrong, reason="enough", by=by)
    assert not Grant.objects.exclude(revoked_at=None).exists()

    assert grants.revoke_grants(grant_ids=ids, reason="enough", by=operator.by) == 3
    assert Fact.objects.filter(kind="grant.revoked").count() == 3


# Asking.


def test_asking_again_while_a_request_waits_gives_the_same_request(caller: Caller) -> None:
    Notification.objects.create(
        tenant_id=caller.by.tenant_id, channel="email", target="ops@example.org", events=["grant.requested"]
    )
    first, second = ask(caller), ask(caller, purpose="other words")

    assert first.pk == second.pk
    assert Fact.objects.filter(kind="grant.requested", subject=first.wire_id).count() == 1
    assert Delivery.objects.get().body["url"] == f"/grants/requests/{first.wire_id}"


@pytest.mark.django_db(transaction=True)
def test_asking_at_once_makes_one_request(caller: Caller) -> None:
    found = at_once(6, lambda number: ask(caller).pk)

    assert len(set(found)) == 1, found
    assert Fact.objects.filter(kind="grant.requested").count() == 1


def test_an_agent_asks_for_itself_and_a_person_for_any_agent(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other")

    with pytest.raises(Forbidden):
        ask(caller, agent_id=other.agent.pk)
    assert ask(caller, agent_id=other.agent.pk, by=operator.by).requested_by == operator.by.id
    with pytest.raises(SchemaInvalid):
        ask(caller, purpose=" ")


def test_requests_do_not_pile_up_without_end(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_WAITING", 2)
    ask(caller, tools="a.*")
    ask(caller, tools="b.*")

    with pytest.raises(Conflict):
        ask(caller, tools="c.*")


def test_a_request_becomes_a_grant_that_names_it_once(caller: Caller, operator: Person) -> None:
    asked = ask(caller, scopes=[READ])
    given = requests.approve_request(
        request_id=asked.pk, tools="sample.tools.echo", scopes=[READ], reason="narrowed", by=operator.by
    )

    asked.refresh_from_db()
    assert (asked.state, asked.grant_id, asked.decided_by) == ("granted", given.pk, operator.by.id)
    assert (given.source, given.tools, given.agent_id) == (asked.wire_id, "sample.tools.echo", caller.agent.pk)
    with pytest.raises(Conflict):
        requests.approve_request(request_id=asked.pk, tools="*", reason="again", by=operator.by)
    with pytest.raises(Conflict):
        requests.decline_request(request_id=asked.pk, reason="no", by=operator.by)
    assert Grant.objects.count() == 1


def test_only_people_who_may_give_grants_answer(
    caller: Caller, operator: Person, developer: Person, stranger: Person
) -> None:
    asked = ask(caller)

    for by, error in ((caller.by, Forbidden), (developer.by, Forbidden), (stranger.by, GrantRequest.DoesNotExist)):
        with pytest.raises(error):
            requests.approve_request(request_id=asked.pk, tools="*", reason="x", by=by)
        with pytest.raises(error):
            requests.decline_request(request_id=asked.pk, reason="x", by=by)
    with pytest.raises(SchemaInvalid):
        requests.decline_request(request_id=asked.pk, reason=" ", by=operator.by)

    declined = requests.decline_request(request_id=asked.pk, reason="too wide", by=operator.by)
    assert (declined.state, declined.decision_reason) == ("declined", "too wide")
    assert Fact.objects.filter(kind="grant.declined", subject=asked.wire_id).count() == 1


# REST.


@pytest.mark.req("TOOLS-22")
def test_grants_over_rest_are_read_filtered_and_extended(
    caller: Caller, foreign_caller: Caller, operator: Person
) -> None:
    other = make_caller(operator.by, "other")
    until = (timezone.now() + timedelta(days=1)).isoformat()
    body = {"agent": other.agent.wire_id, "tools": "tag:x", "reason": "why", "conditions": [EURO], "expires_at": until}
    made = caller.post("/grants", body).json()["data"]
    give(caller, operator.by, agent_id=None)

    assert caller.get(f"/grants/{made['id']}").json()["data"] == made
    assert made["conditions"] == [EURO]
    assert made["origin"] == "api"
    assert foreign_caller.get(f"/grants/{made['id']}").status_code == 404
    assert [each["id"] for each in caller.get("/grants?agent=" + other.agent.wire_id).json()["data"]["grants"]] == [
        made["id"]
    ]
    assert [each["agent"] for each in caller.get("/grants?agent=*").json()["data"]["grants"]] == ["*"]
    assert caller.get("/grants?state=revoked").json()["data"]["grants"] == []
    assert_problem(caller.get("/grants?state=lost"), 422, "SCHEMA.VALIDATION_FAILED")
    extended = caller.post(f"/grants/{made['id']}/extend", {"expires_at": None, "reason": "more"})
    assert extended.json()["data"]["expires_at"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"conditions": 5},
        {"conditions": {"pointer": "/a"}},
        {"conditions": None},
        {"scopes": "all"},
        {"capabilities": 5},
        {"tools": ["*"]},
        {"expires_at": "tomorrow"},
        {"toolz": "*"},
    ],
)
def test_a_body_that_is_not_one_is_answered_as_such(body: dict[str, Any], caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other")

    for path, more in (("/grants", {"agent": other.agent.wire_id, "reason": "why"}), ("/grants/requests", {})):
        assert_problem(caller.post(path, {"tools": "*", **more, **body}), 422, "SCHEMA.VALIDATION_FAILED")
    assert not Grant.objects.exists()


def test_a_grant_is_asked_for_over_rest_and_its_answer_read(
    caller: Caller, foreign_caller: Caller, operator: Person
) -> None:
    other = make_caller(operator.by, "other")
    asked = caller.post("/grants/requests", {"tools": "sample.*", "purpose": "to sell"})
    path = asked.headers["Location"].removeprefix("/api/v1")

    assert asked.status_code == 201
    assert caller.get(path).json()["data"]["state"] == "waiting"
    assert [each["id"] for each in caller.get("/grants/requests").json()["data"]["requests"]] == [
        asked.json()["data"]["id"]
    ]
    for somebody in (other, foreign_caller):
        assert somebody.get(path).status_code == 404
    requests.decline_request(request_id=GrantRequest.objects.get().pk, reason="too wide", by=operator.by)
    answered = caller.get(path).json()["data"]
    assert (answered["state"], answered["reason"], answered["grant"]) == ("declined", "too wide", None)
