"""Asked providers: the provider of a model as it stood when a call of the model was decided, read once.

Whoever asks the provider goes by this, so that the call is priced, reserved and asked by the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from invocations.problems import ModelNotReady
from kernel.database.rows import PreparedQuery
from registry.model_prices.price_tables import find_version_in_force
from registry.models import ModelProvider

if TYPE_CHECKING:
    from registry.models import ModelCircuit
    from unitools.manifest import ModelPart

NAMED = PreparedQuery(
    lambda tenant_id, name: ModelProvider.objects.filter(tenant_id=tenant_id, name=name), tenant_id=UUID, name=str
)


@dataclass(slots=True)
class AskedProvider:
    """``prices``: the version of the tenant's prices in force; None: it has set none. ``circuit``: None: it has not failed."""

    row: ModelProvider
    prices: UUID | None
    circuit: ModelCircuit | None = None


def load_provider(part: ModelPart, *, tenant_id: UUID) -> AskedProvider:
    """Raises :class:`ModelNotReady` where it was removed."""
    found = NAMED.first(tenant_id=tenant_id, name=part.provider)
    if found is None:
        raise ModelNotReady(f"The provider {part.provider} is not connected any more.")
    return AskedProvider(found, find_version_in_force(tenant_id))
