"""Agents and keys: how do agents and keys come, change hands and go?"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from access.agents import services as agents
from access.authentication import bearer
from access.grants import services as grants
from access.issuers import services as issuers
from access.models import Agent, ApiKey
from access.problems import SelfApproval
from access.roles import AGENT_SCOPES
from access.separation_of_duties import controls_agent
from evidence.models import Fact
from kernel.principal import Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_caller
from tests.support.populated_tenant import JWKS

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """With a key that an operator may rotate."""
    return make_caller(Principal.system("test", tenant_id=tenant.pk), scopes=AGENT_SCOPES)


def status(key: str, address: str = "127.0.0.1") -> int:
    answer = Client(REMOTE_ADDR=address).get("/api/v1/tools", headers={"Authorization": f"Bearer {key}"})
    return int(answer.status_code)


def end(key: ApiKey) -> None:
    ApiKey.objects.filter(pk=key.pk).update(
        created_at=timezone.now() - timedelta(days=9), expires_at=timezone.now() - timedelta(seconds=1)
    )


@pytest.mark.req("TOOLS-15")
def test_a_rotated_key_and_its_successor_work_until_the_overlap_ends(caller: Caller, operator: Person) -> None:
    old = ApiKey.objects.get()

    new, text = agents.rotate_key(key_id=old.pk, by=operator.by, overlap=timedelta(days=1))

    assert (status(caller.key), status(text)) == (200, 200)
    assert (new.scopes, new.networks, new.replaces) == (old.scopes, old.networks, old)
    old.refresh_from_db()
    assert old.expires_at - timezone.now() <= timedelta(days=1)
    end(old)
    assert (status(caller.key), status(text)) == (401, 200)
    fact = Fact.objects.get(kind="key.rotated")
    assert fact.subject == old.wire_id
    assert text.encode() not in bytes(fact.leaf)


@pytest.mark.req("TOOLS-15")
def test_at_most_two_keys_of_a_line_work(caller: Caller, operator: Person) -> None:
    first = ApiKey.objects.get()
    second, _ = agents.rotate_key(key_id=first.pk, by=operator.by)

    for key in (first, second):
        with pytest.raises(Conflict):
            agents.rotate_key(key_id=key.pk, by=operator.by)
    agents.revoke_key(key_id=first.pk, by=operator.by)
    third, _ = agents.rotate_key(key_id=second.pk, by=operator.by, overlap=timedelta(0))

    assert [agents.is_live(ApiKey.objects.get(pk=key.pk)) for key in (first, second, third)] == [False, False, True]
    with pytest.raises(Conflict, match="does not work any more"):
        agents.rotate_key(key_id=first.pk, by=operator.by)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("networks", "address", "expected"),
    [
        (["192.0.2.0/24"], "192.0.2.7", 200),
        (["192.0.2.0/24"], "192.0.3.7", 401),
        (["192.0.2.0/24"], "::ffff:192.0.2.7", 200),
        (["2001:db8::/32"], "2001:db8::1", 200),
        (["2001:db8::/32"], "192.0.2.7", 401),
        (["192.0.2.9", "10.0.0.0/8"], "10.9.9.9", 200),
        (["0.0.0.0/0"], "", 401),
        ([], "203.0.113.5", 200),
    ],
)
def test_a_key_may_be_bound_to_networks(
    networks: list[str], address: str, expected: int, caller: Caller, operator: Person
) -> None:
    _, text = agents.create_key(agent=caller.agent, by=operator.by, scopes=["tools:read"], networks=networks)

    assert status(text, address) == expected


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    "wrong",
    [
        {"networks": ["not a network"]},
        {"networks": [f"10.0.{n}.0/24" for n in range(33)]},
        {"scopes": ["tools:everything"]},
        {"expires_at": timezone.now() - timedelta(seconds=1)},
        {"expires_at": timezone.now() + timedelta(days=400)},
    ],
)
def test_a_key_that_cannot_be_is_not_made(wrong: dict[str, Any], caller: Caller, operator: Person) -> None:
    with pytest.raises(SchemaInvalid):
        agents.create_key(agent=caller.agent, by=operator.by, **wrong)

    assert ApiKey.objects.count() == 1


@pytest.mark.req("TOOLS-15")
def test_the_last_use_is_written_at_most_once_a_minute(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def used() -> Any:
        return ApiKey.objects.get().last_used_at

    assert used() is None
    status(caller.key)
    first = used()
    status(caller.key)
    assert used() == first
    monkeypatch.setattr(bearer, "USED_EVERY", timedelta(0))
    status(caller.key)
    assert used() > first


@pytest.mark.req("TOOLS-15")
def test_a_hub_that_cannot_write_the_last_use_answers_all_the_same(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def filter(self, *_: Any, **__: Any) -> Any:
            raise DatabaseError("locked")

    key = ApiKey.objects.select_related("agent").get()
    monkeypatch.setattr(ApiKey, "objects", Broken())

    bearer.note_use(key)

    assert key.last_used_at is None


@pytest.mark.req("TOOLS-15")
def test_a_disabled_agent_is_refused_with_the_next_request_and_enabled_again(caller: Caller, operator: Person) -> None:
    assert status(caller.key) == 200
    agents.disable_agent(agent_id=caller.agent.pk, reason="it went wild", by=operator.by)
    assert status(caller.key) == 401
    with pytest.raises(Conflict):
        agents.disable_agent(agent_id=caller.agent.pk, reason="again", by=operator.by)

    agents.enable_agent(agent_id=caller.agent.pk, reason="it is calm", by=operator.by)

    assert status(caller.key) == 200
    kinds = list(Fact.objects.filter(subject=caller.agent.wire_id).order_by("id").values_list("kind", flat=True))
    assert kinds == ["agent.created", "agent.disabled", "agent.enabled"]


@pytest.mark.req("TOOLS-22")
def test_agents_of_another_tenant_are_not_found(caller: Caller, stranger: Person) -> None:
    with pytest.raises(Agent.DoesNotExist):
        agents.disable_agent(agent_id=caller.agent.pk, reason="x", by=stranger.by)
    with pytest.raises(Agent.DoesNotExist):
        agents.create_key(agent=caller.agent, by=stranger.by)
    with pytest.raises(ApiKey.DoesNotExist):
        agents.rotate_key(key_id=ApiKey.objects.get().pk, by=stranger.by)


# Who stands behind an agent.


@pytest.mark.req("TOOLS-19")
def test_who_made_an_agent_or_ever_a_key_of_it_controls_it(
    operator: Person, second_operator: Person, auditor: Person
) -> None:
    agent = agents.create_agent(name="mine", by=operator.by)
    key, _ = agents.create_key(agent=agent, by=second_operator.by)

    assert controls_agent(operator.by.id, agent.pk)
    assert controls_agent(second_operator.by.id, agent.pk)
    assert not controls_agent(auditor.by.id, agent.pk)
    agents.revoke_key(key_id=key.pk, by=operator.by)
    assert controls_agent(second_operator.by.id, agent.pk)


@pytest.mark.req("TOOLS-19")
def test_who_let_tokens_speak_for_an_agent_controls_it_also_afterwards(
    caller: Caller, operator: Person, second_operator: Person, auditor: Person
) -> None:
    issuer = issuers.trust_issuer(issuer="https://idp.example.org", audience="hub", jwks=JWKS, by=operator.by)
    mapped = issuers.map_identity(
        issuer_id=issuer.pk, subject="x", agent_id=caller.agent.pk, scopes=["tools:read"], by=second_operator.by
    )
    issuers.unmap_identity(identity_id=mapped.pk, by=second_operator.by)

    assert controls_agent(operator.by.id, caller.agent.pk)
    assert controls_agent(second_operator.by.id, caller.agent.pk)
    assert not controls_agent(auditor.by.id, caller.agent.pk)


@pytest.mark.req("TOOLS-15", "TOOLS-19")
def test_an_agent_gives_no_grant_within_its_own_chain(caller: Caller, operator: Person) -> None:
    made = agents.create_agent(name="made", by=caller.by)
    sibling = make_caller(caller.by, "sibling")
    other = make_caller(operator.by, "other")

    for by, to in ((caller.by, made), (sibling.by, caller.agent), (sibling.by, made)):
        with pytest.raises(SelfApproval):
            grants.give_grant(agent_id=to.pk, tools="sample.*", reason="x", by=by)
    grants.give_grant(agent_id=other.agent.pk, tools="sample.*", reason="x", by=caller.by)


@pytest.mark.req("TOOLS-15")
def test_control_goes_through_the_agents_that_make_agents(operator: Person, second_operator: Person) -> None:
    first = make_caller(operator.by, "first", scopes=("agents:manage", "tools:read"))
    made = first.post("/agents", {"name": "second"}).json()["data"]
    agent = Agent.objects.get(name="second")
    assert made["id"] == agent.wire_id

    assert controls_agent(operator.by.id, agent.pk)
    assert not controls_agent(second_operator.by.id, agent.pk)


# Over REST.


@pytest.mark.req("TOOLS-15")
def test_agents_and_keys_are_managed_over_rest(operator: Person) -> None:
    admin = make_caller(operator.by, "admin", scopes=("agents:manage", "tools:read"))
    agent = admin.post("/agents", {"name": "worker"}).json()["data"]
    made = admin.post(f"/agents/{agent['id']}/keys", {"scopes": ["tools:read"], "networks": ["127.0.0.0/8"]})
    key = made.json()["data"]

    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    assert status(key["key"]) == 200
    listed = admin.get(f"/agents/{agent['id']}/keys").json()["data"]["keys"]
    assert [each["id"] for each in listed] == [key["id"]]
    assert "key" not in listed[0]
    newer = admin.post(f"/keys/{key['id']}/rotate", {"overlap_s": 60}).json()["data"]
    assert newer["replaces"] == key["id"]
    assert status(newer["key"]) == 200
    assert admin.post(f"/keys/{newer['id']}/revoke", {}).json()["data"]["state"] == "revoked"
    assert status(newer["key"]) == 401
    assert admin.post(f"/agents/{agent['id']}/disable", {"reason": "x"}).json()["data"]["state"] == "disabled"
    assert status(key["key"]) == 401
    assert admin.post(f"/agents/{agent['id']}/enable", {"reason": "x"}).json()["data"]["state"] == "enabled"
    names = [each["name"] for each in admin.get("/agents").json()["data"]["agents"]]
    assert names == ["worker", "admin"]


@pytest.mark.req("TOOLS-15")
def test_an_agent_gives_no_scope_that_it_does_not_hold(operator: Person) -> None:
    admin = make_caller(operator.by, "admin", scopes=("agents:manage",))

    answer = admin.post(f"/agents/{admin.agent.wire_id}/keys", {"scopes": ["grants:manage"]})

    assert answer.status_code == 403
    assert answer.json()["error"]["details"] == {"missing": "grants:manage"}


@pytest.mark.req("TOOLS-15")
def test_a_person_gives_no_scope_for_what_they_may_not_do(caller: Caller, operator: Person) -> None:
    for scope in ("configuration:apply", "budgets:manage"):
        without = replace(operator.by, allowed=frozenset({"agents.manage"}))
        with pytest.raises(Forbidden, match="does not hold"):
            agents.create_key(agent=caller.agent, by=without, scopes=[scope])
    all_scopes = make_caller(operator.by, "ci").by.key_id
    assert all_scopes is not None
    with pytest.raises(Forbidden, match=r"configuration\.apply"):
        agents.rotate_key(key_id=all_scopes, by=operator.by)
    agents.create_key(agent=caller.agent, by=operator.by, scopes=["budgets:manage", "tools:read"])


@pytest.mark.req("TOOLS-15")
def test_an_agent_does_not_enable_itself(caller: Caller, operator: Person) -> None:
    agents.disable_agent(agent_id=caller.agent.pk, reason="x", by=operator.by)

    with pytest.raises(Forbidden):
        agents.enable_agent(agent_id=caller.agent.pk, reason="x", by=caller.by)


@pytest.mark.req("TOOLS-15")
def test_the_name_of_an_agent_leads_to_its_page(caller: Caller, operator: Person) -> None:
    listed = operator.client().get(reverse("agents")).content.decode()

    assert (
        f'<a class="hit" data-row href="{reverse("agent", args=[caller.agent.pk])}">{caller.agent.name}</a>' in listed
    )
