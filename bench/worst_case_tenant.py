"""Worst-case tenant: everything that a decision may have to look at.

The demonstration tenant with all of it switched on: fifty rules for the hub and fifty for the tenant, grants of every kind,
budgets in every scope and dimension, consents, secrets, a kill switch that is not in reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from access.models import (
    Agent,
    Budget,
    BudgetScope,
    Consent,
    ConsentState,
    Dimension,
    Grant,
    Halt,
    PolicyState,
    PolicyVersion,
    Reach,
)
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

RULES = 50
YEAR_S = 31_536_000


def build_rules(layer: str) -> list[dict[str, Any]]:
    """One permits; of the rest most are about other tools, some about every call."""
    found: list[dict[str, Any]] = [{"id": "all", "effect": "permit", "when": {}}]
    if layer == "hub":
        found.append({"id": "box", "effect": "ceiling", "when": {}, "capabilities": {"tmp": 33_554_432}})
    other: list[dict[str, Any]] = [
        {"effect": "forbid", "when": {"tool": {"matches": "other.family.*"}}},
        {"effect": "consent", "when": {"tags": {"contains": "dangerous"}}, "consent": {"mode": "once"}},
        {"effect": "ceiling", "when": {"hour": {"at_least": 0}}, "limits": {"timeout_ms": 20_000}},
        {"effect": "price", "when": {"bytes_in": {"at_most": 100_000}}, "amount_micros": 5},
        {"effect": "forbid", "when": {"side_effect": {"equals": "Process"}, "weekday": {"at_least": 6}}},
    ]
    found += [{"id": f"rule-{n}"} | other[n % len(other)] for n in range(RULES - len(found))]
    return found


def switch_everything_on(by: Principal, tool: str) -> None:
    now = timezone.now()
    agent = Agent.objects.get(pk=by.agent())
    for tenant_id, layer in ((None, "hub"), (by.tenant_id, "tenant")):
        document = {"format": 1, "rules": build_rules(layer)}
        PolicyVersion.objects.create(
            tenant_id=tenant_id,
            number=PolicyVersion.objects.count() + 1,  # the demonstration has a draft
            state=PolicyState.IN_FORCE,
            document=document,
            digest=compute_digest(document),
            drafted_by="usr_1",
            published_by="usr_2",
            published_at=now,
        )
    given: dict[str, Any] = {"tenant_id": by.tenant_id, "reason": "bench", "given_by": "usr_1"}
    for text in ("tag:pricing", "commerce.* & ~effect:Write", "effect:Read", f"{tool} | other.*", "safety:Low"):
        Grant.objects.create(agent=agent, tools=text, **given)
        Grant.objects.create(agent=None, tools=text, **given)
    _budgets(by.tenant_id, agent, tool)
    for number in range(3):
        Consent.objects.create(
            tenant_id=by.tenant_id,
            agent=agent,
            tool=tool,
            versions=f"^{number + 1}",
            state=ConsentState.APPROVED,
            purpose="bench",
            validity_s=YEAR_S,
            requested_by=by.id,
            decided_by="usr_1",
            decided_at=now,
        )
    Halt.objects.create(
        tenant_id=by.tenant_id, reach=Reach.TOOL, target="other.tools.one", reason="bench", thrown_by="usr_1"
    )


def _budgets(tenant_id: UUID, agent: Agent, tool: str) -> None:
    """Every dimension for the tenant, and calls in every other scope."""
    wanted: list[tuple[dict[str, Any], str]] = [
        *(({"scope": BudgetScope.TENANT}, dimension) for dimension in Dimension.values),
        ({"scope": BudgetScope.AGENT, "agent": agent}, Dimension.CALLS),
        ({"scope": BudgetScope.TOOL, "tool": tool}, Dimension.CALLS),
    ]
    for owner, dimension in wanted:
        if dimension != Dimension.RATE:  # kept outside the database
            window_s = 0 if dimension == Dimension.CONCURRENCY else YEAR_S
            Budget.objects.create(
                tenant_id=tenant_id, dimension=dimension, amount=10**15, window_s=window_s, set_by="usr_1", **owner
            )
