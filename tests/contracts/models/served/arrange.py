"""Models for other programs: which models and tools do programs of others find? Run with the environment of a hub, and the address
of a provider (``argv[1]``).

A tenant with one tool that greets, and with models of a provider on this machine: one that is shown tools of the hub alone, one that
is shown callers' own as well, and one that makes vectors. Prints the key of an agent that may call all of them.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402

from access import services as access  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.roles import AGENT_SCOPES, Role  # noqa: E402
from kernel.principal import Principal  # noqa: E402
from registry.model_providers.connected_models import connect_model  # noqa: E402
from registry.model_providers.services import connect_provider  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.mcp_conformance.arrange import PREFIX, document_of  # noqa: E402

WHY = "For a test."
MODELS: dict[str, dict[str, Any]] = {
    "main": {"operation": "chat", "max_output_tokens": 4096},
    "open": {"operation": "chat", "caller_tools": "allow"},
    "vectors": {"operation": "embed"},
}


def main(provider: str) -> None:
    call_command("init")
    tenant = access.create_tenant(slug="served", name="Served")
    setup = Principal.system("setup", tenant_id=tenant.pk)
    people: dict[Role, Principal] = {}
    for role in (Role.DEVELOPER, Role.OPERATOR):
        user = get_user_model().objects.create_user(username=f"served-{role}", password=secrets.token_hex())
        access.give_membership(tenant=tenant, user=user, role=role, by=setup)
        people[role] = principal_of_user(get_user_model().objects.get(pk=user.pk), tenant)
    operator = people[Role.OPERATOR]
    version = registry.submit_version(document=document_of("greet"), by=people[Role.DEVELOPER])
    registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator)
    registry.enable_tool(name=version.tool.name, version_id=version.pk, reason=WHY, by=operator)
    connect_provider(
        name="mock",
        kind="openai_compatible",
        address=f"{provider}/v1",
        settings={"retries": 0},
        reason=WHY,
        by=operator,
    )
    for alias, terms in MODELS.items():
        connect_model(provider="mock", alias=alias, model="mock-1", unpriced="count", reason=WHY, by=operator, **terms)
    agent = access.create_agent(name="served", by=setup)
    for tools in (f"{PREFIX}*", "model.*"):
        access.give_grant(agent_id=agent.pk, tools=tools, reason=WHY, by=operator)
    _, key = access.create_key(agent=agent, scopes=(*AGENT_SCOPES, "models:call"), by=setup)
    _, narrow = access.create_key(agent=agent, scopes=("tools:read",), by=setup)
    print(json.dumps({"key": key, "narrow": narrow}))


if __name__ == "__main__":
    main(sys.argv[1])
