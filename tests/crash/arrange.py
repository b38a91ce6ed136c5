"""The tools and budgets of a hub that is to be crashed. Run with the hub's environment; the first argument is the store's port."""

from __future__ import annotations

import sys

from tests.e2e import arrange  # sets Django up  # isort: skip

from django.contrib.auth import get_user_model

from access.budgets.services import set_budget
from access.consents import services as consents
from access.middleware import principal_of_user
from access.models import Agent, Tenant
from kernel.principal import ActorKind, Principal
from registry.models import Decision
from registry.versions import services as registry
from tests.support.manifests import manifest
from tests.support.policies_in_force import permit, put_in_force

KINDS = {
    "honours_its_key": {"side_effect": "Write", "idempotency": "keyed"},
    "has_no_key": {"side_effect": "Write", "idempotency": "none"},
    "asks_a_person": {"side_effect": "Write", "idempotency": "none"},
    "reads": {"side_effect": "Network", "idempotency": "none"},
    "one_at_a_time": {"side_effect": "Network", "idempotency": "none", "concurrency": "serial"},
}
ASKS = "asks_a_person"  # about every call: nobody has agreed to more than one
PLENTY = 10**12
AGREED = [name for name, changes in KINDS.items() if changes["side_effect"] == "Write" and name != ASKS]


def agree_beforehand(agent: Agent, *, by: Principal) -> None:
    """Agree to all of its calls of the tools about which nobody is asked each time."""
    asks = Principal(kind=ActorKind.AGENT, id=agent.wire_id, name="", tenant_id=agent.tenant_id, agent_id=agent.pk)
    for name in AGREED:
        asked = consents.request_consent(
            tool=f"sample.tools.{name}", versions="^1", purpose="a test", validity_s=3600, by=asks
        )
        consents.approve_consent(consent_id=asked.pk, reason="For a test.", by=by)


def main() -> None:
    arrange.main()
    tenant = Tenant.objects.get(slug="demo")
    people = get_user_model().objects
    dana, olivia = (principal_of_user(people.get(username=name), tenant) for name in ("dana", "olivia"))
    put_in_force(permit())
    port = int(sys.argv[1])
    for name, changes in KINDS.items():
        document = manifest(
            name,
            implementation={"module": "sample.counting", "entry": name},
            capabilities={"net": [{"host": "localhost", "port": port, "scheme": "http"}]},
            input_schema={
                "type": "object",
                "properties": {"store": {"type": "string"}, "seconds": {"type": "number"}, "order": {"type": "string"}},
                "additionalProperties": False,
            },
            timeout_ms=30_000,
            **changes,
        )
        version = registry.submit_version(document=document, by=dana)
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=olivia)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="For a test.", by=olivia)
    agent = Agent.objects.get(tenant=tenant)
    agree_beforehand(agent, by=olivia)
    for dimension in ("calls", "bytes_in", "bytes_out", "cpu_ms"):
        set_budget(scope="agent", dimension=dimension, amount=PLENTY, agent_id=agent.pk, by=olivia)
    set_budget(scope="agent", dimension="concurrency", amount=1000, window_s=0, agent_id=agent.pk, by=olivia)


if __name__ == "__main__":
    main()
