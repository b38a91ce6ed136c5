"""Configuration: is a tenant what its configuration file says after applying it, all of it or nothing?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from access import services as access
from access.agents import services as agents
from access.issuers import services as issuers
from access.models import (
    Agent,
    AgentIdentity,
    Budget,
    Grant,
    Membership,
    Notification,
    PolicyState,
    PolicyVersion,
    TrustedIssuer,
)
from access.roles import Role
from evidence.models import Fact
from kernel.problems import Problem
from registry.models import Installation, ModelProvider
from registry.secrets import services as secrets
from tests.conftest import make_person
from tests.support.configuration_files import (
    ECHO,
    ISSUER,
    KEYS,
    POLICY,
    REGION,
    TOKEN,
    apply,
    doing,
    findings,
    give,
    plan,
    whole,
)
from toolhub.configuration import services
from toolhub.configuration.document import PRUNABLE, read_document
from toolhub.configuration.problems import ConfigurationInvalid, PlanStale

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "ophelia", Role.OWNER)


@pytest.fixture
def ready(enable: Callable[..., Tool], owner: Person) -> Person:
    """The owner of a tenant that has the tool and the secret that the file names, and nothing else of it."""
    enable(config_schema=REGION, secrets=TOKEN)
    secrets.set_secret(name="token", value="long enough", by=owner.by)
    return owner


@pytest.mark.req("TOOLS-22")
def test_one_file_makes_everything_of_a_tenant(ready: Person) -> None:
    done = apply(whole(), ready.by)

    assert {change.section for change in done.plan.doing} == set(whole()) - {"format", "tenant"}
    buyer = Agent.objects.get(name="buyer")
    assert (buyer.disabled_at, Agent.objects.get(name="old one").disabled_at is None) == (None, False)
    row = Installation.objects.get(name=ECHO)
    assert (row.state, row.pin, row.config) == ("paused", "^1", {"region": "north", "ratio": 0.5})
    assert (row.hosts, row.paths, row.secrets) == (["*.example.com"], [], {"API_TOKEN": "token"})
    grant = Grant.objects.get(agent=buyer)
    assert (grant.tools, grant.source, grant.reason) == ("commerce.* | tag:pricing", "file", "Buys for the kitchen.")
    assert grant.expires_at is not None
    assert grant.expires_at.isoformat() == "2099-01-31T10:00:00+00:00"
    limits = Budget.objects.filter(grant=grant).values_list("dimension", "amount", "window_s")
    assert set(limits) == {("calls", 50, 3600), ("money", 5_000_000, 86400), ("concurrency", 2, 0)}
    assert Grant.objects.get(agent=None).tools == "sample.*"
    assert set(Budget.objects.exclude(scope="grant").values_list("scope", "dimension", "amount", "window_s")) == {
        ("tenant", "calls", 1000, 86400),
        ("agent", "concurrency", 3, 0),
        ("tool", "rate", 10, 60),
    }
    assert TrustedIssuer.objects.get().jwks == KEYS
    identity = AgentIdentity.objects.get()
    assert (identity.subject, identity.agent, identity.scopes) == ("job-1", buyer, ["tools:read", "invocations:create"])
    assert Notification.objects.get().events == ["consent.requested", "halt.thrown"]
    draft = PolicyVersion.objects.get()
    assert (draft.state, draft.document, draft.drafted_by) == (PolicyState.DRAFT, POLICY, ready.by.id)
    assert set(Membership.objects.filter(user__username="dana").values_list("role", flat=True)) == {
        "developer",
        "reviewer",
    }


@pytest.mark.req("TOOLS-22")
def test_each_change_is_a_fact_and_the_whole_is_one(ready: Person) -> None:
    before = Fact.objects.count()
    done = apply(whole(), ready.by)

    fact = Fact.objects.get(kind="configuration.applied")
    assert (fact.actor_id, fact.subject) == (ready.by.id, done.plan.tenant)
    assert done.plan.digest.encode() in bytes(fact.leaf)
    assert b'"grants":{"create":3}' in bytes(fact.leaf)
    kinds = set(Fact.objects.order_by("id")[before:].values_list("kind", flat=True))
    assert kinds >= {"agent.created", "agent.disabled", "grant.given", "budget.set", "installation.changed"}
    assert kinds >= {"issuer.trusted", "identity.mapped", "notification.set", "policy.drafted", "membership.given"}


@pytest.mark.req("TOOLS-22")
def test_applied_again_a_file_changes_nothing(ready: Person) -> None:
    apply(whole(), ready.by)
    count = Fact.objects.count()

    again = apply(whole(), ready.by)

    assert doing(again.plan) == []
    assert again.plan.counts["same"] == 17  # all but the policy, which waits as a draft
    assert "already waiting to be published, as the draft tenant@1" in again.plan.warnings[0]
    assert Fact.objects.count() == count


@pytest.mark.req("TOOLS-22")
def test_a_plan_changes_nothing(ready: Person) -> None:
    count = Fact.objects.count()

    found = plan(whole(), ready.by)

    assert found.counts["create"] == 15
    assert (Agent.objects.filter(name="buyer").exists(), Fact.objects.count()) == (False, count)


@pytest.mark.req("TOOLS-22")
def test_what_differs_is_changed_and_shown_with_before_and_after(ready: Person) -> None:
    apply(whole(), ready.by)
    changed = whole()
    changed["agents"][1]["disabled"] = False
    changed["installations"][0] |= {"state": "enabled", "config": {"region": "south"}}
    changed["model_providers"][0] |= {"state": "enabled", "settings": {"retries": 3}}
    changed["models"][0] |= {"model": "shop-2", "state": "enabled"}
    changed["model_prefix"] = {"text": ""}
    changed["model_prices"]["prices"][0]["input"] = 3
    changed["budgets"][0]["amount"] = 2000
    changed["issuers"][0]["audience"] = "other"
    changed["identities"][0]["agent"] = "old one"
    changed["notifications"][0]["events"] = ["halt.thrown"]
    changed["policy"] = POLICY | {"rules": POLICY["rules"][:1]}  # type: ignore[index]
    changed["members"][0]["roles"] = ["auditor"]

    price = {"provider": "shop", "model": "shop-1", "effective_from": "2026-12-01"}

    found = plan(changed, ready.by)
    apply(changed, ready.by)

    assert {change.section: (change.before, change.after) for change in found.doing if change.section != "policy"} == {
        "agents": ({"disabled": True}, {"disabled": False}),
        "installations": (
            {"config": {"region": "north", "ratio": 0.5}, "state": "paused"},
            {"config": {"region": "south"}, "state": "enabled"},
        ),
        "model_providers": (
            {"settings": {"timeouts": {"total_s": 30}, "retries": 1}, "state": "paused"},
            {"settings": {"retries": 3}, "state": "enabled"},
        ),
        "models": ({"model": "shop-1", "state": "paused"}, {"model": "shop-2", "state": "enabled"}),
        "model_prefix": ({"text": "Never promise a price."}, {"text": ""}),
        "model_prices": ({"prices": [price | {"input": "2.5"}]}, {"prices": [price | {"input": "3"}]}),
        "budgets": ({"amount": 1000}, {"amount": 2000}),
        "issuers": ({"audience": "hub"}, {"audience": "other"}),
        "identities": ({"agent": "buyer"}, {"agent": "old one"}),
        "notifications": ({"events": ["consent.requested", "halt.thrown"]}, {"events": ["halt.thrown"]}),
        "members": ({"roles": ["reviewer", "developer"]}, {"roles": ["auditor"]}),
    }
    assert plan(changed, ready.by).is_empty
    assert Installation.objects.get(name=ECHO).config == {"region": "south"}
    model = Installation.objects.select_related("tool", "version").get(name="model.shop.main")
    assert (model.state, model.tool.state, model.version.view.model.name) == ("enabled", "enabled", "shop-2")  # type: ignore[union-attr]
    assert Budget.objects.get(scope="tenant", ended_at=None).amount == 2000
    assert [row.user.username for row in Membership.objects.filter(role="auditor")] == ["dana"]


# Grants: their terms are what was given.


@pytest.mark.req("TOOLS-22")
def test_a_grant_is_extended_limited_or_given_anew(caller: Caller, owner: Person) -> None:
    apply(give(expires_at="2090-01-01T00:00:00Z", calls_limit=5), owner.by)
    first = Grant.objects.get()

    apply(give(expires_at="2091-01-01T00:00:00Z", calls_limit=9), owner.by)
    first.refresh_from_db()
    assert (first.expires_at.year, first.calls_limit, Grant.objects.count()) == (2091, 9, 1)  # type: ignore[union-attr]

    apply(give(expires_at="2089-01-01T00:00:00Z", calls_limit=9), owner.by)
    first.refresh_from_db()
    second = Grant.objects.get(revoked_at=None)
    assert (first.state, second.expires_at.year, second.calls_limit) == ("revoked", 2089, 9)  # type: ignore[union-attr]

    done = apply(give(conditions=[{"pointer": "/a", "op": "present"}]), owner.by)
    assert Grant.objects.get(revoked_at=None).calls_limit is None
    assert "give another: conditions, limits, expires_at" in done.plan.doing[0].sentence
    assert plan(give(conditions=[{"pointer": "/a", "op": "present"}], reason="in other words"), owner.by).is_empty


@pytest.mark.req("TOOLS-22")
def test_an_expired_grant_in_a_file_is_passed_over(caller: Caller, owner: Person) -> None:
    found = plan(give(expires_at="2020-01-01T00:00:00Z"), owner.by)

    assert found.is_empty
    assert "has expired" in found.warnings[0]


@pytest.mark.req("TOOLS-22")
def test_the_order_of_a_file_means_nothing(caller: Caller, owner: Person) -> None:
    """Also among grants of one agent for the same tools, which have no name of their own."""
    rows = [
        {"agent": "assistant", "tools": "sample.*", "reason": "why", "calls_limit": number, "window_s": 60 * number}
        for number in (1, 2, 3)
    ]
    apply({"format": 1, "grants": rows}, owner.by)

    assert plan({"format": 1, "grants": rows[::-1]}, owner.by).is_empty
    fewer = {"format": 1, "grants": rows[:1] + rows[2:]}
    assert plan(fewer, owner.by).is_empty
    assert doing(plan(fewer | {"prune": ["grants"]}, owner.by)) == [("grants", "end", "assistant · sample.* (3)")]


# What is not in the file.


@pytest.mark.req("TOOLS-22")
def test_what_is_not_in_the_file_is_left_alone(ready: Person) -> None:
    apply(whole(), ready.by)

    assert plan({"format": 1}, ready.by).changes == []
    partly = {"format": 1, "agents": [], "grants": [], "installations": [{"tool": ECHO}], "members": []}
    assert plan(partly, ready.by).is_empty


@pytest.mark.req("TOOLS-22")
def test_a_pruned_section_has_nothing_beside_the_file(ready: Person) -> None:
    apply(whole(), ready.by)
    members_kept = [{"user": "ophelia", "roles": ["owner"]}]
    names = [name for name in whole() if name in PRUNABLE and name != "members"]
    bare = {"format": 1, "members": members_kept, "prune": [*names, "members"]} | {name: [] for name in names}

    found = plan(bare, ready.by)
    apply(bare, ready.by)

    assert {(change.section, str(change.action)) for change in found.doing} == {
        (name, "end") for name in [*names, "members"]
    }
    assert all(change.after is None and change.before is not None for change in found.doing)
    assert not Agent.objects.filter(disabled_at=None).exists()
    assert not Grant.objects.in_force(timezone.now()).exists()
    assert not Budget.objects.filter(ended_at=None).exclude(scope="grant").exists()
    assert set(Installation.objects.values_list("state", flat=True)) == {"removed"}
    assert not ModelProvider.objects.exists()
    assert not Notification.objects.filter(disabled_at=None).exists()
    assert not AgentIdentity.objects.exists()
    assert [row.user.username for row in Membership.objects.all()] == ["ophelia"]
    assert plan(bare, ready.by).is_empty
    assert plan({"format": 1, "agents": []}, ready.by, prune_all=True).is_empty


@pytest.mark.req("TOOLS-22")
def test_pruning_needs_the_section_to_be_there(owner: Person) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        plan({"format": 1, "prune": ["grants"]}, owner.by)

    assert findings(caught.value) == ["/prune"]


@pytest.mark.req("TOOLS-22")
def test_subjects_of_an_issuer_that_is_trusted_again_are_seen(caller: Caller, owner: Person) -> None:
    file = {"format": 1, "issuers": [{"issuer": ISSUER, "audience": "hub", "jwks": KEYS}]}
    apply(file, owner.by)
    row = TrustedIssuer.objects.get()
    issuers.map_identity(issuer_id=row.pk, subject="job", agent_id=caller.agent.pk, scopes=["tools:read"], by=owner.by)
    issuers.distrust_issuer(issuer_id=row.pk, reason="x", by=owner.by)

    assert "can act as their agents again" in plan(file, owner.by).warnings[0]
    pruned = file | {"identities": [], "prune": ["identities"]}
    done = apply(pruned, owner.by)
    assert ("identities", "end", f"{ISSUER} · job") in doing(done.plan)
    assert plan(pruned, owner.by).is_empty


# Looked at, then applied.


@pytest.mark.req("TOOLS-22")
def test_a_plan_counts_only_while_it_is_the_plan(caller: Caller, owner: Person) -> None:
    document = read_document(give())
    looked_at = services.plan_configuration(document, by=owner.by)
    access.give_grant(agent_id=caller.agent.pk, tools="sample.*", reason="somebody else was faster", by=owner.by)

    with pytest.raises(PlanStale) as caught:
        services.apply_configuration(document=document, plan_digest=looked_at.digest, by=owner.by)

    assert caught.value.status == 409
    assert Grant.objects.count() == 1


@pytest.mark.req("TOOLS-22")
def test_what_a_plan_is_not_about_may_change_meanwhile(caller: Caller, owner: Person) -> None:
    document = read_document(give())
    looked_at = services.plan_configuration(document, by=owner.by)
    agents.create_agent(name="another", by=owner.by)

    services.apply_configuration(document=document, plan_digest=looked_at.digest, by=owner.by)

    assert Grant.objects.count() == 1


@pytest.mark.req("TOOLS-22")
def test_all_or_nothing(ready: Person) -> None:
    document = read_document(whole())
    looked_at = services.plan_configuration(document, by=ready.by)
    secrets.remove_secret(name="token", by=ready.by)  # it is not in the plan, and the installation needs it
    count = Fact.objects.count()

    with pytest.raises(Problem) as caught:
        services.apply_configuration(document=document, plan_digest=looked_at.digest, by=ready.by)

    assert findings(caught.value) == ["/installations/0/secrets/API_TOKEN"]
    assert "(at /installations/0/secrets/API_TOKEN)" in caught.value.detail
    assert (Agent.objects.filter(name="buyer").exists(), Fact.objects.count()) == (False, count)


@pytest.mark.req("TOOLS-22")
def test_what_would_be_refused_is_said_by_the_plan(owner: Person) -> None:
    with pytest.raises(Problem) as caught:
        plan({"format": 1, "budgets": [{"scope": "tenant", "dimension": "rate", "amount": 0}]}, owner.by)

    assert findings(caught.value) == ["/budgets/0/amount"]
