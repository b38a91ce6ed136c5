"""Which roles do people have, and what does each allow?

Roles are groups per tenant that hold these permissions on the tenant, kept by django-guardian: a permission may also be
given to one person alone.
"""

from __future__ import annotations

from django.db.models import TextChoices

PERMISSIONS: dict[str, str] = {
    "tools.view": "See the catalogue",
    "tools.submit": "Submit tool versions",
    "tools.review": "Approve or refuse submitted versions",
    "tools.operate": "Enable, pause and deprecate tools",
    "agents.view": "See agents and their keys",
    "agents.manage": "Create agents and keys",
    "grants.view": "See grants",
    "grants.give": "Give and revoke grants",
    "consents.view": "See consents",
    "consents.decide": "Approve, deny and revoke consents",
    "invocations.view": "See calls",
    "evidence.view": "Browse evidence",
    "evidence.reveal": "Reveal stored values, with a reason",
}


class Role(TextChoices):
    OWNER = "owner"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    AUDITOR = "auditor"
    DEVELOPER = "developer"


_SEE = {"tools.view", "grants.view", "consents.view", "invocations.view", "agents.view"}

ROLE_PERMISSIONS: dict[str, frozenset[str]] = {
    Role.OWNER: frozenset(PERMISSIONS) - {"evidence.reveal"},
    Role.OPERATOR: frozenset(
        _SEE
        | {
            "tools.submit",
            "tools.review",
            "tools.operate",
            "agents.manage",
            "grants.give",
            "consents.decide",
            "evidence.view",
        }
    ),
    Role.REVIEWER: frozenset(_SEE | {"tools.review"}),
    Role.AUDITOR: frozenset(_SEE | {"evidence.view", "evidence.reveal"}),
    Role.DEVELOPER: frozenset({"tools.view", "tools.submit", "invocations.view"}),
}

# What an agent's key may carry. `plural:verb`.
SCOPES: dict[str, str] = {
    "tools:read": "Discover tools",
    "tools:register": "Submit tool versions",
    "invocations:create": "Preflight and invoke tools",
    "invocations:read": "Read the agent's own calls and their evidence",
    "consents:request": "Ask for consent and see its state",
    "grants:manage": "Give and revoke grants",
}
AGENT_SCOPES = ("tools:read", "invocations:create", "invocations:read", "consents:request")
