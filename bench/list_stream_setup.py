"""List stream set-up: agents that listen, and one key of each. Run with the environment of a measured hub.

Prints the keys as one JSON list, and last one that may pause and resume tools. Each agent is granted all tools of the demonstration.
"""

from __future__ import annotations

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access import services as access  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Tenant  # noqa: E402
from access.roles import AGENT_SCOPES  # noqa: E402
from kernel.principal import Principal  # noqa: E402


def main(count: int) -> None:
    tenant = Tenant.objects.get(slug="demo")
    operator = principal_of_user(get_user_model().objects.get(username="olivia"), tenant)
    setup = Principal.system("setup", tenant_id=tenant.pk)
    keys = []
    for number in range(count):
        agent = access.create_agent(name=f"listener-{number:04}", by=setup)
        access.give_grant(agent_id=agent.pk, tools="*", reason="To measure.", by=operator)
        keys.append(access.create_key(agent=agent, scopes=AGENT_SCOPES, by=setup)[1])
    _, by_hand = access.create_key(agent=agent, scopes=("tools:operate",), by=setup)
    print(json.dumps([*keys, by_hand]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
