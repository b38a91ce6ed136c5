"""Offers of the playground: the models and tools that its agent may call now, from the same lists that agents get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from access.budgets.selectors import load_budget_statuses
from access.models import Budget, BudgetScope
from invocations.decide.callable_tools import offer_tools
from invocations.playground.services import build_playground_principal
from kernel.database.connections import database_time
from registry.models import Installation, InstallationState, ToolKind

if TYPE_CHECKING:
    from uuid import UUID

    from access.budgets.selectors import BudgetStatus
    from invocations.playground.models import Playground
    from unitools.manifest import Manifest


@dataclass(frozen=True, slots=True)
class PlaygroundOffer:
    """``connected``: whether the tenant has any model to talk with. ``warnings``: why there is no model, where there is none."""

    models: list[Manifest] = field(default_factory=list)
    tools: list[Manifest] = field(default_factory=list)
    connected: bool = False
    warnings: list[str] = field(default_factory=list)


def list_connected_models(tenant_id: UUID) -> list[str]:
    """Ids of the models that can be talked with, by name, whoever may."""
    rows = Installation.objects.filter(tenant_id=tenant_id).of_kind(ToolKind.MODEL)
    found = rows.exclude(state=InstallationState.REMOVED).select_related("version")
    return sorted(row.name for row in found if row.version is not None and is_chat(row.version.view))


def is_chat(manifest: Manifest) -> bool:
    return manifest.model is not None and manifest.model.operation == "chat"


def load_offer(playground: Playground) -> PlaygroundOffer:
    by = build_playground_principal(playground)
    models = offer_tools(by=by, kind=ToolKind.MODEL)
    found = [each for each in models.manifests if is_chat(each)]
    return PlaygroundOffer(
        models=found,
        tools=offer_tools(by=by).manifests,
        connected=bool(list_connected_models(playground.tenant_id)),
        warnings=[] if found else models.warnings(shown=0),
    )


def load_budgets(playground: Playground) -> list[BudgetStatus]:
    """Those of its agent, and how much of each is left."""
    rows = Budget.objects.filter(
        tenant_id=playground.tenant_id, scope=BudgetScope.AGENT, agent_id=playground.agent_id, ended_at=None
    )
    return load_budget_statuses(
        list(rows.select_related("agent", "grant").order_by("dimension", "id")), database_time()
    )
