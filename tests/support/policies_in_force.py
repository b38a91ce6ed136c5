"""Put a policy in force without the two people that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils import timezone

from access.models import PolicyState, PolicyVersion
from access.policies.compiler import BUILTIN_DOCUMENT
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from access.models import Tenant


def put_in_force(*rules: dict[str, Any], tenant: Tenant | None = None) -> PolicyVersion:
    """A policy with exactly these rules, for the tenant or for the hub, in place of the one before."""
    document = {"format": 1, "rules": list(rules)}
    owned = PolicyVersion.objects.filter(tenant=tenant)
    owned.filter(state=PolicyState.IN_FORCE).update(state=PolicyState.SUPERSEDED)
    return PolicyVersion.objects.create(
        tenant=tenant,
        number=owned.count() + 1,
        state=PolicyState.IN_FORCE,
        document=document,
        digest=compute_digest(document),
        drafted_by="usr_1",
        published_by="usr_2",
        published_at=timezone.now(),
    )


def permit(id: str = "all", **when: Any) -> dict[str, Any]:
    return {"id": id, "effect": "permit", "when": when}


def forbid(id: str, **when: Any) -> dict[str, Any]:
    return {"id": id, "effect": "forbid", "when": when}


def degrade(tool: str, **less: Any) -> dict[str, Any]:
    """``answered_by`` another model, or fewer ``tools``."""
    return {"id": "less", "effect": "degrade", "when": {"tool": {"equals": tool}}, **less}


def ceiling(id: str, capabilities: dict[str, Any] | None = None, **limits: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": id, "effect": "ceiling", "when": {}}
    return (
        rule | ({} if capabilities is None else {"capabilities": capabilities}) | ({"limits": limits} if limits else {})
    )


BUILTIN_LIMITS: dict[str, int] = BUILTIN_DOCUMENT["rules"][1]["limits"]
