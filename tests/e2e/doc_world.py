"""The world of the docs: whose keys do the pages of the docs assume? Makes them in a hub, run with the hub's environment; prints
names and values as JSON.
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

from access import services as access  # noqa: E402
from access.agents import services as agents  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Agent, Delivery, Tenant  # noqa: E402
from access.notifications import channels  # noqa: E402
from access.roles import SCOPES, Role  # noqa: E402
from invocations.callbacks.services import make_endpoint  # noqa: E402
from kernel.principal import Principal  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.secrets.services import set_secret  # noqa: E402
from registry.tools import lifecycle  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.manifests import manifest  # noqa: E402

REPORT = manifest(
    id="reports.monthly.build",
    input_schema={
        "type": "object",
        "required": ["month"],
        "additionalProperties": False,
        "properties": {"month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}},
    },
    implementation={"module": "sample.tools", "entry": "strict"},
)
PLACES = manifest(
    id="geo.places.find",
    version="2.0.0",
    side_effect="Network",
    capabilities={"net": [{"host": "*.maps.example"}]},
    config_schema={
        "type": "object",
        "required": ["region"],
        "additionalProperties": False,
        "properties": {"region": {"type": "string", "maxLength": 20}},
    },
    secrets=[{"name": "API_TOKEN", "description": "What the service asks for."}],
    implementation={"module": "sample.tools", "entry": "echo"},
)


def put_into_use(document: dict[str, Any], *, author: Principal, operator: Principal) -> str:
    version = registry.submit_version(document=document, by=author)
    registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator)
    registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="For the docs.", by=operator)
    return str(version.tool.name)


def make_person(tenant: Tenant, name: str, role: Role) -> Principal:
    user = get_user_model().objects.create_user(username=name, password=secrets.token_hex(12))
    access.give_membership(tenant=tenant, user=user, role=role, by=Principal.system("setup", tenant_id=tenant.pk))
    return principal_of_user(get_user_model().objects.get(pk=user.pk), tenant)


def share_a_tool() -> None:
    """Another tenant's, that everybody may install."""
    maps = access.create_tenant(slug="maps", name="Maps")
    author, operator = (
        make_person(maps, name, role) for name, role in (("mara", Role.DEVELOPER), ("miles", Role.OPERATOR))
    )
    name = put_into_use(PLACES, author=author, operator=operator)
    lifecycle.share_tool(name=name, reason="For the docs.", by=operator)


def fail_a_delivery(operator: Principal) -> str:
    """A message that was given up, as it is after the last try."""
    row, _ = channels.set_notification(
        channel="webhook", target="https://gone.example.org/toolhub", events=["review.waiting"], by=operator
    )
    given_up = Delivery.objects.create(
        notification=row, event="review.waiting", subject="ver_1", body={}, attempts=9, last_error="nobody answers"
    )
    return given_up.wire_id


def main() -> None:
    tenant = Tenant.objects.get(slug="demo")
    setup = Principal.system("setup", tenant_id=tenant.pk)
    olivia, dana = (
        principal_of_user(get_user_model().objects.get(username=name), tenant) for name in ("olivia", "dana")
    )
    agent = Agent.objects.get(tenant=tenant, name="shopping-assistant")
    _, key = agents.create_key(agent=agent, scopes=list(SCOPES), by=setup)
    buyer, helper = (agents.create_agent(name=name, by=setup) for name in ("buyer", "helper"))
    _, buyers_key = agents.create_key(
        agent=buyer, scopes=["tools:read", "invocations:create", "grants:request"], by=setup
    )
    grant = access.give_grant(
        agent_id=agent.pk, tools="commerce.pricing.*", reason="For the docs.", may_delegate=1, by=olivia
    )
    put_into_use(REPORT, author=dana, operator=olivia)
    bookkeeper = agents.create_agent(name="bookkeeper", by=setup)
    _, bookkeepers_key = agents.create_key(
        agent=bookkeeper, scopes=["invocations:create", "invocations:read"], by=setup
    )
    access.give_grant(agent_id=bookkeeper.pk, tools="reports.*", reason="For the docs.", by=olivia)
    make_endpoint(agent_id=bookkeeper.pk, name="reports", url="https://agents.example.org/hooks/books", by=olivia)
    share_a_tool()
    set_secret(name="maps.token", value=secrets.token_hex(12), by=olivia)
    made = {
        "KEY": key,
        "ADMIN": key,
        "AGENT": agent.wire_id,
        "GRANT": grant.wire_id,
        "HELPER": helper.wire_id,
        "BUYERS_KEY": buyers_key,
        "BOOKKEEPERS_KEY": bookkeepers_key,
        "DELIVERY": fail_a_delivery(olivia),
        "PERSON": make_person(tenant, "ruth", Role.REVIEWER).id,
    }
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    main()
