"""Connected models: which models does a tenant have in a test, and who answers for them? A scripted provider, in the process
(scripted_models.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.model_prices.services import set_model_prices
from registry.model_providers.connected_models import connect_model
from registry.model_providers.services import connect_provider
from registry.models import ModelProvider

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import ModelPrices, Tool

SCRIPTED = "scripted"  # the kind, for a factory: {SCRIPTED: ScriptedProvider}
PROVIDER, ALIAS = "script", "main"
MODEL = f"model.{PROVIDER}.{ALIAS}"


def connect_scripted_provider(by: Principal, name: str = PROVIDER, **terms: Any) -> ModelProvider:
    """``terms``: as for a provider; ``settings={"options": {"says": …}}`` is what its chat model answers."""
    return connect_provider(name=name, reason="for a test", by=by, **({"kind": SCRIPTED} | terms))


def connect_scripted_model(by: Principal, alias: str = ALIAS, provider: str = PROVIDER, **terms: Any) -> Tool:
    """``model.script.main``, and its provider where that is not there yet. ``terms``: as for a model, ``operation`` for one."""
    if not ModelProvider.objects.filter(tenant_id=by.tenant_id, name=provider).exists():
        connect_scripted_provider(by, provider)
    said = {"model": "script"} | terms
    return connect_model(provider=provider, alias=alias, reason="for a test", by=by, **said)


def set_script_prices(by: Principal, *, currency: str = "USD", rates: Any = (), **amounts: str) -> ModelPrices:
    """What the scripted model costs, by its own name and by the one that it answers with."""
    price = {"provider": PROVIDER, "effective_from": "2026-01-01", **amounts}
    prices = [price | {"model": name} for name in ("script", "script-001")]
    document = {"currency": currency, "rates": list(rates), "prices": prices}
    return set_model_prices(document=document, reason="for a test", by=by)
