"""Subject keys: the key that a person's values are sealed with, and how it is destroyed.

The keys of subjects are read with each call, so that what one process has destroyed no other goes on using; the statement
holds the key until the transaction ends. Only the keys of tenants, which no erasure touches, stay in memory for some minutes.
A trigger refuses a snapshot under a key that is destroyed (:mod:`evidence.keys.triggers`): who had read it before is told so.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import time
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import connection
from django.utils import timezone

from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.models import SubjectKey, TenantKey
from evidence.problems import KeyUnavailable, ValuesErased
from kernel.database.prepared_statements import fetch_prepared
from kernel.database.rows import PreparedQuery
from kernel.ids import encode, new_id

if TYPE_CHECKING:
    from datetime import datetime

KEPT_S = 300.0  # that a tenant's key stays in memory
MAX_KEPT = 4096
TRIES = 3
_KNOWN = b"""SELECT k.id, k.wrapped_key, k.created_at, t.key_id, t.wrapped_key, t.created_at
  FROM evidence_subjectkey k JOIN evidence_tenantkey t ON t.tenant_id = k.tenant_key_id
 WHERE k.tenant_id = %s AND k.subject = %s AND k.destroyed_at IS NULL"""
_IN_USE = _KNOWN + b" FOR SHARE OF k"
_OPENED = "_opened"  # of a row in memory: what was unwrapped, and the key in it
# On SQLite, where writers take turns.
_IN_USE_ALONE = PreparedQuery(
    lambda tenant_id, subject: SubjectKey.objects.select_related("tenant_key").filter(
        tenant_id=tenant_id, subject=subject, destroyed_at=None
    ),
    tenant_id=UUID,
    subject=str,
)
_kept: dict[tuple[str, bytes], tuple[float, bytes]] = {}


class WrappedValue(Protocol):
    """A row with a value: under the key of a subject, or, when it has none, under the master key ``key_id``."""

    tenant_id: UUID
    subject_key: SubjectKey | None
    key_id: str
    wrapped_key: bytes | memoryview


def choose_key_subject(user_fingerprint: str, *, agent_id: UUID, at: datetime) -> str:
    """Whose key a call's values are sealed with: the person's it is made for; for nobody, the agent's of that month."""
    return user_fingerprint or f"{encode('agt', agent_id)} {at:%Y-%m}"


def get_subject_key(*, tenant_id: UUID, subject: str) -> SubjectKey:
    """The key in use, made the first time. Until the transaction of the caller ends nobody destroys it."""
    for _ in range(TRIES):
        found = _in_use(tenant_id, subject)
        if found is not None:
            return found
        _make(tenant_id, subject)
    raise KeyUnavailable("The keys of this person are being destroyed at this moment.", remedy="Call again.")


def _in_use(tenant_id: UUID, subject: str) -> SubjectKey | None:
    if connection.vendor != "postgresql":
        return _IN_USE_ALONE.first(tenant_id=tenant_id, subject=subject)
    return read_key(fetch_prepared(_IN_USE, [tenant_id, subject]), tenant_id=tenant_id, subject=subject)


def prepare_key(*, tenant_id: UUID, subject: str) -> tuple[bytes, list[object]]:
    """The statement of PostgreSQL that finds the key in use and does not hold it, and what it is asked with. A snapshot under the key
    is refused where it was destroyed since, and holds it otherwise.
    """
    return _KNOWN, [tenant_id, subject]


def read_key(rows: list[tuple[Any, ...]], *, tenant_id: UUID, subject: str) -> SubjectKey | None:
    """What such a statement has found."""
    for id, wrapped, at, key_id, tenant_wrapped, tenant_at in rows:
        above = TenantKey(tenant_id=tenant_id, key_id=key_id, wrapped_key=tenant_wrapped, created_at=tenant_at)
        return SubjectKey(
            id=id, tenant_key=above, tenant_id=tenant_id, subject=subject, wrapped_key=wrapped, created_at=at
        )
    return None


def is_in_use(key: SubjectKey) -> bool:
    """By now."""
    return SubjectKey.objects.filter(pk=key.pk, destroyed_at=None).exists()


