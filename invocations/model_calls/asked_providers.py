"""Asked providers: the provider of a model as it stood when a call of the model was decided, read by one statement.

Whoever asks the provider goes by this, so that the call is priced, reserved and asked by the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from invocations.problems import ModelNotReady
from registry.model_prices.price_tables import build_version_subquery
from registry.models import ModelProvider

if TYPE_CHECKING:
    from uuid import UUID

    from registry.models import ModelCircuit
    from unitools.manifest import ModelPart


@dataclass(slots=True)
class AskedProvider:
    """``prices``: the version of the tenant's prices in force; None: it has set none. ``circuit``: None: it has not failed."""

    row: ModelProvider
    prices: UUID | None
    circuit: ModelCircuit | None = None


def load_provider(part: ModelPart, *, tenant_id: UUID) -> AskedProvider:
    """Raises :class:`ModelNotReady` where it was removed."""
    rows = ModelProvider.objects.filter(tenant_id=tenant_id, name=part.provider)
    found = rows.annotate(prices_version=build_version_subquery("tenant_id")).first()
    if found is None:
        raise ModelNotReady(f"The provider {part.provider} is not connected any more.")
    return AskedProvider(found, found.prices_version)
