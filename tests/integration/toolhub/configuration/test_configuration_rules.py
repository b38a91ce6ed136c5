"""Configuration rules: is a file refused what people and keys would be refused one by one?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from allauth.account.models import EmailAddress
from django.utils import timezone

from access import services as access
from access.agents import services as agents
from access.budgets.services import set_budget
from access.grants import services as grants
from access.members import services as members
from access.middleware import principal_of_user
from access.models import (
    Budget,
    Grant,
    Membership,
    Notification,
)
from access.problems import LastOwner, SelfApproval
from access.roles import Role
from evidence.models import Fact
from kernel.principal import Principal
from kernel.problems import Conflict, Forbidden, Problem
from tests.conftest import make_person
from tests.support.configuration_files import ECHO, ISSUER, KEYS, apply, doing, findings, give, plan
from toolhub.configuration import services
from toolhub.configuration.problems import ConfigurationInvalid

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "ophelia", Role.OWNER)


@pytest.mark.req("TOOLS-22")
def test_nobody_changes_their_own_roles_by_a_file(owner: Person) -> None:
    with pytest.raises(SelfApproval) as caught:
        plan({"format": 1, "members": [{"user": "ophelia", "roles": ["owner", "auditor"]}]}, owner.by)

    assert findings(caught.value) == ["/members/0"]


@pytest.mark.req("TOOLS-22")
def test_a_tenant_keeps_an_owner(owner: Person, tenant: Tenant) -> None:
    system = Principal.system("test", tenant_id=tenant.pk)

    with pytest.raises(LastOwner):
        plan({"format": 1, "members": [], "prune": ["members"]}, system)
    make_person(tenant, "otto", Role.AUDITOR)
    apply({"format": 1, "members": [{"user": "otto", "roles": ["owner"]}], "prune": ["members"]}, system)
    assert [(row.user.username, row.role) for row in Membership.objects.all()] == [("otto", "owner")]


@pytest.mark.req("TOOLS-22")
def test_an_agent_gives_itself_nothing_by_a_file(caller: Caller, owner: Person) -> None:
    for agent in ("assistant", "*"):
        with pytest.raises(SelfApproval):
            plan(give(agent=agent), caller.by)
    with pytest.raises(SelfApproval):
        plan(
            {"format": 1, "budgets": [{"scope": "agent", "agent": "assistant", "dimension": "calls", "amount": 9}]},
            caller.by,
        )


@pytest.mark.req("TOOLS-22")
def test_people_are_not_for_keys(caller: Caller, owner: Person) -> None:
    with pytest.raises(Forbidden, match="Only a person changes members"):
        plan({"format": 1, "members": []}, caller.by)

    assert "members" not in services.export_configuration(by=caller.by)
    assert "members" in services.export_configuration(by=owner.by)


@pytest.mark.req("TOOLS-22")
def test_a_file_gives_nobody_more_than_they_hold(caller: Caller, tenant: Tenant, operator: Person) -> None:
    with pytest.raises(Forbidden):  # operators do not apply files
        plan({"format": 1}, operator.by)
    members.give_permission(
        user_id=operator.user.pk,
        permission="configuration.apply",
        by=Principal.system("test", tenant_id=tenant.pk),
    )
    by = principal_of_user(type(operator.user).objects.get(pk=operator.user.pk), tenant)

    assert not plan(give(), by).is_empty
    with pytest.raises(Forbidden, match=r"issuers\.manage"):
        plan({"format": 1, "issuers": [{"issuer": ISSUER, "audience": "hub", "jwks": KEYS}]}, by)


@pytest.mark.req("TOOLS-22")
def test_things_of_other_tenants_are_not_here(owner: Person, stranger: Person, foreign_caller: Caller) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        plan({"format": 1, "tenant": "foreign"}, owner.by)
    assert findings(caught.value) == ["/tenant"]
    with pytest.raises(ConfigurationInvalid) as caught:
        plan(give(agent="foreign-assistant"), owner.by)
    assert findings(caught.value) == ["/grants/0/agent"]
    with pytest.raises(Problem) as refused:
        plan({"format": 1, "installations": [{"tool": "sample.tools.echo", "publisher": "foreign"}]}, owner.by)
    assert (refused.value.status, findings(refused.value)) == (404, ["/installations/0"])
    assert "foreign" not in str(services.export_configuration(by=owner.by))


@pytest.mark.req("TOOLS-22")
def test_somebody_without_an_account_is_passed_over(owner: Person, developer: Person) -> None:
    developer.user.email = "Dana@Example.com"
    developer.user.save(update_fields=["email"])

    found = plan(
        {
            "format": 1,
            "members": [
                {"user": "nobody", "roles": ["owner"]},
                {"user": "dana@example.com", "roles": ["auditor"]},
            ],
        },
        owner.by,
    )

    assert "nobody has no account" in found.warnings[0]
    assert doing(found) == [("members", "change", "dana")]
    with pytest.raises(ConfigurationInvalid) as caught:
        plan(
            {"format": 1, "members": [{"user": name, "roles": ["auditor"]} for name in ("dana", "dana@example.com")]},
            owner.by,
        )
    assert findings(caught.value) == ["/members/1"]


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("username", ["puppet", "ceo@example.com"])
def test_an_address_that_another_tenant_wrote_into_an_account_means_nobody_until_it_is_proved(
    username: str, owner: Person, foreign_tenant: Tenant
) -> None:
    puppet = make_person(foreign_tenant, username, Role.AUDITOR).user
    puppet.email = "ceo@example.com"
    puppet.save(update_fields=["email"])
    file = {"format": 1, "members": [{"user": "ceo@example.com", "roles": ["owner"]}]}

    found = plan(file, owner.by)
    assert (doing(found), ["Skipped" in each for each in found.warnings]) == ([], [True, False])
    EmailAddress.objects.create(user=puppet, email="ceo@example.com", verified=True)

    found = plan(file, owner.by)
    assert [change.sentence for change in found.doing] == [f"Give {username} the roles owner."]


@pytest.mark.req("TOOLS-22")
def test_a_disabled_agent_gets_no_new_grant(caller: Caller, owner: Person) -> None:
    agents.disable_agent(agent_id=caller.agent.pk, reason="x", by=owner.by)

    with pytest.raises(Conflict) as caught:
        plan(give(), owner.by)

    assert findings(caught.value) == ["/grants/0"]


@pytest.mark.req("TOOLS-22")
def test_the_hub_itself_applies_files_too(tenant: Tenant, developer: Person) -> None:
    system = Principal.system("command", tenant_id=tenant.pk)

    apply({"format": 1, "agents": [{"name": "a"}], "members": [{"user": "dana", "roles": ["owner"]}]}, system)

    assert Fact.objects.get(kind="configuration.applied").actor_id == "system:command"


@pytest.mark.req("TOOLS-22")
def test_a_new_webhook_shows_its_secret_once(owner: Person) -> None:
    hook = {"channel": "webhook", "target": "https://hooks.example.com/in", "events": ["halt.thrown"]}

    done = apply({"format": 1, "notifications": [hook]}, owner.by)
    secret = bytes(Notification.objects.get().secret)
    changed = apply({"format": 1, "notifications": [hook | {"events": ["grant.requested"]}]}, owner.by)

    assert done.shown_once["https://hooks.example.com/in"].startswith("whsec_")
    assert (changed.shown_once, bytes(Notification.objects.get().secret)) == ({}, secret)
    assert "whsec" not in str(services.export_configuration(by=owner.by))


@pytest.mark.req("TOOLS-22")
def test_a_limit_of_a_grant_is_ended_and_one_of_a_manifest_is_not_in_files(caller: Caller, owner: Person) -> None:
    given = grants.give_grant(agent_id=caller.agent.pk, tools="*", reason="x", calls_limit=5, by=owner.by)
    set_budget(scope="grant", grant_id=given.pk, dimension="money", amount=1, by=owner.by)
    Budget.objects.create(
        tenant_id=owner.by.tenant_id,
        scope="manifest",
        tool=ECHO,
        dimension="concurrency",
        amount=1,
        window_s=0,
        set_by="x",
    )

    apply(give(tools="*", limits=[{"dimension": "money", "amount": 1}]), owner.by)
    exported = services.export_configuration(by=owner.by)

    assert (Grant.objects.count(), given.calls_limit) == (1, None)
    assert exported["grants"][0]["limits"] == [{"dimension": "money", "amount": 1, "window_s": 86400}]
    assert exported["budgets"] == []


@pytest.mark.req("TOOLS-22")
def test_times_are_compared_as_moments(caller: Caller, owner: Person) -> None:
    until = timezone.now() + timedelta(days=1)
    access.give_grant(agent_id=caller.agent.pk, tools="*", reason="x", expires_at=until, by=owner.by)

    assert plan(give(tools="*", expires_at=until.isoformat()), owner.by).is_empty
