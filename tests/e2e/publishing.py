"""People around a push: what do people do at a hub around a push? ``author`` prints a key, ``review`` approves and enables; it sets
secrets of what was brought to what stands behind it; ``policy`` lets tools reach what they are granted; with the hub's environment.
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
from registry.installations import services as installations  # noqa: E402
from registry.installations.services import Setup  # noqa: E402
from registry.models import Decision, ToolVersion  # noqa: E402
from registry.secrets import services as secrets  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.policies_in_force import permit, put_in_force  # noqa: E402

GROUP = "acme."


def main(what: str, value: str = "") -> None:
    if what == "policy":
        put_in_force(permit())  # which reaches every host, as the hub's own does not
        return
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
        named = {each["name"]: each["name"].lower() for each in version.view.secrets}
        if value and named:
            for name in named.values():
                secrets.set_secret(name=name, value=value, by=olivia)
            put_in_force(permit())  # which reaches every host, as the hub's own does not
            setup = Setup(secrets=named)
            installations.configure_installation(name=version.tool.name, values=setup, reason="For a test.", by=olivia)


if __name__ == "__main__":
    main(*sys.argv[1:])
