"""Grants and keys: are grants, keys, agents and memberships given only as they may be, and is each a fact?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone

from access import services as access
from access.agents.api_keys import compute_digest
from access.middleware import principal_of_user
from access.models import Agent, ApiKey, Grant, Membership
from access.problems import SelfApproval
from access.roles import ROLE_PERMISSIONS, Role
from evidence.models import Fact
from evidence.services import open_free_text
from kernel.principal import Principal
from kernel.problems import Conflict, SchemaInvalid
from tests.conftest import make_caller, make_person

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def give(caller: Caller, by: Principal, **changes: Any) -> Grant:
    arguments: dict[str, Any] = {"agent_id": caller.agent.pk, "tools": "*", "reason": "why", "by": by}
    return access.give_grant(**(arguments | changes))


def test_a_grant_is_a_fact_with_its_reason(caller: Caller, operator: Person) -> None:
    given = give(caller, operator.by, tools="sample.*", reason=" sells goods ", calls_limit=5)

    fact = Fact.objects.get(kind="grant.given")
    assert (fact.subject, fact.actor_id) == (given.wire_id, operator.by.id)
    assert open_free_text(fact) == {"reason": "sells goods"}
    assert b"sells goods" not in bytes(fact.leaf)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"tools": "sample"}, "/tools"),
        ({"tools": "sample.tools.echo.more"}, "/tools"),
        ({"tools": "Sample.*"}, "/tools"),
        ({"tools": "sample.t*"}, "/tools"),
        ({"tools": ""}, "/tools"),
        ({"reason": "  "}, "/reason"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "/expires_at"),
        ({"capabilities": {"fs": [{"path": "relative", "actions": ["read"]}]}}, "/capabilities"),
        ({"capabilities": {"fs": [{"path": "/a/../b", "actions": ["read"]}]}}, "/capabilities"),
        ({"capabilities": {"fs": [{"actions": ["read"]}]}}, "/capabilities"),
        ({"capabilities": {"net": "everything"}}, "/capabilities"),
        ({"capabilities": []}, "/capabilities"),
        ({"capabilities": {"proc": [1, "/bin/sh"]}}, "/capabilities"),
        ({"capabilities": {"net": [{"host": 5}]}}, "/capabilities"),
        ({"capabilities": {"tmp": 2**60}}, "/capabilities"),
        ({"capabilities": {"nte": []}}, "/capabilities"),
        ({"capabilities": {"fs": [{"path": f"/{n}", "actions": ["read"]} for n in range(20_000)]}}, "/capabilities"),
        (
            {"capabilities": {"fs": [{"path": f"/{n}" + "x" * 390, "actions": ["read"]} for n in range(50)]}},
            "/capabilities",
        ),
    ],
)
def test_a_grant_that_means_nothing_is_refused_at_its_field(
    changes: dict[str, Any], pointer: str, caller: Caller, operator: Person
) -> None:
    with pytest.raises(SchemaInvalid) as caught:
        give(caller, operator.by, **changes)

    assert [finding["pointer"] for finding in caught.value.details["findings"]] == [pointer]
    assert not Grant.objects.exists()


@pytest.mark.req("TOOLS-15")
def test_an_agent_cannot_give_itself_a_grant(caller: Caller) -> None:
    with pytest.raises(SelfApproval):
        give(caller, caller.by)


def test_an_agent_that_is_disabled_gets_no_grant(caller: Caller, operator: Person) -> None:
    Agent.objects.update(disabled_at=timezone.now())

    with pytest.raises(Conflict):
        give(caller, operator.by)


@pytest.mark.req("TOOLS-22")
def test_nobody_gives_or_revokes_across_tenants(caller: Caller, operator: Person, stranger: Person) -> None:
    given = give(caller, operator.by)

    with pytest.raises(Agent.DoesNotExist):
        give(caller, stranger.by)
    with pytest.raises(Grant.DoesNotExist):
        access.revoke_grant(grant_id=given.pk, reason="x", by=stranger.by)


def test_a_grant_is_revoked_once(caller: Caller, operator: Person) -> None:
    given = give(caller, operator.by)
    access.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)

    with pytest.raises(Conflict):
        access.revoke_grant(grant_id=given.pk, reason="again", by=operator.by)
    assert Fact.objects.filter(kind="grant.revoked").count() == 1


def test_grants_over_rest_are_given_listed_and_revoked(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "other")

    made = caller.post("/grants", {"agent": other.agent.wire_id, "tools": "sample.*", "reason": "why"})
    listed = caller.get("/grants")
    taken = caller.post(f"/grants/{made.json()['data']['id']}/revoke", {"reason": "enough"})

    assert (made.status_code, listed.status_code, taken.status_code) == (201, 200, 200)
    assert [grant["id"] for grant in listed.json()["data"]["grants"]] == [made.json()["data"]["id"]]
    assert taken.json()["data"]["state"] == "revoked"


@pytest.mark.parametrize(
    ("agent", "status"), [("agt_nonsense", 404), ("agt_" + "0" * 26, 404), ("itself", 403), ("foreign", 404)]
)
def test_grants_over_rest_are_refused_like_everywhere(
    agent: str, status: int, caller: Caller, foreign_caller: Caller
) -> None:
    names = {"itself": caller.agent.wire_id, "foreign": foreign_caller.agent.wire_id}

    answer = caller.post("/grants", {"agent": names.get(agent, agent), "tools": "*", "reason": "why"})

    assert answer.status_code == status, answer.json()
    assert not Grant.objects.exists()


# Keys.


def test_a_key_is_stored_as_a_hash_only(caller: Caller) -> None:
    row = ApiKey.objects.get()

    assert bytes(row.digest) == compute_digest(caller.key)
    assert caller.key.startswith(f"hub_live_{row.lookup}_")
    stored = repr(ApiKey.objects.values().get()) + "".join(bytes(fact.leaf).decode() for fact in Fact.objects.all())
    assert caller.key not in stored
    assert caller.key.rpartition("_")[2] not in stored


def test_a_revoked_key_stops_counting_with_the_next_request(caller: Caller, operator: Person) -> None:
    assert caller.get("/tools").status_code == 200

    access.revoke_key(key_id=ApiKey.objects.get().pk, by=operator.by)
    access.revoke_key(key_id=ApiKey.objects.get().pk, by=operator.by)

    assert caller.get("/tools").status_code == 401
    assert Fact.objects.filter(kind="key.revoked").count() == 1


def test_a_key_of_another_tenant_cannot_be_revoked(caller: Caller, stranger: Person) -> None:
    with pytest.raises(ApiKey.DoesNotExist):
        access.revoke_key(key_id=ApiKey.objects.get().pk, by=stranger.by)


def test_a_scope_that_does_not_exist_is_refused(caller: Caller, operator: Person) -> None:
    with pytest.raises(SchemaInvalid, match="tools:all"):
        access.create_key(agent=caller.agent, scopes=("tools:all",), by=operator.by)


def test_two_agents_of_one_name_are_refused_within_a_tenant_only(
    caller: Caller, operator: Person, stranger: Person
) -> None:
    with pytest.raises(Conflict):
        access.create_agent(name="assistant", by=operator.by)

    assert access.create_agent(name="assistant", by=stranger.by)


# People.


def test_a_role_given_twice_is_given_once(tenant: Tenant, operator: Person) -> None:
    by = Principal.system("test", tenant_id=tenant.pk)
    access.give_membership(tenant=tenant, user=operator.user, role=Role.OPERATOR, by=by)

    assert Membership.objects.filter(user=operator.user).count() == 1
    assert Fact.objects.filter(kind="membership.given", subject=f"usr_{operator.user.pk}").count() == 1


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("role", list(Role))
def test_a_role_holds_its_permissions_in_its_tenant_only(role: Role, tenant: Tenant, foreign_tenant: Tenant) -> None:
    person = make_person(tenant, "pat", role)

    assert person.by.allowed == ROLE_PERMISSIONS[role]
    assert principal_of_user(person.user, foreign_tenant).allowed == frozenset()


def test_no_role_may_both_decide_and_reveal() -> None:
    both = {role for role, held in ROLE_PERMISSIONS.items() if {"consents.decide", "evidence.reveal"} <= held}

    assert both == set()


def test_a_person_of_two_tenants_sees_one_at_a_time(
    tenant: Tenant, foreign_tenant: Tenant, caller: Caller, foreign_caller: Caller, operator: Person, stranger: Person
) -> None:
    access.give_membership(
        tenant=foreign_tenant,
        user=operator.user,
        role=Role.AUDITOR,
        by=Principal.system("test", tenant_id=foreign_tenant.pk),
    )
    mine, theirs = give(caller, operator.by), give(foreign_caller, stranger.by)
    client = operator.client()

    assert (client.get(f"/grants/{mine.wire_id}").status_code, client.get(f"/grants/{theirs.wire_id}").status_code) == (
        200,
        404,
    )
    client.post("/tenant", {"tenant": foreign_tenant.wire_id})
    assert (client.get(f"/grants/{mine.wire_id}").status_code, client.get(f"/grants/{theirs.wire_id}").status_code) == (
        404,
        200,
    )
    assert client.get("/grants/new").status_code == 403  # an auditor there


@pytest.mark.parametrize("tenant_id", ["", "nonsense", "ten_" + "0" * 26])
def test_nobody_switches_to_a_tenant_that_is_not_theirs(tenant_id: str, operator: Person) -> None:
    assert operator.client().post("/tenant", {"tenant": tenant_id}).status_code == 404


def test_somebody_who_is_not_signed_in_switches_nothing(foreign_tenant: Tenant) -> None:
    client = Client()

    assert client.post("/tenant", {"tenant": foreign_tenant.wire_id}).status_code == 302
    assert "tenant" not in client.session


def test_windows_of_calls_belong_to_the_grant(caller: Caller, grant: Callable[..., Any]) -> None:
    given = grant()

    assert given.state == "active"
    Grant.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    given.refresh_from_db()
    assert given.state == "expired"
