"""Artifacts: where they are kept, who has read them, and when they go.

Encrypted rows, as the tenant's files are: written in the transaction of the call's End or not at all, and content that is there
already is only pointed at. The room of a tenant counts each content once. That one was read is a fact before it is returned.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from access.models import Tenant
from evidence import services as evidence
from evidence.keys.keystore import NONCE_BYTES
from evidence.keys.subject_keys import fingerprint_under, unwrap_key, wrap_under
from evidence.kinds import Kind
from evidence.leaves.call_ends import ArtifactSummary
from evidence.leaves.files import FileContent, ReadArtifact
from evidence.problems import KeyUnavailable
from invocations.account_calls import build_shown_filter
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.artifacts.problems import ArtifactsFull, NoSuchArtifact
from invocations.value_keys import find_values_key
from kernel.canonical import compute_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from evidence.models import SubjectKey
    from invocations.artifacts.description import DescribedArtifact
    from invocations.models import Invocation
    from kernel.principal import Principal

MIB = 1024 * 1024
WHERE = "Look at call.artifacts in the answer of the call."


def _context(tenant_id: UUID, fingerprint: str) -> bytes:
    return tenant_id.bytes + b"\0artifact\0" + fingerprint.encode()


def sum_stored_bytes(tenant_id: UUID) -> int:
    return int(ArtifactContent.objects.filter(tenant_id=tenant_id).aggregate(bytes=Sum("size"))["bytes"] or 0)


def _check_quota(tenant_id: UUID, more: int) -> None:
    if sum_stored_bytes(tenant_id) + more > settings.TOOLHUB_FILES_MAX_MB * MIB:
        raise ArtifactsFull(
            f"There is no room for {more:,} bytes more: the artifacts of a tenant may take {settings.TOOLHUB_FILES_MAX_MB} MiB.",
            remedy="Remove artifacts that nobody needs, or ask the operator of the hub for more room. The tool has run.",
        )


def _content(key: SubjectKey, content: bytes) -> ArtifactContent:
    """The row that holds it; a new one if there is none. Under the lock of the tenant."""
    tenant_id, fingerprint = key.tenant_id, fingerprint_under(key, content)
    found = ArtifactContent.objects.filter(tenant_id=tenant_id, fingerprint=fingerprint).defer("ciphertext").first()
    if found is not None:
        return found
    _check_quota(tenant_id, len(content))
    data_key, nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    return ArtifactContent.objects.create(
        tenant_id=tenant_id,
        fingerprint=fingerprint,
        size=len(content),
        subject_key=key,
        wrapped_key=wrap_under(key, data_key),
        nonce=nonce,
        ciphertext=AESGCM(data_key).encrypt(nonce, content, _context(tenant_id, fingerprint)),
    )


def decrypt_content(row: ArtifactContent) -> bytes:
    """Raises :class:`NoSuchArtifact` where a row that came without its bytes is gone by now."""
    data_key = unwrap_key(row)
    try:
        context = _context(row.tenant_id, row.fingerprint)
        return AESGCM(data_key).decrypt(bytes(row.nonce), bytes(row.ciphertext), context)
    except ArtifactContent.DoesNotExist as error:
        raise NoSuchArtifact("It was removed a moment ago.") from error
    except InvalidTag as error:
        raise KeyUnavailable("An artifact does not belong to its row, or was changed.") from error


def keep_artifacts(invocation: Invocation, artifacts: Sequence[DescribedArtifact]) -> list[Artifact]:
    """In the transaction of the call's End."""
    if not artifacts:
        return []
    tenant_id, key = invocation.tenant_id, find_values_key(invocation)
    Tenant.objects.select_for_update(no_key=True).get(pk=tenant_id)  # two are not to find the same last free byte
    return [
        Artifact.objects.create(
            tenant_id=tenant_id,
            invocation=invocation,
            name=each.name,
            media_type=each.media_type,
            content=_content(key, each.content),
            thumbnail=_content(key, each.thumbnail) if each.thumbnail else None,
            summary=each.summary,
        )
        for each in artifacts
    ]


def summarize_artifacts(rows: Sequence[Artifact]) -> ArtifactSummary | None:
    """For the End fact: names are the tool's words, and stay sealed."""
    if not rows:
        return None
    return ArtifactSummary(
        count=len(rows),
        bytes=sum(row.content.size for row in rows),
        # The rest may be the tool's word.
        types=sorted({row.media_type.partition("/")[0] for row in rows}),
        hash=compute_digest([[row.wire_id, row.content.fingerprint] for row in rows]),
    )


def build_sealed_artifacts(rows: Sequence[Artifact], artifacts: Sequence[DescribedArtifact]) -> list[dict[str, Any]]:
    """What the caller is told of them, without the address."""
    return [
        {
            "id": row.wire_id,
            "name": row.name,
            "media_type": row.media_type,
            "bytes": row.content.size,
            "digest": "sha256:" + hashlib.sha256(each.content).hexdigest(),
            "summary": row.summary,
        }
        for row, each in zip(rows, artifacts, strict=True)
    ]


def find_artifacts(by: Principal) -> QuerySet[Artifact]:
    """People see those of their tenant, an agent those of its own calls that its credential is shown. What they hold is fetched where
    it is decrypted."""
    rows = Artifact.objects.filter(tenant_id=by.tenant_id).select_related("content", "thumbnail")
    rows = rows.defer("content__ciphertext", "thumbnail__ciphertext")
    if by.agent_id:
        rows = rows.filter(build_shown_filter(by, "invocation__"), invocation__agent_id=by.agent_id)
    return rows


@transaction.atomic
def read_artifact(
    *, artifact_id: UUID, by: Principal, via: str, thumbnail: bool = False, reason: str = ""
) -> tuple[Artifact, bytes]:
    """The artifact and its content. That it was read, and ``via`` what, is a fact before it is returned."""
    row = find_artifacts(by).filter(pk=artifact_id).first()
    if row is None or (thumbnail and row.thumbnail is None):
        raise NoSuchArtifact(remedy=WHERE)
    content = row.thumbnail if thumbnail and row.thumbnail is not None else row.content
    evidence.record(
        kind=Kind.ARTIFACT_READ,
        subject=row.wire_id,
        actor=by,
        invocation_id=row.invocation_id,
        data=ReadArtifact(content=content.fingerprint, via=via, reason=reason or None),
    )
    return row, decrypt_content(content)


@transaction.atomic
def remove_artifact(*, artifact_id: UUID, by: Principal) -> None:
    """Take it away; its content goes with the last artifact that has it."""
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)
    row = find_artifacts(by).filter(pk=artifact_id).first()
    if row is None:
        raise NoSuchArtifact(remedy=WHERE)
    evidence.record(
        kind=Kind.ARTIFACT_REMOVED,
        subject=row.wire_id,
        actor=by,
        invocation_id=row.invocation_id,
        data=FileContent(content=row.content.fingerprint),
    )
    contents = [each for each in (row.content_id, row.thumbnail_id) if each is not None]
    row.delete()
    ArtifactContent.objects.filter(pk__in=contents, artifacts=None, thumbnails=None).delete()
