"""Whose keys do the pages of the docs assume? Makes them in a hub, run with the hub's environment; prints names and values as JSON."""

from __future__ import annotations

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access import agents  # noqa: E402
from access import services as access  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Agent, Tenant  # noqa: E402
from access.roles import SCOPES  # noqa: E402
from toolhub.kernel.principal import Principal  # noqa: E402


def main() -> None:
    tenant = Tenant.objects.get(slug="demo")
    setup = Principal.system("setup", tenant_id=tenant.pk)
    olivia = principal_of_user(get_user_model().objects.get(username="olivia"), tenant)
    agent = Agent.objects.get(tenant=tenant, name="shopping-assistant")
    _, key = agents.create_key(agent=agent, scopes=list(SCOPES), by=setup)
    buyer, helper = (agents.create_agent(name=name, by=setup) for name in ("buyer", "helper"))
    _, buyers_key = agents.create_key(
        agent=buyer, scopes=["tools:read", "invocations:create", "grants:request"], by=setup
    )
    grant = access.give_grant(
        agent_id=agent.pk, tools="commerce.pricing.*", reason="For the docs.", may_delegate=1, by=olivia
    )
    made = {
        "KEY": key,
        "ADMIN": key,
        "AGENT": agent.wire_id,
        "GRANT": grant.wire_id,
        "HELPER": helper.wire_id,
        "BUYERS_KEY": buyers_key,
    }
    sys.stdout.write(json.dumps(made))


if __name__ == "__main__":
    main()
