"""Callable tools: is exactly what an agent may call now offered to its model, and is it said why there is nothing?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from access import services as access
from access.halts import services as halts
from access.models import Reach
from invocations.decide.callable_tools import offer_tools
from registry.decision_context import load_contexts_of_agents, load_decision_context, load_decision_contexts
from registry.discovery.tool_specs import build_spec
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.conftest import make_caller
from tests.support.manifests import manifest
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.decision_context import DecisionContext
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO, PLANS, RAISES = "sample.tools.echo", "sample.tools.plans", "sample.tools.raises"


@pytest.fixture
def three(enable: Callable[..., Tool]) -> None:
    for name in ("echo", "plans", "raises"):
        enable(name)


def names(caller: Caller, **filters: Any) -> list[str]:
    return [each.id for each in offer_tools(by=caller.by, **filters).manifests]


def warnings(caller: Caller, **filters: Any) -> str:
    offer = offer_tools(by=caller.by, **filters)
    assert offer.manifests == []
    return " ".join(offer.warnings(shown=0))


@pytest.mark.req("TOOLS-12")
def test_what_stands_for_all_tools_is_what_stands_for_each(
    three: None, caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    grant("sample.tools.echo")
    access.give_grant(agent_id=None, tools="tag:sample", reason="x", by=operator.by)
    for reach, target in ((Reach.TOOL, PLANS), (Reach.AGENT, caller.agent.wire_id)):
        halts.throw_halt(reach=reach, target=target, reason="x", by=operator.by)
    lifecycle.pause_tool(name=RAISES, reason="x", by=operator.by)
    now = datetime.now(UTC)
    asked: dict[str, Any] = {"tenant_id": caller.by.tenant_id, "agent_id": caller.agent.pk, "key_id": caller.by.key_id}

    found = load_decision_contexts(**asked, now=now)

    assert found == [load_decision_context(tool=name, **asked, now=now) for name in (ECHO, PLANS, RAISES)]
    assert [len(each.halts) for each in found] == [1, 2, 1]


@pytest.mark.req("TOOLS-12")
def test_what_is_read_of_several_agents_together_is_what_is_read_of_each(
    three: None, caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    grant("sample.tools.echo")
    access.give_grant(agent_id=None, tools="tag:sample", reason="x", by=operator.by)
    other, third = (make_caller(operator.by, name).agent for name in ("other", "third"))
    access.give_grant(agent_id=other.pk, tools=PLANS, reason="x", by=operator.by)
    access.disable_agent(agent_id=third.pk, reason="x", by=operator.by)
    for reach, target in ((Reach.TOOL, PLANS), (Reach.AGENT, other.wire_id)):
        halts.throw_halt(reach=reach, target=target, reason="x", by=operator.by)
    now, tenant = datetime.now(UTC), caller.by.tenant_id
    asked = [caller.agent.pk, other.pk, third.pk]

    def in_order(contexts: list[DecisionContext]) -> list[DecisionContext]:
        return [replace(each, grants=tuple(sorted(each.grants))) for each in contexts]

    found = dict(load_contexts_of_agents(tenant_id=tenant, agent_ids=asked, now=now))

    assert {agent: in_order(contexts) for agent, contexts in found.items()} == {
        agent: in_order(load_decision_contexts(tenant_id=tenant, agent_id=agent, key_id=None, now=now))
        for agent in asked
    }
    assert list(load_contexts_of_agents(tenant_id=tenant, agent_ids=[], now=now)) == []


@pytest.mark.req("TOOLS-12")
def test_offered_is_what_a_grant_names_by_name(three: None, caller: Caller, grant: Callable[..., Any]) -> None:
    assert names(caller) == []
    grant(f"{PLANS} | {ECHO}")
    assert names(caller) == [ECHO, PLANS]
    assert offer_tools(by=caller.by).warnings(shown=2) == []


@pytest.mark.req("TOOLS-12")
def test_a_condition_on_arguments_keeps_no_tool_back_and_a_missing_scope_does(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    enable(
        "echo",
        side_effect="Read",
        scopes=[{"resource": "soul:fs:/data", "action": "read"}],
        capabilities={"fs": [{"path": "/data", "actions": ["read"]}]},
    )
    grant(ECHO, scopes=[])
    assert "AUTH.SCOPE_MISSING" in warnings(caller)

    grant(ECHO, conditions=[{"pointer": "/text", "op": "equals", "value": "x"}])
    assert names(caller) == [ECHO]


@pytest.mark.req("TOOLS-12", "TOOLS-19")
def test_a_tool_that_needs_consent_is_offered_since_an_agent_can_ask_for_it(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    enable("write", side_effect="Write", idempotency="keyed")
    grant()

    assert names(caller) == ["sample.tools.write"]


@pytest.mark.req("TOOLS-12")
@pytest.mark.parametrize("how", ["tool paused", "installation paused", "tool halted", "yanked", "sunset", "secret"])
def test_what_nobody_can_call_is_not_offered(
    how: str, enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    secret = [{"name": "TOKEN", "description": "x"}] if how == "secret" else []
    tool = enable("echo", secrets=secret)
    enable("plans")
    grant()
    match how:
        case "tool paused":
            lifecycle.pause_tool(name=ECHO, reason="for a test", by=operator.by)
        case "installation paused":
            installations.pause_installation(name=ECHO, reason="for a test", by=operator.by)
        case "tool halted":
            halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="for a test", by=operator.by)
        case "yanked":
            assert tool.current_id is not None
            lifecycle.yank_version(version_id=tool.current_id, reason="for a test", by=operator.by)
        case "sunset":
            lifecycle.deprecate_tool(name=ECHO, reason="x", sunset_on=date(2900, 1, 1), by=operator.by)
            type(tool).objects.filter(pk=tool.pk).update(sunset_on=datetime.now(UTC).date() - timedelta(days=1))

    offer = offer_tools(by=caller.by)

    assert [each.id for each in offer.manifests] == [PLANS]
    assert set(offer.kept_back) == {ECHO}


@pytest.mark.req("TOOLS-12")
def test_nothing_is_offered_to_a_key_that_was_revoked_since_it_was_looked_at(
    three: None, caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    grant()
    assert names(caller) == [ECHO, PLANS, RAISES]
    assert caller.by.key_id is not None
    access.revoke_key(key_id=caller.by.key_id, by=operator.by)

    assert "3 tools are kept back (AUTH.FORBIDDEN). For one of them: The key of this call was revoked" in warnings(
        caller
    )


@pytest.mark.req("TOOLS-12")
def test_an_empty_list_says_why(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    assert "No tool is installed" in warnings(caller)

    enable("echo")
    enable("plans")
    assert "2 tools are kept back (AUTH.NO_GRANT)" in warnings(caller)

    grant()
    assert "matches the search" in warnings(caller, q="dinosaurs")
    assert "matches the search" in warnings(caller, group="other")

    lifecycle.pause_tool(name=PLANS, reason="broken", by=operator.by)
    assert "1 tool is kept back (TOOL.PAUSED)" in warnings(caller, q="plans")

    installations.pause_installation(name=ECHO, reason="broken", by=operator.by)
    assert "2 tools are kept back (TOOL.PAUSED)" in warnings(caller)

    halts.throw_halt(reach=Reach.TENANT, reason="fire drill", by=operator.by)
    assert "fire drill" in warnings(caller)


@pytest.mark.req("TOOLS-12", "TOOLS-22")
def test_nothing_of_another_tenant_is_offered(
    three: None, caller: Caller, foreign_caller: Caller, grant: Callable[..., Any], stranger: Person
) -> None:
    access.give_grant(agent_id=None, tools="*", reason="x", by=stranger.by)

    offer = offer_tools(by=foreign_caller.by)

    assert (offer.manifests, offer.installed, offer.kept_back) == ([], [], {})


@pytest.mark.req("TOOLS-12")
def test_many_tools_cost_no_more_statements_than_few(
    three: None, caller: Caller, grant: Callable[..., Any], django_assert_max_num_queries: Any
) -> None:
    grant()
    names(caller)

    with django_assert_max_num_queries(2):
        assert len(names(caller)) == 3
    with django_assert_max_num_queries(3):
        assert names(caller, tag="sample")


@pytest.mark.req("TOOLS-12")
@pytest.mark.parametrize(
    ("changes", "read_only", "destructive", "open_world"),
    [
        ({"side_effect": "None"}, True, False, False),
        ({"side_effect": "Read"}, True, False, False),
        ({"side_effect": "Network"}, False, False, True),
        ({"side_effect": "Network", "safety_class": "High"}, False, True, True),
        ({"side_effect": "Write"}, False, True, False),
        ({"side_effect": "Process"}, False, True, False),
        ({"side_effect": "Browser"}, False, True, True),
    ],
)
def test_hints_say_no_less_than_what_was_reviewed(
    changes: dict[str, str], read_only: bool, destructive: bool, open_world: bool
) -> None:
    spec = build_spec(Manifest(manifest(**changes)))

    hints = spec.annotations
    assert (hints.read_only, hints.destructive, hints.open_world) == (read_only, destructive, open_world)
    assert hints.idempotent is read_only
    assert (spec.name, spec.parameters) == (ECHO, manifest()["input_schema"])
