"""People around a push: what do people do at a hub around a push? ``author`` prints a key, ``review`` approves and enables; with
the hub's environment.
"""

from __future__ import annotations

import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access import services as access  # noqa: E402
from access.agents import services as agents  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Agent, Tenant  # noqa: E402
from registry.models import Decision, ToolVersion  # noqa: E402
from registry.versions import services as registry  # noqa: E402

GROUP = "acme."


def main(what: str) -> None:
    tenant = Tenant.objects.get(slug="demo")
    people = get_user_model().objects
    oona, olivia = (principal_of_user(people.get(username=name), tenant) for name in ("oona", "olivia"))
    if what == "author":
        agent = Agent.objects.get(tenant=tenant)
        access.give_grant(agent_id=agent.pk, tools=f"{GROUP}*", reason="For a test.", by=olivia)
        author = agents.create_agent(name="author", by=oona)
        sys.stdout.write(agents.create_key(agent=author, scopes=["tools:register", "tools:read"], by=oona)[1])
        return
    for version in ToolVersion.objects.filter(tool__name__startswith=GROUP):
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=olivia)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="For a test.", by=olivia)


if __name__ == "__main__":
    main(sys.argv[1])
