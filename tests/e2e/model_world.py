"""Models of a tested hub: which models may an agent of a tested hub ask? ``python -m tests.e2e.model_world URL``, with the hub's
environment, prints its key.

The provider at that address (tests/support/chat_provider.py) is called ``house``, and has a model of each kind.
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
from kernel.principal import Principal  # noqa: E402
from llm.model_features import CHAT_PARAMETERS  # noqa: E402
from registry.model_providers.connected_models import connect_model  # noqa: E402
from registry.model_providers.services import connect_provider  # noqa: E402

PROVIDER = "house"
MODELS = {"talks": "chat", "embeds": "embed", "ranks": "rerank"}
SCOPES = ["models:call", "tools:read", "invocations:create", "invocations:read"]


def main(url: str) -> None:
    tenant = Tenant.objects.get(slug="demo")
    olivia = principal_of_user(get_user_model().objects.get(username="olivia"), tenant)
    connect_provider(
        name=PROVIDER,
        kind="openai_compatible",
        address=f"{url}/v1",
        settings={"options": {"rerank": "cohere"}},
        reason="For a test.",
        by=olivia,
    )
    for alias, operation in MODELS.items():
        features = dict.fromkeys((*CHAT_PARAMETERS, "tools"), "passed") if operation == "chat" else {}
        connect_model(
            provider=PROVIDER,
            alias=alias,
            model=alias,
            operation=operation,
            features=features,
            unpriced="count",
            reason="For a test.",
            by=olivia,
        )
    agent = Agent.objects.get(tenant=tenant, name="shopping-assistant")
    access.give_grant(agent_id=agent.pk, tools="model.*", reason="For a test.", by=olivia)
    _, key = agents.create_key(agent=agent, scopes=SCOPES, by=Principal.system("setup", tenant_id=tenant.pk))
    sys.stdout.write(key)


if __name__ == "__main__":
    main(sys.argv[1])
