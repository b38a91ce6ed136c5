"""A scripted model, and agents that may have runs made with it. Run with the environment of a hub that tests/crash/arrange.py has
arranged; the arguments are the address of the model's server, and how many agents there are to be. Prints the key of each.
"""

from __future__ import annotations

import sys

from tests.e2e import arrange  # noqa: F401  sets Django up  # isort: skip

from django.contrib.auth import get_user_model

from access import services as access
from access.agents import services as agents
from access.budgets.services import set_budget
from access.middleware import principal_of_user
from access.models import Agent, Tenant
from kernel.principal import Principal
from llm.model_features import CHAT_PARAMETERS
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from tests.crash.arrange import PLENTY, agree_beforehand

PROVIDER, ALIAS = "scripted", "orders"
MODEL = f"model.{PROVIDER}.{ALIAS}"
SCOPES = ["models:call", "tools:read", "invocations:create", "invocations:read"]


def main(url: str, count: int) -> None:
    tenant = Tenant.objects.get(slug="demo")
    olivia = principal_of_user(get_user_model().objects.get(username="olivia"), tenant)
    setup = Principal.system("setup", tenant_id=tenant.pk)
    connect_provider(name=PROVIDER, kind="openai_compatible", address=f"{url}/v1", reason="For a test.", by=olivia)
    features = dict.fromkeys((*CHAT_PARAMETERS, "tools"), "passed")
    connect_model(
        provider=PROVIDER,
        alias=ALIAS,
        model=ALIAS,
        operation="chat",
        features=features,
        unpriced="count",
        reason="For a test.",
        by=olivia,
    )
    first = Agent.objects.get(tenant=tenant, name="shopping-assistant")
    set_budget(scope="tenant", dimension="tokens", amount=PLENTY, by=olivia)
    for number in range(count):
        agent = first if not number else agents.create_agent(name=f"assistant-{number}", by=setup)
        access.give_grant(agent_id=agent.pk, tools="model.*", reason="For a test.", by=olivia)
        if number:
            access.give_grant(agent_id=agent.pk, tools="sample.*", reason="For a test.", by=olivia)
            agree_beforehand(agent, by=olivia)
        _, key = agents.create_key(agent=agent, scopes=SCOPES, by=setup)
        sys.stdout.write(f"{key}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
