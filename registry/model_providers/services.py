"""Model providers: whom a tenant has connected, under which name, address and key.

Settings count with the next call. What calls are decided by stands in the manifests of the models, which get a new version when it
changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import ConnectedProvider, MovedProvider
from kernel.canonical import compute_digest
from kernel.http.outbound import read_url
from kernel.problems import Conflict
from registry.installations.services import checked_reason
from registry.model_providers.circuits import forget_circuits
from registry.model_providers.connected_models import find_models, move_models, rewrite_models, take_away
from registry.model_providers.rows import FIELDS, check_provider, check_segment, find_provider
from registry.models import ModelProvider, ModelProviderState, ToolState

if TYPE_CHECKING:
    from kernel.principal import Principal

MAX_PROVIDERS = 50
CHANGED = ("reason", "changed_by", "changed_at")


def _record_provider(kind: Kind, row: ModelProvider, *, by: Principal) -> None:
    evidence.record(
        kind=kind,
        subject=row.urn,
        actor=by,
        data=ConnectedProvider(
            kind=row.kind,
            host=read_url(row.address).host if row.address else "",
            secret=row.secret,
            data_classes=row.data_classes,
            settings=compute_digest(row.settings),
            reason=row.reason,
        ),
    )


@transaction.atomic
def connect_provider(*, name: str, reason: str, by: Principal, **terms: Any) -> ModelProvider:
    """Let this tenant's models be answered by somebody. ``terms``: :class:`ProviderTerms`. It has no models yet."""
    check_segment(name, at="/name")
    row = ModelProvider(tenant_id=by.tenant_id, name=name, reason=checked_reason(reason), changed_by=by.id)
    for field, value in terms.items():
        setattr(row, field, value)
    check_provider(row)
    if ModelProvider.objects.filter(tenant_id=by.tenant_id).count() >= MAX_PROVIDERS:
        raise Conflict(f"A tenant has at most {MAX_PROVIDERS} model providers.", remedy="Remove one that nobody needs.")
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"There is a model provider {name} already.", remedy="Change that one, or choose another name."
        ) from error
    _record_provider(Kind.MODEL_PROVIDER_CONNECTED, row, by=by)
    return row


@transaction.atomic
def change_provider(*, name: str, reason: str, by: Principal, **terms: Any) -> ModelProvider:
    """Reach a provider otherwise, from the next call on. Its models get new versions where their manifests say it."""
    row = find_provider(name, tenant_id=by.tenant_id, locked=True)
    before = {field: getattr(row, field) for field in FIELDS}
    for field, value in terms.items():
        setattr(row, field, value)
    check_provider(row)
    row.reason, row.changed_by = checked_reason(reason), by.id
    row.save(update_fields=[*FIELDS, *CHANGED])
    _record_provider(Kind.MODEL_PROVIDER_CHANGED, row, by=by)
    if before != {field: getattr(row, field) for field in FIELDS}:
        forget_circuits(row)
        rewrite_models(row, reason=row.reason, by=by)
    return row


def _move_provider(name: str, to: ModelProviderState, kind: Kind, *, reason: str, by: Principal) -> ModelProvider:
    row = find_provider(name, tenant_id=by.tenant_id, locked=True)
    if row.state == to:
        raise Conflict(f"The model provider {name} is {to} already.", remedy="There is nothing to do.")
    row.state, row.reason, row.changed_by = to, checked_reason(reason), by.id
    row.save(update_fields=["state", *CHANGED])
    tools = ToolState.ENABLED if to == ModelProviderState.ENABLED else ToolState.PAUSED
    names = move_models(row, tools, reason=row.reason, by=by)
    evidence.record(kind=kind, subject=row.urn, actor=by, data=MovedProvider(models=names, reason=row.reason))
    return row


@transaction.atomic
def pause_provider(*, name: str, reason: str, by: Principal) -> ModelProvider:
    """Stop the calls of all its models at once: the next one is refused. Those that run go on."""
    return _move_provider(name, ModelProviderState.PAUSED, Kind.MODEL_PROVIDER_PAUSED, reason=reason, by=by)


@transaction.atomic
def enable_provider(*, name: str, reason: str, by: Principal) -> ModelProvider:
    """Let the calls of its models through again. A model that was paused by itself stays so."""
    return _move_provider(name, ModelProviderState.ENABLED, Kind.MODEL_PROVIDER_ENABLED, reason=reason, by=by)


@transaction.atomic
def remove_provider(*, name: str, reason: str, by: Principal) -> None:
    """Forget a provider and remove its models. What was called and decided stays in evidence."""
    reason, row = checked_reason(reason), find_provider(name, tenant_id=by.tenant_id, locked=True)
    models = list(find_models(row))
    for each in models:
        take_away(each, reason=reason, by=by)
    said = MovedProvider(models=[each.name for each in models], reason=reason)
    evidence.record(kind=Kind.MODEL_PROVIDER_REMOVED, subject=row.urn, actor=by, data=said)
    row.delete()
