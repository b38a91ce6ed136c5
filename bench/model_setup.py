"""Model set-up: a model of the measured provider, and an agent for it, in a hub that is measured; run with its environment.

``python -m bench.model_setup URL`` prints the agent's key as JSON; ``… limit MICROS`` sets what the model may cost from then on.
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
from access.agents import services as agents  # noqa: E402
from access.budgets.services import set_budget  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Tenant  # noqa: E402
from bench.model_provider import MODEL  # noqa: E402
from kernel.principal import Principal  # noqa: E402
from llm.model_features import CHAT_PARAMETERS  # noqa: E402
from registry.model_prices.services import set_model_prices  # noqa: E402
from registry.model_providers.connected_models import connect_model  # noqa: E402
from registry.model_providers.services import connect_provider  # noqa: E402
from registry.secrets.services import set_secret  # noqa: E402

NAME = "model.bench.main"
DAY_S = 86_400
REASON = "To measure."
PRICE = {
    "provider": "bench",
    "model": MODEL,
    "effective_from": "2026-01-01",
    "input": "2.50",
    "output": "10",
}  # as gpt-4o


def find_operator() -> Principal:
    tenant = Tenant.objects.get(slug="demo")
    return principal_of_user(get_user_model().objects.get(username="olivia"), tenant)


def connect(url: str) -> str:
    by = find_operator()
    tenant = Tenant.objects.get(pk=by.tenant_id)
    set_secret(name="bench.key", value="sk-bench", by=by)
    connect_provider(name="bench", kind="openai", address=f"{url}/v1", secret="bench.key", reason=REASON, by=by)
    features = dict.fromkeys(CHAT_PARAMETERS, "passed")
    connect_model(
        provider="bench", alias="main", model=MODEL, features=features, unpriced="count", reason=REASON, by=by
    )
    set_model_prices(document={"prices": [PRICE]}, reason=REASON, by=by)
    setup = Principal.system("setup", tenant_id=tenant.pk)
    agent = agents.create_agent(name="model-bench", by=setup)
    access.give_grant(agent_id=agent.pk, tools=NAME, reason=REASON, by=by)
    return agents.create_key(agent=agent, scopes=["models:call"], by=setup)[1]


def limit(micros: int) -> None:
    set_budget(
        scope="tool", tool=NAME, dimension="money", amount=micros, window_s=DAY_S, reason=REASON, by=find_operator()
    )


if __name__ == "__main__":
    if sys.argv[1] == "limit":
        limit(int(sys.argv[2]))
    else:
        print(json.dumps({"key": connect(sys.argv[1])}))
