"""Model providers: whom a tenant has connected, under which name, address and key.

Settings count with the next call. What calls are decided by stands in the manifests of the models, which get a new version when it
changes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict

from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import ConnectedProvider
from kernel.canonical import compute_digest
from kernel.http.outbound import AddressRefused, check_url, read_url
from kernel.problems import Conflict, SchemaInvalid
from registry.installations.services import checked_reason
from registry.model_providers.settings import check_settings
from registry.models import ModelProvider, Secret
from registry.problems import UnknownModelProvider

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

MAX_PROVIDERS = 50
MAX_DATA_CLASSES = 20
SEGMENT = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KIND = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_DATA_CLASS = re.compile(r"[a-z][a-z0-9_-]{0,39}")
FIELDS = ("kind", "address", "secret", "settings", "data_classes")


class ProviderTerms(TypedDict, total=False):
    """What a person says of a provider; of a change what is left out stays as it is."""

    kind: str
    address: str
    secret: str
    settings: dict[str, Any]
    data_classes: list[str]


def check_segment(text: str, *, at: str) -> None:
    """Names of providers and models are segments of a tool's id."""
    if not SEGMENT.fullmatch(text):
        raise SchemaInvalid.at(
            at, "A name has up to 40 lower-case letters, digits and underscores, and begins with a letter."
        )


def _check_terms(row: ModelProvider) -> None:
    if not _KIND.fullmatch(row.kind):
        raise SchemaInvalid.at("/kind", "A kind has up to 40 lower-case letters, digits, hyphens and underscores.")
    if row.address:
        try:
            check_url(row.address)
        except AddressRefused as error:
            raise SchemaInvalid.at("/address", str(error)) from None
    if row.secret and not Secret.objects.filter(tenant_id=row.tenant_id, name=row.secret).exists():
        raise SchemaInvalid.at("/secret", f"There is no secret {row.secret[:80]!r} in this tenant. Set it first.")
    check_settings(row.settings)
    if len(row.data_classes) > MAX_DATA_CLASSES or len(set(row.data_classes)) < len(row.data_classes):
        raise SchemaInvalid.at("/data_classes", f"At most {MAX_DATA_CLASSES} classes, each once.")
    for place, each in enumerate(row.data_classes):
        if not _DATA_CLASS.fullmatch(each):
            raise SchemaInvalid.at(f"/data_classes/{place}", "A class is a word, such as personal or health.")


def record_provider(kind: Kind, row: ModelProvider, *, by: Principal) -> None:
    """The fact about what a provider is after a change."""
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


def find_provider(name: str, *, tenant_id: UUID, locked: bool = False) -> ModelProvider:
    """One of the tenant's providers; ``locked`` until the transaction ends."""
    rows = ModelProvider.objects.filter(tenant_id=tenant_id, name=name)
    row = (rows.select_for_update() if locked else rows).first()
    if row is None:
        raise UnknownModelProvider(f"This tenant has no model provider {name[:40]}.")
    return row


@transaction.atomic
def connect_provider(*, name: str, reason: str, by: Principal, **terms: Any) -> ModelProvider:
    """Let this tenant's models be answered by somebody. ``terms``: :class:`ProviderTerms`. It has no models yet."""
    check_segment(name, at="/name")
    row = ModelProvider(tenant_id=by.tenant_id, name=name, reason=checked_reason(reason), changed_by=by.id)
    for field, value in terms.items():
        setattr(row, field, value)
    _check_terms(row)
    if ModelProvider.objects.filter(tenant_id=by.tenant_id).count() >= MAX_PROVIDERS:
        raise Conflict(f"A tenant has at most {MAX_PROVIDERS} model providers.", remedy="Remove one that nobody needs.")
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(
            f"There is a model provider {name} already.", remedy="Change that one, or choose another name."
        ) from error
    record_provider(Kind.MODEL_PROVIDER_CONNECTED, row, by=by)
    return row