def _make(tenant_id: UUID, subject: str) -> None:
    """Two that make one at once make one."""
    now = timezone.now()
    above = TenantKey.objects.filter(pk=tenant_id).first()
    if above is None:
        key_id, wrapped = get_keystore().wrap(AESGCM.generate_key(256), context=tenant_id.bytes)
        made = TenantKey(tenant_id=tenant_id, key_id=key_id, wrapped_key=wrapped, created_at=now)
        TenantKey.objects.bulk_create([made], ignore_conflicts=True)
        above = TenantKey.objects.get(pk=tenant_id)
    id = new_id()
    wrapped = _encrypted(_tenant_key(above), AESGCM.generate_key(256), _context(tenant_id, id))
    row = SubjectKey(id=id, tenant_key=above, tenant_id=tenant_id, subject=subject, wrapped_key=wrapped, created_at=now)
    SubjectKey.objects.bulk_create([row], ignore_conflicts=True)


def destroy_key(*, tenant_id: UUID, subject: str) -> SubjectKey:
    """What is under the key can be read no more, here and wherever its ciphertext is. Who never had one gets one that is destroyed."""
    now = timezone.now()
    rows = SubjectKey.objects.filter(tenant_id=tenant_id, subject=subject, destroyed_at=None)
    key = rows.select_for_update(of=("self",)).first() if connection.features.has_select_for_update else rows.first()
    if key is None:
        _make(tenant_id, subject)
        key = rows.get()
    key.subject, key.wrapped_key, key.destroyed_at = "", b"", now
    key.save(update_fields=["subject", "wrapped_key", "destroyed_at"])
    return key


# Wrapping and unwrapping.


def _context(tenant_id: UUID, id: UUID) -> bytes:
    return tenant_id.bytes + b"\0subject\0" + id.bytes


def _encrypted(key: bytes, value: bytes, context: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, value, context)


def _decrypted(key: bytes, wrapped: bytes, context: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], context)
    except InvalidTag as error:
        raise KeyUnavailable("A wrapped key does not belong to its row, or was changed.") from error


def _tenant_key(row: TenantKey) -> bytes:
    name, now = (row.key_id, bytes(row.wrapped_key)), time.monotonic()
    until, key = _kept.get(name, (0.0, b""))
    if until < now:
        key = get_keystore().unwrap(*name, context=row.tenant_id.bytes)
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        _kept[name] = (now + KEPT_S, key)
    return key


def _key(row: SubjectKey) -> bytes:
    """Unwrapped once for each time that the row was read: a call needs it for each of its values and fingerprints."""
    if row.destroyed_at is not None:
        raise ValuesErased()
    wrapped = bytes(row.wrapped_key)
    opened: tuple[bytes, bytes] | None = row.__dict__.get(_OPENED)
    if opened is None or opened[0] != wrapped:
        key = _decrypted(_tenant_key(row.tenant_key), wrapped, _context(row.tenant_id, row.id))
        opened = row.__dict__[_OPENED] = (wrapped, key)
    return opened[1]


def wrap_under(row: SubjectKey, data_key: bytes) -> bytes:
    return _encrypted(_key(row), data_key, row.id.bytes)


def unwrap_under(row: SubjectKey, wrapped: bytes) -> bytes:
    """What :func:`wrap_under` gave; raises :class:`ValuesErased` when the person was forgotten."""
    return _decrypted(_key(row), wrapped, row.id.bytes)


def unwrap_key(row: WrappedValue) -> bytes:
    """The key of a row's value; raises :class:`ValuesErased` when the person was forgotten."""
    if row.subject_key is None:
        return get_keystore().unwrap(row.key_id, bytes(row.wrapped_key), context=row.tenant_id.bytes)
    return unwrap_under(row.subject_key, bytes(row.wrapped_key))


def fingerprint_under(row: SubjectKey, value: bytes) -> str:
    """A keyed hash that can be compared while the person is known, and by nobody afterwards."""
    key = os.urandom(32) if row.destroyed_at is not None else _key(row)
    return "hmac-sha256:" + hmac.digest(hmac.digest(key, b"fingerprint", hashlib.sha256), value, hashlib.sha256).hex()
