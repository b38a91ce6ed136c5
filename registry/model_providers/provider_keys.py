"""Provider keys: a key that somebody types is kept as a secret of the tenant, in the transaction that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from kernel.problems import SchemaInvalid
from registry.model_providers.circuits import forget_circuits
from registry.model_providers.rows import find_provider
from registry.model_providers.services import change_provider, connect_provider
from registry.models import Secret
from registry.secrets.services import set_secret

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import ModelProvider


def name_secret(provider: str) -> str:
    return f"{provider}.key"


@transaction.atomic
def connect_with_key(*, name: str, key: str, reason: str, by: Principal, **terms: Any) -> ModelProvider:
    """Connect a provider, and keep its key first. Without a key: with the secret that is named, or none."""
    if key:
        terms["secret"] = _keep_key(name, key, secret=terms.get("secret", ""), own="", by=by)
    return connect_provider(name=name, reason=reason, by=by, **terms)


@transaction.atomic
def change_with_key(*, name: str, key: str, reason: str, by: Principal, **terms: Any) -> ModelProvider:
    """Change a provider. A key takes the place of the one that it has; what failed with that says nothing any more."""
    if key:
        row = find_provider(name, tenant_id=by.tenant_id, locked=True)
        terms["secret"] = _keep_key(name, key, secret=terms.get("secret", row.secret), own=row.secret, by=by)
        forget_circuits(row)
    return change_provider(name=name, reason=reason, by=by, **terms)


def _keep_key(provider: str, key: str, *, secret: str, own: str, by: Principal) -> str:
    """The name of the secret. One of something else is replaced only where it was chosen."""
    name = secret or name_secret(provider)
    if not secret and name != own and Secret.objects.filter(tenant_id=by.tenant_id, name=name).exists():
        raise SchemaInvalid.at("/secret", f"There is a secret {name} already. Choose it here to give it this value.")
    try:
        set_secret(name=name, value=key, by=by)
    except SchemaInvalid as problem:
        raise SchemaInvalid.at("/key", problem.details["findings"][0]["message"]) from None
    return name
