"""Policy simulation: does trying a draft on past calls say what would have become of them?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction

from access.policies.compiler import BUILTIN
from access.policies.impact import previews
from access.policies.impact.simulation import MAX_EXAMPLES, MAX_GROUPS, simulate_calls
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.call_begins import Begin
from kernel.ids import encode, new_id
from kernel.principal import ActorKind, Principal
from tests.support.begin_end_pairs import keep_open_call
from tests.support.policies import CALL, compiled, permits

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import Tenant

pytestmark = pytest.mark.django_db
AGENT = "agt_00000000000000000000000001"


def began(tenant_id: UUID, decision: dict[str, Any] | None = None, **attributes: Any) -> UUID:
    """A call as its Begin fact keeps it."""
    invocation = new_id()
    made = CALL | {"agent": AGENT} | attributes
    said = {"allowed": True, "consent": False, "rules": ["hub@1#all"]} | (decision or {})
    with transaction.atomic():
        keep_open_call(invocation, tenant_id=tenant_id, tool=made["tool"])
        evidence.record(
            kind=Kind.INVOCATION_BEGAN,
            subject=encode("inv", invocation),
            actor=Principal(ActorKind.AGENT, AGENT, "assistant", tenant_id),
            invocation_id=invocation,
            tool=made["tool"],
            data=Begin.from_data({"decision_input": made, "decision": said}),
            at=datetime(2026, 11, 22, tzinfo=UTC) + timedelta(seconds=began.count),  # type: ignore[attr-defined]
        )
    began.count += 1  # type: ignore[attr-defined]
    return invocation


began.count = 0  # type: ignore[attr-defined]


def tried(tenant: Tenant, *rules: dict[str, Any], calls: int = 1000) -> dict[str, Any]:
    draft = compiled(permits(*rules), "tenant@2")
    return simulate_calls(previews.past_calls(tenant.pk, calls), lambda _: (BUILTIN, draft)).to_json()


def forbid(id: str, **when: Any) -> dict[str, Any]:
    return {"id": id, "effect": "forbid", "when": when}


@pytest.mark.req("TOOLS-28", "TOOLS-31")
def test_each_outcome_is_counted_grouped_by_rules_and_linked(tenant: Tenant) -> None:
    began(tenant.pk)
    denied = began(tenant.pk, tool="web.pages.fetch", group="web")
    held = began(tenant.pk, hour=3)
    allowed = began(tenant.pk, {"allowed": False, "rules": ["tenant@1#no-nights"]}, hour=23)
    found = tried(
        tenant,
        forbid("no-web", tool={"matches": "web.*"}),
        {"id": "ask", "effect": "consent", "when": {"hour": {"at_most": 4}}, "consent": {"mode": "once"}},
    )

    assert found["counts"] == {"same": 1, "now_denied": 1, "now_held": 1, "now_allowed": 1}
    assert found["calls"] == 4
    groups = {group["change"]: group for group in found["groups"]}
    assert {change: group["examples"][0]["invocation"] for change, group in groups.items()} == {
        "now_denied": encode("inv", denied),
        "now_held": encode("inv", held),
        "now_allowed": encode("inv", allowed),
    }
    assert groups["now_denied"]["old"] == ["hub#all"]
    assert groups["now_denied"]["new"] == ["builtin#sandbox", "tenant#no-web"]
    assert groups["now_allowed"]["old"] == ["tenant#no-nights"]
    assert "tenant#ask" in groups["now_held"]["new"]


@pytest.mark.req("TOOLS-28")
def test_a_consent_that_was_there_would_let_the_call_go_on(tenant: Tenant) -> None:
    ask = {"id": "ask", "effect": "consent", "when": {}, "consent": {"mode": "once"}}
    began(tenant.pk, {"consent": True}, consent=True)
    began(tenant.pk, consent=True)
    began(tenant.pk, dry_run=True)
    began(tenant.pk, {"consent": True})

    assert tried(tenant, ask)["counts"] == {"same": 4, "now_denied": 0, "now_held": 0, "now_allowed": 0}


@pytest.mark.req("TOOLS-28")
@pytest.mark.parametrize("nature", [{"side_effect": "Write"}, {"safety_class": "High"}])
def test_a_consent_that_the_tool_needs_anyway_is_no_change(tenant: Tenant, nature: dict[str, Any]) -> None:
    began(tenant.pk, {"consent": True}, **nature)
    began(tenant.pk, {"consent": False, "by_manifest": True})

    assert tried(tenant)["counts"]["same"] == 2


@pytest.mark.req("TOOLS-28")
def test_calls_without_a_recorded_decision_are_counted_apart(tenant: Tenant) -> None:
    with transaction.atomic():
        old = new_id()
        keep_open_call(old, tenant_id=tenant.pk, tool="a.b.c")
        evidence.record(
            kind=Kind.INVOCATION_BEGAN,
            subject=encode("inv", old),
            actor=Principal.system("test", tenant_id=tenant.pk),
            invocation_id=old,
            data=Begin.from_data({"origin": "api"}),  # as an older version wrote it
        )
    began(tenant.pk)

    assert (tried(tenant)["calls"], tried(tenant)["unusable"]) == (1, 1)


@pytest.mark.req("TOOLS-22", "TOOLS-28")
def test_only_the_last_calls_of_the_own_tenant_are_tried(
    tenant: Tenant, foreign_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "CHUNK", 2)
    began(foreign_tenant.pk)
    invocations = [began(tenant.pk) for _ in range(5)]
    found = tried(tenant, forbid("none"), calls=3)

    assert found["calls"] == 3
    examples = [each["invocation"] for each in found["groups"][0]["examples"]]
    assert examples == [encode("inv", each) for each in reversed(invocations[2:])]
    assert len(list(previews.past_calls(None, 100))) == 6


@pytest.mark.req("TOOLS-28")
def test_what_is_kept_is_bounded_and_says_what_is_left_out(tenant: Tenant) -> None:
    for number in range(MAX_GROUPS + 10):
        began(tenant.pk, {"rules": [f"tenant@1#r{number}"]}, agent=f"agt_{number}")
    for _ in range(30):
        began(tenant.pk)
    found = tried(tenant, forbid("all-of-it"))

    assert len(found["groups"]) == MAX_GROUPS
    assert found["more_groups"] == 11
    assert found["groups"][0]["count"] == 30
    assert sum(len(group["examples"]) for group in found["groups"]) <= MAX_EXAMPLES
    assert len(found["agents"]) == 50
    assert found["tools"] == [{"tool": "shop.prices.get", "same": 0, "now_denied": 90, "now_held": 0, "now_allowed": 0}]


@pytest.mark.req("TOOLS-28", "TOOLS-31")
def test_a_draft_of_the_hub_is_tried_with_the_policy_of_each_tenant(tenant: Tenant, foreign_tenant: Tenant) -> None:
    began(tenant.pk)
    began(foreign_tenant.pk)
    hub = compiled(permits(), "hub@2")
    strict = compiled(permits(forbid("nothing")), "tenant@4")
    found = simulate_calls(
        previews.past_calls(None, 10), lambda owner: (hub, strict) if owner == foreign_tenant.pk else (hub,)
    ).to_json()

    assert (found["counts"]["same"], found["counts"]["now_denied"]) == (1, 1)
    assert found["groups"][0]["examples"][0]["tenant"] == foreign_tenant.wire_id
