"""Soak tenants: who calls what in the soak.

Several tenants with tools and agents of their own. Run with the hub's environment; prints the keys.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access import services as access  # noqa: E402
from access.consents import services as consents  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.roles import AGENT_SCOPES, Role  # noqa: E402
from kernel.principal import ActorKind, Principal  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.manifests import manifest  # noqa: E402

if TYPE_CHECKING:
    from access.models import Tenant

TENANTS, AGENTS = 3, 2  # agents of each
TOOLS: dict[str, dict[str, Any]] = {
    "echo": {},
    "write": {"side_effect": "Write", "idempotency": "keyed"},
    "slow": {"implementation": {"module": "sample.hostile", "entry": "keeps_a_secret"}},
    "ungranted": {"implementation": {"module": "sample.tools", "entry": "echo"}},
}


def create_person(tenant: Tenant, name: str, role: Role) -> Principal:
    user = get_user_model().objects.create_user(username=name, password=secrets.token_hex(16))
    setup = Principal.system("setup", tenant_id=tenant.pk)
    access.give_membership(tenant=tenant, user=user, role=role, by=setup)
    return principal_of_user(get_user_model().objects.get(pk=user.pk), tenant)


def create_soak_tenant(number: int) -> list[str]:
    """A tenant with all that it needs; the keys of its agents."""
    tenant = access.create_tenant(slug=f"soak-{number}", name=f"Soak {number}")
    developer = create_person(tenant, f"soak-developer-{number}", Role.DEVELOPER)
    operator = create_person(tenant, f"soak-operator-{number}", Role.OPERATOR)
    for name, changes in TOOLS.items():
        version = registry.submit_version(document=manifest(name, **changes), by=developer)
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="To be called.", by=operator)
    setup = Principal.system("setup", tenant_id=tenant.pk)
    keys = []
    for each in range(AGENTS):
        agent = access.create_agent(name=f"agent-{each}", by=setup)
        for name in set(TOOLS) - {"ungranted"}:
            access.give_grant(agent_id=agent.pk, tools=f"sample.tools.{name}", reason="To be called.", by=operator)
        asks = Principal(kind=ActorKind.AGENT, id=agent.wire_id, name="", tenant_id=tenant.pk, agent_id=agent.pk)
        asked = consents.request_consent(
            tool="sample.tools.write", versions="^1", purpose="To be called.", validity_s=86_400, by=asks
        )
        consents.approve_consent(consent_id=asked.pk, reason="To be called.", by=operator)
        keys.append(access.create_key(agent=agent, scopes=AGENT_SCOPES, by=setup)[1])
    return keys


def main() -> None:
    print(json.dumps([key for number in range(TENANTS) for key in create_soak_tenant(number)]))


if __name__ == "__main__":
    main()
