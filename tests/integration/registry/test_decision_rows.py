"""Decision rows: is every value that decides read from the column of its name, and would it be noticed if it were not?"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ObjectDoesNotExist

from access.budgets.lines import window_number
from access.models import (
    Agent,
    ApiKey,
    Budget,
    BudgetWindow,
    Consent,
    Grant,
    Halt,
    PolicyState,
    PolicyVersion,
    Tenant,
)
from kernel.canonical import compute_digest
from registry import decision_statement
from registry.decision_context import load_contexts_of_agents, load_decision_context, load_decision_contexts
from registry.decision_rows import AgentsRow, CallRow, TenantRow
from registry.decision_statement import COLUMNS, write_columns, write_statement
from registry.models import Capsule, Installation, PublisherKey, Secret, Tool, ToolVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
# What a value of another column may end in.
MISREAD = (TypeError, ValueError, AttributeError, ObjectDoesNotExist)


def at(day: int) -> datetime:
    """No two of them are the same, and all are yet to come."""
    return NOW + timedelta(days=day, microseconds=day)


@pytest.fixture
def everything(enable: Callable[..., Tool], caller: Caller) -> dict[str, Any]:
    """One of all that is read, every column with a value that no other has."""
    enable()
    agent = caller.agent
    tenant = agent.tenant
    ApiKey.objects.filter(agent=agent).update(expires_at=at(1))
    signer = PublisherKey.objects.create(tenant=tenant, name="signer", key_id="signers key", added_by="usr_1")
    capsule = Capsule.objects.create(
        tenant=tenant, digest="capsule", package="p", size=1, content=b"", envelope="{}", signed_by=signer
    )
    ToolVersion.objects.update(
        manifest_digest="of the manifest",
        build_digest="of the build",
        yanked_at=at(2),
        yanked_by="usr_2",
        yank_reason="it was yanked",
        trusted_at=at(3),
        capsule=capsule,
    )
    Tool.objects.update(
        state_reason="of the tool",
        state_changed_at=at(4),
        sunset_on=date(2041, 1, 2),
        successor="sample.tools.next",
    )
    Installation.objects.update(
        state="paused",
        reason="of the installation",
        changed_at=at(5),
        config_digest="of the configuration",
        hosts=["a host"],
        paths=["a path"],
        secrets={"a secret": "of the tenant"},
    )
    for name in ("first", "second"):
        Secret.objects.create(
            tenant=tenant, name=name, key_id="k", wrapped_key=b"", nonce=b"", ciphertext=b"", set_by="usr_1"
        )
    lead = Agent.objects.create(tenant=tenant, name="lead")
    given: dict[str, Any] = {"tenant": tenant, "reason": "r", "given_by": "usr_1"}
    first = Grant.objects.create(agent=lead, tools="sample.*", expires_at=at(6), may_delegate=2, **given)
    second = Grant.objects.create(
        agent=lead, tools="sample.*", expires_at=at(7), may_delegate=1, delegated_from=first, **given
    )
    bounds: dict[str, Any] = {
        "capabilities": {"tmp": 1},
        "scopes": [{"resource": "soul:fs:/data", "action": "read"}],
        "conditions": [{"path": "/text", "equals": "x"}],
    }
    Grant.objects.create(agent=agent, tools=ECHO, expires_at=at(8), delegated_from=second, **bounds, **given)
    asked: dict[str, Any] = {"tenant": tenant, "agent": agent, "tool": ECHO, "validity_s": 1}
    Consent.objects.create(
        mode="once",
        versions="^1",
        user_fingerprint="of the user",
        arguments_fingerprint="of the arguments",
        policy_hash="of the policy",
        expires_at=at(9),
        decided_at=at(10),
        decided_by="usr_1",
        state="approved",
        **asked,
    )
    _make_budgets(tenant, agent, first)
    for owner, reach, target in ((None, "hub", ""), (tenant, "tool", ECHO), (tenant, "agent", agent.wire_id)):
        Halt.objects.create(tenant=owner, reach=reach, target=target, reason=f"of the {reach}", thrown_by="usr_1")
    for number, owner in enumerate((None, tenant)):
        document = {"format": 1, "rules": [{"id": f"rule-{number}", "effect": "permit", "when": {}}]}
        PolicyVersion.objects.create(
            tenant=owner,
            number=number + 1,
            state=PolicyState.IN_FORCE,
            document=document,
            digest=compute_digest(document),
            drafted_by="usr_1",
            published_by="usr_2",
            published_at=at(11),
        )
    return {"tenant_id": tenant.pk, "agent_id": agent.pk, "key_id": caller.by.key_id, "now": NOW}


def _make_budgets(tenant: Tenant, agent: Agent, grant: Grant) -> None:
    scopes: tuple[dict[str, Any], ...] = (
        {"scope": "tenant"},
        {"scope": "agent", "agent": agent},
        {"scope": "tool", "tool": ECHO},
        {"scope": "grant", "grant": grant},
    )
    for number, scope in enumerate(scopes, 1):
        budget = Budget.objects.create(
            tenant=tenant, dimension="calls", amount=1000 * number, window_s=60 * number, set_by="usr_1", **scope
        )
        BudgetWindow.objects.create(
            budget=budget,
            number=window_number(budget.window_s, NOW),
            used=number,
            reserved=10 * number,
            raised=100 * number,
        )


def read_everything(where: dict[str, Any]) -> tuple[Any, ...]:
    several = load_contexts_of_agents(tenant_id=where["tenant_id"], agent_ids=[where["agent_id"]], now=where["now"])
    return load_decision_context(tool=ECHO, **where), load_decision_contexts(**where), list(several)


@pytest.mark.req("TOOLS-27")
def test_every_value_is_the_one_of_its_column(everything: dict[str, Any]) -> None:
    context, (of_all,), _ = read_everything(everything)
    tool, version, installation = Tool.objects.get(), ToolVersion.objects.get(), Installation.objects.get()

    found = context.installed
    assert found == of_all.installed
    assert found._asdict() == {
        "id": installation.pk,
        "state": "paused",
        "reason": "of the installation",
        "changed_at": at(5),
        "config_digest": "of the configuration",
        "hosts": ["a host"],
        "paths": ["a path"],
        "secrets": {"a secret": "of the tenant"},
        "tool_id": tool.pk,
        "tool_kind": "tool",
        "tool_state": "enabled",
        "tool_reason": "of the tool",
        "tool_changed_at": at(4),
        "sunset_on": date(2041, 1, 2),
        "successor": "sample.tools.next",
        "publisher_id": tool.tenant_id,
        "version_id": version.pk,
        "version": "1.0.0",
        "manifest_digest": "of the manifest",
        "build_digest": "of the build",
        "yanked": True,
        "yank_reason": "it was yanked",
        "trusted": True,
        "signed_by": "signers key",
    }
    assert (context.agent_name, context.agent_in_use) == ("assistant", True)
    assert (context.key_in_force, context.key_revoked) == (True, False)
    assert context.secrets == {"first", "second"}
    assert {tuple(each) for each in context.halts} == set(
        Halt.objects.values_list("tenant_id", "reach", "target", "reason")
    )
    assert set(of_all.halts) == set(context.halts)

    grant = Grant.objects.get(agent_id=everything["agent_id"])
    chain = tuple((each.agent_id, each.pk) for each in grant.chain)
    assert [each._asdict() for each in context.grants] == [
        {name: getattr(grant, name) for name in ("id", "tools", "agent_id", "capabilities", "scopes", "conditions")}
        | {"expires_at": at(8), "above": chain}
    ]
    consent = Consent.objects.get()
    assert [each._asdict() for each in context.consents] == [
        {name: getattr(consent, name) for name in context.consents[0]._fields}
    ]
    assert {each.scope: (each.amount, each.window_s, each.used, each.reserved) for each in context.lines} == {
        scope: (1100 * number, 60 * number, number, 10 * number)
        for number, scope in enumerate(("tenant", "agent", "tool", "grant"), 1)
    }
    assert {each.budget_id: each.scope for each in context.lines} == dict(Budget.objects.values_list("pk", "scope"))
    assert {each.label for each in context.lines} == {"", "assistant", ECHO, Grant.objects.earliest("id").wire_id}
    assert {each.dimension for each in context.lines} == {"calls"}
    hub, own = (PolicyVersion.objects.get(tenant=owner).digest for owner in (None, everything["tenant_id"]))
    assert [each.digest for each in context.layers] == [hub, own]


def split_columns(text: str) -> list[str]:
    """At the commas that stand in no parentheses."""
    found, depth = [""], 0
    for each in text:
        depth += (each == "(") - (each == ")")
        if each == "," and not depth:
            found.append("")
        else:
            found[-1] += each
    return found


def swaps() -> Iterator[tuple[str, str]]:
    """Every kind of row with two neighbours of its columns exchanged."""
    for kind, text in COLUMNS.items():
        columns = split_columns(text)
        for place in range(len(columns) - 1):
            swapped = [*columns[:place], columns[place + 1], columns[place], *columns[place + 2 :]]
            yield kind, ", ".join(swapped)


@pytest.mark.req("TOOLS-27")
def test_two_columns_of_the_statement_that_change_places_are_noticed(
    everything: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = read_everything(everything)
    unnoticed, count = [], 0

    for kind, columns in swaps():
        count += 1
        with monkeypatch.context() as patch:
            patch.setitem(COLUMNS, kind, columns)
            for row, parts, name in (
                (CallRow, decision_statement.OF_CALL, "CALL"),
                (TenantRow, decision_statement.OF_TENANT, "TENANT"),
                (AgentsRow, decision_statement.OF_AGENTS, "AGENTS"),
            ):
                on_postgresql = write_statement(row, parts, decision_statement.POSTGRESQL).encode()
                patch.setattr(decision_statement, f"POSTGRESQL_{name}", on_postgresql)
                patch.setattr(
                    decision_statement, f"SQLITE_{name}", write_statement(row, parts, decision_statement.SQLITE)
                )
            try:
                found = read_everything(everything)
            except MISREAD:
                continue
            if found == right:
                unnoticed.append((kind, columns))

    assert unnoticed == []
    assert count > 50


@pytest.mark.req("TOOLS-27")
def test_columns_follow_the_parameters_of_who_reads_them() -> None:
    def read(first: str, second: str, *, now: datetime) -> None:
        """What is given beside the row is none of its columns."""

    def read_the_other_way_round(second: str, first: str) -> None:
        """The same columns."""

    assert write_columns(read, "t", second="x.y") == "t.first, x.y"
    assert write_columns(read_the_other_way_round, "t", second="x.y") == "x.y, t.first"
    with pytest.raises(TypeError, match="read does not take now, third"):
        write_columns(read, "t", third="x.z", now="x.now")
