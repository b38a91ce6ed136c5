"""Asked providers: the provider of a model, and what goes with it, as it stood when a call of the model was decided, read once.

Whoever asks the provider goes by this, so that the call is priced, reserved and asked by the same row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from invocations.problems import ModelNotReady
from kernel.database.rows import PreparedQuery, fetch_together
from registry.model_prefixes.services import PREFIX_IN_FORCE
from registry.model_prices.price_tables import VERSION_IN_FORCE
from registry.models import ModelCircuit, ModelProvider, Secret
from registry.secrets.services import open_secret

if TYPE_CHECKING:
    from registry.model_prefixes.models import ModelPrefix
    from unitools.manifest import ModelPart

NAMED = PreparedQuery(
    lambda tenant_id, name: ModelProvider.objects.filter(tenant_id=tenant_id, name=name), tenant_id=UUID, name=str
)
SECRET = PreparedQuery(
    lambda tenant_id, provider: Secret.objects.filter(
        tenant_id=tenant_id,
        name__in=ModelProvider.objects.filter(tenant_id=tenant_id, name=provider).values("secret"),
    ),
    tenant_id=UUID,
    provider=str,
)
CIRCUIT = PreparedQuery(
    lambda tenant_id, provider, model: ModelCircuit.objects.filter(
        provider__tenant_id=tenant_id, provider__name=provider, model=model
    ),
    tenant_id=UUID,
    provider=str,
    model=str,
)


@dataclass(frozen=True, slots=True)
class AskedProvider:
    """``prices``: the version of the tenant's prices in force; None: it has set none. ``circuit``: None: it has not failed.
    ``secret``: its key, sealed; None: it has none, or its value was never set.
    """

    name: str
    found: ModelProvider | None
    prices: UUID | None
    prefix: ModelPrefix | None  # what the tenant says to its models first
    circuit: ModelCircuit | None
    secret: Secret | None

    @property
    def row(self) -> ModelProvider:
        """Raises :class:`ModelNotReady` where it was removed."""
        if self.found is None:
            raise ModelNotReady(f"The provider {self.name} is not connected any more.")
        return self.found

    def open_key(self) -> str:
        """For a call that was accepted; empty where the provider needs none."""
        if self.secret is not None and self.secret.name == self.row.secret:  # and not of a change between the two looks
            return open_secret(self.secret)
        if self.row.secret:
            raise ModelNotReady(f"The key of the provider {self.name} is not kept any more.")
        return ""


def load_provider(part: ModelPart, *, tenant_id: UUID) -> AskedProvider:
    of_tenant = {"tenant_id": tenant_id}
    found, prices, prefixes, circuits, secrets = fetch_together(
        (NAMED, of_tenant | {"name": part.provider}),
        (VERSION_IN_FORCE, of_tenant),
        (PREFIX_IN_FORCE, of_tenant),
        (CIRCUIT, of_tenant | {"provider": part.provider, "model": part.name}),
        (SECRET, of_tenant | {"provider": part.provider}),
    )
    return AskedProvider(
        part.provider,
        next(iter(found), None),
        next((each.pk for each in prices), None),
        next((each for each in prefixes if each.text), None),
        next(iter(circuits), None),
        next(iter(secrets), None),
    )
