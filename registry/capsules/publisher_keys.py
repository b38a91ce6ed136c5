"""Publisher keys: whose signatures count for what a tenant publishes, and whether there must be one.

What a revoked key has signed counts as unsigned from the next call on, also what it signed before: whoever stole it can sign with any
date. Versions stay as they are, and policies that ask for ``signed`` refuse them; yank what must not run at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import AddedPublisherKey, ChangedPublishing, RevokedPublisherKey
from kernel.ids import encode
from kernel.problems import Conflict, SchemaInvalid
from registry.capsules.models import PublisherKey, PublishingRules
from unitools.capsules.errors import NotAKey

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

MAX_NAME = 80
MAX_PEM = 4096


@transaction.atomic
def add_publisher_key(*, name: str, pem: str, by: Principal) -> PublisherKey:
    """Believe this key from now on. One that was revoked cannot be added again."""
    from unitools.capsules.signatures import read_public_key  # noqa: PLC0415  brings the key services of all clouds

    name = name.strip()
    if not name or len(name) > MAX_NAME:
        raise SchemaInvalid.at("/name", f"Give the key a name of at most {MAX_NAME} characters.")
    try:
        key = read_public_key(pem.strip() + "\n")
    except NotAKey as error:
        raise SchemaInvalid.at("/public_key", str(error)) from error
    rows = PublisherKey.objects.filter(tenant_id=by.tenant_id)
    if (known := rows.filter(key_id=key.id).first()) is not None:
        if known.revoked_at is not None:
            raise Conflict("This key was revoked, and never counts again.", remedy="Make a new key pair.")
        raise Conflict(f"This key is here already, as {known.name}.")
    if rows.filter(name=name).exists():
        raise Conflict(f"There is a key {name} already.", remedy="Choose another name.")
    try:
        with transaction.atomic():
            row = PublisherKey.objects.create(
                tenant_id=by.tenant_id, name=name, key_id=key.id, public_key=key.pem, added_by=by.id
            )
    except IntegrityError as error:
        raise Conflict("Somebody added the same key, or one of this name, at this moment.") from error
    evidence.record(
        kind=Kind.PUBLISHER_KEY_ADDED,
        subject=row.wire_id,
        actor=by,
        data=AddedPublisherKey(name=name, key_id=row.key_id),
    )
    return row


@transaction.atomic
def revoke_publisher_key(*, key_id: UUID, reason: str, by: Principal) -> PublisherKey:
    """Believe it no more, for good. What it signed counts as unsigned with the next call."""
    row = PublisherKey.objects.select_for_update().get(pk=key_id, tenant_id=by.tenant_id)
    if row.revoked_at is not None:
        raise Conflict("This key is revoked already.")
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Write why, so that others can tell a lost key from an old one.")
    row.revoked_at, row.revoked_by, row.revoke_reason = timezone.now(), by.id, reason.strip()
    row.save(update_fields=["revoked_at", "revoked_by", "revoke_reason"])
    evidence.record(
        kind=Kind.PUBLISHER_KEY_REVOKED,
        subject=row.wire_id,
        actor=by,
        data=RevokedPublisherKey(name=row.name, key_id=row.key_id, reason=row.revoke_reason),
    )
    return row


def signatures_required(tenant_id: UUID) -> bool:
    return PublishingRules.objects.filter(tenant_id=tenant_id, signatures_required=True).exists()


@transaction.atomic
def change_publishing(*, signatures_required: bool, by: Principal) -> PublishingRules:
    """Whether capsules that nobody signed are taken. What was taken before stays."""
    row, _ = PublishingRules.objects.select_for_update().get_or_create(
        tenant_id=by.tenant_id, defaults={"changed_by": by.id}
    )
    row.signatures_required, row.changed_by = signatures_required, by.id
    row.save(update_fields=["signatures_required", "changed_by", "changed_at"])
    evidence.record(
        kind=Kind.PUBLISHING_CHANGED,
        subject=encode("ten", by.tenant_id),
        actor=by,
        data=ChangedPublishing(signatures_required=signatures_required),
    )
    return row
