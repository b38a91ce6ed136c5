"""Configuration export: does an export, applied, change nothing; and does it make the same of an empty tenant?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access import services as access
from access.roles import Role
from kernel.database.tenancy import acting_for
from kernel.principal import Principal
from registry.secrets import services as secrets
from registry.tools import lifecycle
from tests.conftest import make_person
from tests.support.configuration_files import ECHO, ISSUER, KEYS, REGION, TOKEN, apply, doing, plan, whole
from toolhub.configuration import services
from toolhub.configuration.file_format import read_text, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
AGENTS = ["a", "b b", "ü"]
NAMED = st.sampled_from(AGENTS)
LIMITS = st.lists(
    st.fixed_dictionaries(
        {"dimension": st.sampled_from(["calls", "money", "concurrency"]), "amount": st.integers(0, 10**15)}
    ),
    unique_by=lambda each: each["dimension"],
    max_size=2,
)
GRANTS = st.fixed_dictionaries(
    {
        "agent": NAMED | st.just("*"),
        "tools": st.sampled_from(["*", "b.* | a.*", "sample.tools.echo & ~tag:x"]),
        "reason": st.sampled_from(["yes", "1e3", "a: b"]),
    },
    optional={
        "capabilities": st.sampled_from([None, {}, {"tmp": 1024}, {"net": [{"host": "*.example.com"}]}]),
        "scopes": st.sampled_from([None, [], [{"resource": "soul:", "action": "*"}]]),
        "conditions": st.sampled_from([[], [{"pointer": "/a/*/b", "op": "in", "value": [1, True, None, 0.5]}]]),
        "limits": LIMITS,
        "expires_at": st.datetimes().map(lambda at: at.replace(year=2090, day=1).isoformat() + "+01:00"),
    },
)  # fmt: skip
SCOPES = [{"scope": "tenant"}, {"scope": "agent", "agent": "a"}, {"scope": "tool", "tool": ECHO}]
BUDGET: dict[str, st.SearchStrategy[Any]] = {
    "dimension": st.sampled_from(["calls", "bytes_in", "concurrency"]),
    "amount": st.integers(0, 99),
    "of": st.sampled_from(SCOPES),
}
BUDGETS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    BUDGET,
    optional={"reason": st.sampled_from(["", "null", "why"])},
)
IDENTITIES = st.fixed_dictionaries(
    {
        "issuer": st.just(ISSUER),
        "subject": NAMED,
        "agent": NAMED,
        "scopes": st.lists(st.sampled_from(["tools:read", "grants:manage"]), unique=True),
    }
)
NOTIFICATIONS = st.fixed_dictionaries(
    {
        "channel": st.just("email"),
        "target": st.sampled_from(["a@example.com", "b@example.com"]),
        "events": st.lists(st.sampled_from(["halt.thrown", "budget.low"]), min_size=1, unique=True),
    }
)


def files(disabled: st.SearchStrategy[bool]) -> st.SearchStrategy[dict[str, Any]]:
    """Files that are about the same agents, so that each can be applied after the other."""
    agents = [st.fixed_dictionaries({"name": st.just(name), "disabled": disabled}) for name in AGENTS]
    budgets = st.lists(BUDGETS, unique_by=lambda each: (each["dimension"], each["of"]["scope"]), max_size=4)
    return st.fixed_dictionaries(
        {
            "format": st.just(1),
            "agents": st.tuples(*agents).map(list),
            "grants": st.lists(GRANTS, max_size=4),
            "budgets": budgets.map(lambda rows: [_plain(row) for row in rows]),
            "issuers": st.just([{"issuer": ISSUER, "audience": "hub", "jwks": KEYS}]),
            "identities": st.lists(IDENTITIES, unique_by=lambda each: each["subject"], max_size=2),
            "notifications": st.lists(NOTIFICATIONS, max_size=2),
        }
    )


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    scope: dict[str, Any] = row["of"]
    return scope | {name: value for name, value in row.items() if name != "of"}


@pytest.mark.req("TOOLS-22")
@given(files(st.booleans()), files(st.just(False)))  # nothing new is given to what is disabled already
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_an_export_applied_changes_nothing(tenant: Tenant, file: dict[str, Any], before: dict[str, Any]) -> None:
    """Whatever was there before, and read from the text that was written."""
    by = Principal.system("test", tenant_id=tenant.pk)
    with transaction.atomic():
        apply(before, by)
        apply(file, by, prune_all=True)
        exported = read_text(write_text(services.export_configuration(by=by)))

        assert doing(plan(exported, by, prune_all=True)) == []
        assert doing(plan(file, by, prune_all=True)) == []
        apply(before, by, prune_all=True)
        apply(exported, by, prune_all=True)
        assert services.export_configuration(by=by) | {"agents": []} == exported | {"agents": []}
        transaction.set_rollback(True)


@pytest.mark.req("TOOLS-22")
def test_an_export_makes_the_same_of_an_empty_tenant(
    enable: Callable[..., Tool], operator: Person, tenant: Tenant, foreign_tenant: Tenant, developer: Person
) -> None:
    enable(config_schema=REGION, secrets=TOKEN)
    lifecycle.share_tool(name=ECHO, reason="for everybody", by=operator.by)
    owner, other = make_person(tenant, "ophelia", Role.OWNER), make_person(foreign_tenant, "otto", Role.OWNER)
    for person in (owner, other):
        secrets.set_secret(name="token", value="long enough", by=person.by)
    apply(whole(), owner.by)
    exported = services.export_configuration(by=owner.by)
    elsewhere = whole(issuers=None, identities=None, policy=None)
    elsewhere |= {name: exported[name] for name in elsewhere if name in exported} | {"tenant": "foreign"}

    with acting_for(foreign_tenant.pk):  # as a request does: the publisher's rows are behind the walls
        apply(elsewhere, other.by)
        made = services.export_configuration(by=other.by)

    assert {name: made[name] for name in elsewhere if name not in ("tenant", "members")} == {
        name: elsewhere[name] for name in elsewhere if name not in ("tenant", "members")
    }
    assert {row["user"] for row in made["members"]} == {row["user"] for row in exported["members"]} | {"otto"}


@pytest.mark.req("TOOLS-22")
def test_an_export_has_a_stable_order_and_no_secret(
    enable: Callable[..., Tool], operator: Person, tenant: Tenant
) -> None:
    owner = make_person(tenant, "ophelia", Role.OWNER)
    for name in ("z", "a", "m"):
        agent = access.create_agent(name=name, by=owner.by)
        _, key = access.create_key(agent=agent, by=owner.by)
    secrets.set_secret(name="token", value="a value that nobody sees", by=owner.by)

    text = write_text(services.export_configuration(by=owner.by))

    assert text == write_text(services.export_configuration(by=owner.by))
    assert [row["name"] for row in read_text(text)["agents"]] == ["a", "m", "z"]
    assert list(read_text(text))[:3] == ["format", "tenant", "agents"]
    assert "a value that nobody sees" not in text
    assert key not in text
