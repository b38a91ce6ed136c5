"""Local models of the demonstration: where `make models` has installed them, its agent may ask them.

They run in the hub's own process, so that the first question to a model needs neither a key nor a network, and nothing leaves the
machine.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access import services as access
from llm.providers.kinds import LOCAL
from llm.providers.local import CHAT_NAME, CONTEXT_TOKENS, RUNTIME, WEIGHTS
from llm.providers.local_chat import FEATURES
from llm.providers.local_embeddings import LIBRARY
from llm.providers.local_embeddings import NAME as EMBED_NAME
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from registry.models import Tool

if TYPE_CHECKING:
    from access.models import Agent
    from kernel.principal import Principal

ALIAS = "smollm2"
CHAT = f"model.{LOCAL}.{ALIAS}"
VECTORS = {"e5": "embed", "e5_rerank": "rerank"}  # what the embedder is connected for, by alias
SCOPE = "models:call"
TOOLS = f"model.{LOCAL}.*"
DATA_CLASSES = ["personal"]  # what customers say of themselves goes to nobody: the model runs in the hub's own process
REASON = "A model of this machine, to try what a call of a model is."


def are_installed() -> bool:
    return all(find_spec(module) is not None for module in (RUNTIME, WEIGHTS, LIBRARY))


@transaction.atomic
def connect_local_models(agent: Agent, *, by: Principal) -> None:
    """Once: what somebody has changed or removed of it since stays so."""
    if Tool.objects.filter(tenant_id=by.tenant_id, name=CHAT).exists():
        return
    connect_provider(name=LOCAL, kind=LOCAL, data_classes=DATA_CLASSES, reason=REASON, by=by)
    said: dict[str, Any] = {"provider": LOCAL, "unpriced": "count", "reason": REASON, "by": by}
    connect_model(
        alias=ALIAS,
        model=CHAT_NAME,
        window_tokens=CONTEXT_TOKENS,
        max_output_tokens=FEATURES.max_output_tokens,
        features={name: str(treatment) for name, treatment in FEATURES.table.items()},
        **said,
    )
    for alias, operation in VECTORS.items():
        connect_model(alias=alias, model=EMBED_NAME, operation=operation, **said)
    access.give_grant(agent_id=agent.pk, tools=TOOLS, reason=REASON, calls_limit=10_000, by=by)
