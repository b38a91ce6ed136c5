"""Sealed values: how do tests store values without a call?"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.utils import timezone

from evidence import services as evidence
from evidence.keys.keystore import get_keystore
from evidence.keys.subject_keys import get_subject_key
from evidence.models import Snapshot, SnapshotKind, SubjectKey
from kernel.canonical import encode_hash_input
from kernel.ids import new_id

if TYPE_CHECKING:
    from uuid import UUID


def some_key(tenant_id: UUID, subject: str = "somebody") -> SubjectKey:
    return get_subject_key(tenant_id=tenant_id, subject=subject)


def seal(tenant_id: UUID, value: Any, *, invocation_id: UUID | None = None) -> Snapshot:
    return evidence.seal_values(
        tenant_id=tenant_id,
        invocation_id=invocation_id or new_id(),
        kind=SnapshotKind.INPUT,
        value=value,
        key=some_key(tenant_id),
    )


def seal_as_before(
    tenant_id: UUID,
    value: Any,
    *,
    invocation_id: UUID | None = None,
    kind: SnapshotKind = SnapshotKind.INPUT,
) -> Snapshot:
    """As hubs did before there were keys of persons: wrapped by the master key itself."""
    id = invocation_id or new_id()
    alg, document = encode_hash_input(value)
    salt, data_key, nonce = os.urandom(32), AESGCM.generate_key(256), os.urandom(12)
    key_id, wrapped = get_keystore().wrap(data_key, context=tenant_id.bytes)
    context = b"\0".join([tenant_id.bytes, id.bytes, str(kind).encode()])
    return Snapshot.objects.create(
        tenant_id=tenant_id,
        invocation_id=id,
        kind=kind,
        alg=alg,
        commitment="sha256:" + hashlib.sha256(salt + document).hexdigest(),
        size=len(document),
        key_id=key_id,
        wrapped_key=wrapped,
        nonce=nonce,
        ciphertext=AESGCM(data_key).encrypt(nonce, salt + document, context),
        created_at=timezone.now(),
    )
