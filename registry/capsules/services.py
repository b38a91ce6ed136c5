"""Capsules: how one becomes versions in the catalogue, and how its code is had again.

Everything is examined ahead of the transaction, which keeps the bytes and registers each manifest, or nothing. Whoever reads the bytes
back holds them against their digest, so what somebody wrote into the database past the hub is never run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from access.models import Tenant
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import ReadCapsule, UploadedCapsule
from kernel.http.parsers import read_json
from kernel.problems import Malformed, TooLarge
from registry.capsules.models import Capsule, PublisherKey
from registry.capsules.publisher_keys import signatures_required
from registry.problems import (
    CapsuleDamaged,
    CapsuleInvalid,
    CapsulesFull,
    CapsuleSignatureInvalid,
    CapsuleSignerUnknown,
    CapsuleUnsigned,
    VersionExists,
)
from registry.versions import services
from unitools.capsules import CapsuleError, compute_capsule_digest, open_capsule
from unitools.capsules.errors import SignatureError, UnknownSigner
from unitools.capsules.errors import TooLarge as CapsuleTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import ToolVersion
    from unitools import capsules

MIB = 1024 * 1024
KEY_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CapsuleUpload:
    """What came of an upload: the capsule, and its versions in the order of their ids."""

    capsule: Capsule
    versions: list[ToolVersion]


def read_archive(content: bytes) -> capsules.Capsule:
    """Raises the problem of what is no capsule."""
    try:
        return open_capsule(content)
    except CapsuleTooLarge as error:
        raise TooLarge(str(error)) from error
    except CapsuleError as error:
        raise CapsuleInvalid(str(error), details={"problem": type(error).__name__}) from error


def check_manifest_text(manifest: dict[str, Any]) -> Any:
    """Through the same door as a manifest that is sent alone: not too deep, and nothing that cannot be stored."""
    try:
        return read_json(json.dumps(manifest).encode())
    except (Malformed, RecursionError) as error:
        raise CapsuleInvalid(
            f"A manifest in it cannot be read: {str(error)[:200]}", details={"problem": "WrongManifest"}
        ) from error


def _check_signature(capsule: capsules.Capsule, envelope: bytes, *, by: Principal) -> PublisherKey | None:
    """Who signed it; None: nobody did, and that is allowed here. A signature that cannot be believed is worse than none."""
    from unitools.capsules import signatures  # noqa: PLC0415  its library brings the key services of all clouds: 0.2 s

    if not envelope:
        if signatures_required(by.tenant_id):
            raise CapsuleUnsigned("This tenant takes only capsules that one of its publisher keys has signed.")
        return None
    try:
        named = [id for id in signatures.read_signers(envelope) if KEY_ID.fullmatch(id)]
        rows = PublisherKey.objects.filter(tenant_id=by.tenant_id, key_id__in=named, revoked_at=None)
        known = {row.key_id: row for row in rows}
        keys = [signatures.CapsuleKey(row.public_key) for row in rows]
        return known[signatures.verify(capsule, envelope, keys).id]
    except UnknownSigner as error:
        raise CapsuleSignerUnknown(str(error), details={"named": named}) from error
    except SignatureError as error:
        raise CapsuleSignatureInvalid(str(error), details={"problem": type(error).__name__}) from error


def upload_capsule(
    *, content: bytes, envelope: bytes = b"", drafters: Mapping[str, Sequence[str]] | None = None, by: Principal
) -> CapsuleUpload:
    """Keep a capsule and register each manifest in it as a version that waits for its review.

    ``envelope``: its signature; empty: none. ``drafters``: who wrote in the manifest of each tool. The same capsule again gives the
    same versions.
    """
    capsule = read_archive(content)
    key = _check_signature(capsule, envelope, by=by)
    documents = [check_manifest_text(each) for each in sorted(capsule.manifests, key=lambda each: str(each["id"]))]
    prepared = [services.prepare_version(document=each, by=by, capsule=capsule) for each in documents]
    with transaction.atomic():
        row = _keep(capsule, envelope, key, by=by)
        return CapsuleUpload(
            row,
            [
                services.register_version(
                    each, by=by, capsule=row, drafted_by=(drafters or {}).get(each.document["id"], ())
                )
                for each in prepared
            ],
        )


def _keep(capsule: capsules.Capsule, envelope: bytes, key: PublisherKey | None, *, by: Principal) -> Capsule:
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)  # two uploads are not to find the same last room
    keys = PublisherKey.objects.select_for_update(no_key=True).filter(revoked_at=None)
    if key is not None and keys.filter(pk=key.pk).first() is None:
        raise CapsuleSignerUnknown(f"The key {key.name} was revoked at this moment.")
    rows = Capsule.objects.filter(tenant_id=by.tenant_id)
    existing = rows.select_related("signed_by").defer("content").filter(digest=capsule.digest).first()
    if existing is not None:
        _check_same_signer(existing, key)
        return existing
    taken = int(rows.aggregate(bytes=Sum("size"))["bytes"] or 0)
    if taken + len(capsule.data) > settings.TOOLHUB_CAPSULES_MAX_MB * MIB:
        raise CapsulesFull(
            f"There is no room for {len(capsule.data):,} bytes more: the capsules of a tenant may take "
            f"{settings.TOOLHUB_CAPSULES_MAX_MB} MiB."
        )
    row = Capsule.objects.create(
        tenant_id=by.tenant_id,
        digest=capsule.digest,
        package=capsule.package,
        size=len(capsule.data),
        content=capsule.data,
        envelope=envelope.decode(),
        signed_by=key,
        uploaded_by=by.id,
    )
    evidence.record(
        kind=Kind.CAPSULE_UPLOADED,
        subject=row.wire_id,
        actor=by,
        data=UploadedCapsule(
            digest=row.digest, bytes=row.size, signed_by=key.key_id if key else "", tools=capsule.tools
        ),
    )
    return row


def _check_same_signer(existing: Capsule, key: PublisherKey | None) -> None:
    """What a version is never changes, and who signed it is a part of that."""
    if key is None or existing.signed_by_id == key.pk:
        return
    by = f"signed by {existing.signed_by.name}" if existing.signed_by else "without a signature"
    raise VersionExists(
        f"This capsule was registered {by}, which stays so.",
        remedy="Raise the version numbers, pack and sign it again.",
        details={"existing": existing.digest},
    )


def load_content(capsule_id: UUID) -> bytes:
    """The bytes of a capsule, which have its digest. Raises :class:`CapsuleDamaged` where they were altered."""
    row = Capsule.objects.only("digest", "content").get(pk=capsule_id)
    content = bytes(row.content)
    if compute_capsule_digest(content) != row.digest:
        raise CapsuleDamaged(
            "The stored capsule does not have its digest any more: somebody changed it past the hub.",
            details={"expected": row.digest, "found": compute_capsule_digest(content)},
        )
    return content


@transaction.atomic
def read_capsule(*, capsule_id: UUID, by: Principal) -> tuple[Capsule, bytes]:
    """The archive, for who reviews it or wants to pack it again. That somebody has read the code is a fact."""
    row = Capsule.objects.defer("content").get(pk=capsule_id, tenant_id=by.tenant_id)
    content = load_content(row.pk)
    evidence.record(kind=Kind.CAPSULE_READ, subject=row.wire_id, actor=by, data=ReadCapsule(digest=row.digest))
    return row, content
