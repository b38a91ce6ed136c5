"""Scenes: what else the demonstration shows, every part of the console with something in it.

Budgets, a policy that waits for its second person, a secret, a shared tool that another tenant has installed, a grant that was
asked for, a kill switch that was thrown and lifted. None of it changes what the demonstration's calls may do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.budgets.services import set_budget
from access.grants import requests
from access.halts import services as halts
from access.middleware import principal_of_user
from access.models import Budget, BudgetScope, Dimension, GrantRequest, Halt, PolicyVersion, Reach
from access.policies import services as policies
from registry.installations import services as installations
from registry.models import Installation, Secret, Tool
from registry.secrets import services as secrets
from registry.tools import lifecycle

if TYPE_CHECKING:
    from typing import Any

    from access.models import Agent, Tenant
    from kernel.principal import Principal

SHARED = "commerce.knowledge.search"
CRM_TOKEN = "demo-crm-token"  # noqa: S105  the name, not the value
DRAFT = {
    "format": 1,
    "note": "Sales calls at night ask a person first; what they answer keeps no e-mail address.",
    "rules": [
        {"id": "all", "effect": "permit", "when": {}},
        {
            "id": "orders-at-night",
            "effect": "consent",
            "when": {"tool": {"matches": "commerce.checkout.*"}, "hour": {"at_most": 5}},
            "consent": {"mode": "once"},
        },
        {
            "id": "no-mail-addresses",
            "effect": "oblige",
            "when": {"tool": {"matches": "commerce.*"}},
            "obligations": [{"action": "mask", "detector": "email"}],
        },
        {"id": "price-of-a-quote", "effect": "price", "when": {"tags": {"contains": "pricing"}}, "amount_micros": 1500},
    ],
}


def build_scenes(tenant: Tenant, other: Tenant, agent: Agent, *, operator: Principal, neighbour: Any) -> None:
    """Make what is not there yet. ``neighbour``: a user who operates the other tenant."""
    by = operator
    if not Budget.objects.filter(tenant=tenant, scope=BudgetScope.TENANT).exists():
        reason = "So that a loop cannot spend the month."
        set_budget(scope=BudgetScope.TENANT, dimension=Dimension.MONEY, amount=50_000_000, reason=reason, by=by)
        set_budget(
            scope=BudgetScope.AGENT, dimension=Dimension.CALLS, amount=5_000, agent_id=agent.pk, reason=reason, by=by
        )
        set_budget(
            scope=BudgetScope.TENANT, dimension=Dimension.CONCURRENCY, amount=20, window_s=0, reason=reason, by=by
        )
    if not PolicyVersion.objects.filter(tenant=tenant).exists():
        policies.draft_policy(document=DRAFT, note="For the night shift.", by=by)
    if not Secret.objects.filter(tenant=tenant, name=CRM_TOKEN).exists():
        secrets.set_secret(name=CRM_TOKEN, value="not-a-real-token-of-anything", by=by)
    if not GrantRequest.objects.filter(tenant=tenant).exists():
        requests.request_grant(
            agent_id=agent.pk, tools="tag:reports", purpose="The weekly report needs the sales figures.", by=by
        )
    if not Halt.objects.filter(tenant=tenant).exists():
        halt = halts.throw_halt(reach=Reach.TOOL, target=SHARED, reason="A drill of the kill switch.", by=by)
        halts.lift_halt(halt_id=halt.pk, reason="The drill is over.", by=by)
    if not Tool.objects.get(tenant=tenant, name=SHARED).shared:
        lifecycle.share_tool(name=SHARED, reason="Every tenant may search the handbook.", by=by)
    if not Installation.objects.filter(tenant=other, name=SHARED).exists():
        installations.install_tool(
            name=SHARED, reason="Our agents read the same handbook.", by=principal_of_user(neighbour, other)
        )
