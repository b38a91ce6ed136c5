"""Rows of model providers: how one is found, and what may stand in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict

from kernel.http.outbound import AddressRefused, check_url
from kernel.problems import SchemaInvalid, StateUnfit
from registry.model_providers.settings import check_settings
from registry.models import ModelProvider, Secret
from registry.problems import UnknownModelProvider

if TYPE_CHECKING:
    from uuid import UUID

MAX_DATA_CLASSES = 20
SEGMENT = re.compile(r"[a-z][a-z0-9_]{0,39}")
WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")
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


def check_provider(row: ModelProvider) -> None:
    """Raise :class:`SchemaInvalid` for what cannot be kept, with its place."""
    if not WORD.fullmatch(row.kind):
        raise SchemaInvalid.at("/kind", "A kind has up to 40 lower-case letters, digits, hyphens and underscores.")
    if row.address:
        try:
            check_url(row.address)
        except AddressRefused as error:
            raise SchemaInvalid.at("/address", str(error)) from None
    if row.secret and not Secret.objects.filter(tenant_id=row.tenant_id, name=row.secret).exists():
        raise StateUnfit.at("/secret", f"There is no secret {row.secret[:80]!r} in this tenant. Set it first.")
    check_settings(row.settings)
    if len(row.data_classes) > MAX_DATA_CLASSES or len(set(row.data_classes)) < len(row.data_classes):
        raise SchemaInvalid.at("/data_classes", f"At most {MAX_DATA_CLASSES} classes, each once.")
    for place, each in enumerate(row.data_classes):
        if not WORD.fullmatch(each):
            raise SchemaInvalid.at(f"/data_classes/{place}", "A class is a word, such as personal or health.")


def find_provider(name: str, *, tenant_id: UUID, locked: bool = False) -> ModelProvider:
    """One of the tenant's providers; ``locked`` until the transaction ends."""
    rows = ModelProvider.objects.filter(tenant_id=tenant_id, name=name)
    row = (rows.select_for_update() if locked else rows).first()
    if row is None:
        raise UnknownModelProvider(f"This tenant has no model provider {name[:40]}.")
    return row
