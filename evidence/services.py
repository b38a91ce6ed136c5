"""Evidence: how it is written and read.

:func:`record` writes one fact, and refuses to run outside the transaction that the fact is about. :func:`seal_values` and
:func:`open_values` are the only way to and from stored values.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.db import connection, transaction
from django.utils import timezone

from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.keys.subject_keys import choose_key_subject, get_subject_key, unwrap_key, wrap_under
from evidence.kinds import Kind
from evidence.leaves import LEAF_VERSION, Leaf, LeafData, find_leaf_type
from evidence.leaves.base import Actor, SealedWords
from evidence.leaves.custody import ErasedWords, OpenedSnapshot
from evidence.models import Fact, Pending, Snapshot, SnapshotKind, SubjectKey
from evidence.packed_leaves import MAX_LEAF_BYTES
from evidence.problems import KeyUnavailable, RevealReasonTooShort, ValuesErased
from kernel.canonical import canonicalize, encode_hash_input
from kernel.database.rows import insert_row
from kernel.ids import encode, new_id
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet

WORDS = ("reason", "purpose", "note")  # what a person wrote: sealed, and only committed to in the leaf
SALT_BYTES = 32
MIN_REASON = 10
WORDS_IN_A_FACT = 300  # ids of 26 letters; what one leaf holds


def record(
    *,
    kind: Kind,
    subject: str,
    actor: Principal,
    data: LeafData | None = None,
    invocation_id: UUID | None = None,
    tool: str = "",
    outcome: str = "",
    reason: str = "",
    trace_id: str = "",
    at: datetime | None = None,
) -> Fact:
    """Write one fact in the current transaction, with its pending row for the sealer.

    ``data`` is what the kind says beside the rest, in its type (:mod:`evidence.leaves`). It becomes part of the leaf and is public to
    every verifier: digests, ids, names and codes, never values. What a person wrote (``WORDS``) may name somebody: it is sealed with
    the writer's key, and the leaf commits to it (:func:`open_free_text`).
    Raises ``RuntimeError`` outside a transaction: a fact that could commit without what it witnesses is no evidence.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("evidence.record() must run in the transaction that it bears witness to.")
    id, at = new_id(), at or timezone.now()
    said: dict[str, Any] = {}
    if data is not None:
        if type(data) is not find_leaf_type(kind):
            raise TypeError(f"A fact of kind {kind} says {find_leaf_type(kind).__name__}, not {type(data).__name__}.")
        said = data.to_data()
    if any(said.get(name) for name in WORDS):
        said = _seal_words(said, id, actor=actor, at=at)
    leaf = Leaf(
        v=LEAF_VERSION,
        id=encode("fct", id),
        kind=str(kind),
        at=at.isoformat(timespec="microseconds"),
        tenant=encode("ten", actor.tenant_id),
        subject=subject,
        actor=Actor(
            kind=str(actor.kind),
            id=actor.id,
            key=encode("key", actor.key_id) if actor.key_id else None,
            issuer=encode("iss", actor.issuer_id) if actor.issuer_id else None,
            token=actor.token if actor.issuer_id else None,
            connection=encode("con", actor.connection.id) if actor.connection else None,
            via=actor.via or None,
        ),
        invocation=encode("inv", invocation_id) if invocation_id else None,
        tool=tool or None,
        outcome=outcome or None,
        reason=reason or None,
        trace=trace_id or None,
        data=said or None,
    )
    raw = canonicalize(leaf.to_data())
    if len(raw) > MAX_LEAF_BYTES:
        raise ValueError(f"A leaf of {len(raw)} bytes is larger than {MAX_LEAF_BYTES}: facts hold digests, not values.")
    fact = Fact(
        id=id,
        tenant_id=actor.tenant_id,
        kind=kind,
        subject=subject,
        invocation_id=invocation_id,
        occurred_at=at,
        actor_kind=str(actor.kind),
        actor_id=actor.id,
        tool=tool,
        outcome=outcome,
        reason=reason,
        trace_id=trace_id,
        leaf=raw,
        leaf_hash=hashlib.sha256(b"\x00" + raw).digest(),  # RFC 9162 leaf hash
    )
    insert_row(fact)
    insert_row(Pending(fact=fact, tenant_id=actor.tenant_id))
    return fact


def _seal_words(data: dict[str, Any], fact_id: UUID, *, actor: Principal, at: datetime) -> dict[str, Any]:
    """``data`` with a commitment in the place of what somebody wrote."""
    written = {name: data[name] for name in WORDS if data.get(name)}
    writer = choose_key_subject("", agent_id=actor.agent_id, at=at) if actor.agent_id else actor.id
    sealed = seal_values(
        tenant_id=actor.tenant_id,
        invocation_id=fact_id,
        kind=SnapshotKind.WORDS,
        value=written,
        key=get_subject_key(tenant_id=actor.tenant_id, subject=writer),
    )
    said = {name: value for name, value in data.items() if name not in WORDS}
    words = SealedWords(of=sorted(written), **sealed.to_commitment().to_data())
    return said | {"words": words.to_data()}


def open_free_text(fact: Fact) -> dict[str, str]:
    """What the person wrote whose act the fact is about; empty when they wrote nothing, or it was erased."""
    sealed = Snapshot.objects.filter(tenant_id=fact.tenant_id, invocation_id=fact.pk, kind=SnapshotKind.WORDS)
    for snapshot in sealed.select_related("subject_key__tenant_key"):
        try:
            found: dict[str, str] = open_values(snapshot)
        except ValuesErased:
            break
        return found
    return {}


def erase_free_text(facts: QuerySet[Fact], *, tenant_id: UUID, erasure: str) -> int:
    """What was written in facts about somebody who is erased; what they commit to stays."""
    rows = Snapshot.objects.filter(tenant_id=tenant_id, invocation_id__in=facts.values("pk"), kind=SnapshotKind.WORDS)
    return remove_words(list(rows.order_by("pk").values_list("pk", flat=True)), tenant_id=tenant_id, erasure=erasure)


def remove_words(ids: Sequence[UUID], *, tenant_id: UUID, erasure: str) -> int:
    """Take away what people wrote, for an erasure. Facts of it name each, so that no other that is gone is put down to it."""
    removed = 0
    for at in range(0, len(ids), WORDS_IN_A_FACT):
        some = ids[at : at + WORDS_IN_A_FACT]
        removed += Snapshot.objects.filter(tenant_id=tenant_id, pk__in=some, kind=SnapshotKind.WORDS).delete()[0]
        record(
            kind=Kind.WORDS_ERASED,
            subject=erasure,
            actor=Principal.system("erasure", tenant_id=tenant_id),
            data=ErasedWords(count=len(some), snapshots=[encode("snp", id) for id in some]),
        )
    return removed


def _context(tenant_id: UUID, invocation_id: UUID, kind: str) -> bytes:
    return b"\0".join([tenant_id.bytes, invocation_id.bytes, kind.encode()])


def seal_values(
    *, tenant_id: UUID, invocation_id: UUID, kind: SnapshotKind, value: Any, key: SubjectKey, number: int = 0
) -> Snapshot:
    """Store ``value`` encrypted under a key of its own, bound to this tenant, invocation and kind, and wrapped with ``key``.

    Of a person who was forgotten meanwhile nothing is stored: what is returned is only committed to, and nobody has the salt.
    """
    alg, document = encode_hash_input(value)
    salt, data_key, nonce = os.urandom(SALT_BYTES), AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    erased = key.destroyed_at is not None
    context = _context(tenant_id, invocation_id, str(kind))
    snapshot = Snapshot(
        tenant_id=tenant_id,
        invocation_id=invocation_id,
        kind=kind,
        number=number,
        alg=alg,
        commitment=_commitment(salt + document),
        size=len(document),
        subject_key=key,
        wrapped_key=b"" if erased else wrap_under(key, data_key),
        nonce=nonce,
        ciphertext=AESGCM(data_key).encrypt(nonce, salt + document, context),
        created_at=timezone.now(),
    )
    return snapshot if erased else insert_row(snapshot)


def _commitment(plain: bytes) -> str:
    return "sha256:" + hashlib.sha256(plain).hexdigest()


def _opened(snapshot: Snapshot) -> bytes | None:
    """Salt and document; None when the key is there and what is stored is not what was stored with it."""
    data_key = unwrap_key(snapshot)
    context = _context(snapshot.tenant_id, snapshot.invocation_id, snapshot.kind)
    try:
        return AESGCM(data_key).decrypt(bytes(snapshot.nonce), bytes(snapshot.ciphertext), context)
    except InvalidTag:
        return None


def _plain(snapshot: Snapshot) -> bytes:
    """Salt and document, as the row commits to them: what was sealed for another row of the same call is refused, too."""
    plain = _opened(snapshot)
    if plain is None or _commitment(plain) != snapshot.commitment:
        raise KeyUnavailable("A snapshot does not belong to its row, or was changed.")
    return plain


def open_values(snapshot: Snapshot) -> Any:
    """The stored value. Callers inside the hub that run or answer the call itself need no fact; people do (:func:`reveal_values`)."""
    return json.loads(_plain(snapshot)[SALT_BYTES:])


def recompute_commitment(snapshot: Snapshot) -> str:
    """The commitment to what is stored, worked out again from salt and value; empty when that was changed and does not open."""
    plain = _opened(snapshot)
    return "" if plain is None else _commitment(plain)


def reveal_values(*, snapshot: Snapshot, reason: str, by: Principal) -> Any:
    """Show stored values to a person or to the agent that owns the call. The access is a fact before the value is returned."""
    return json.loads(reveal_committed(snapshot=snapshot, reason=reason, by=by)[1])


@transaction.atomic
def reveal_committed(*, snapshot: Snapshot, reason: str, by: Principal) -> tuple[bytes, bytes]:
    """The same as what the commitment is over: salt and JSON text, so that others can verify it."""
    if snapshot.tenant_id != by.tenant_id:
        raise Snapshot.DoesNotExist
    if len(reason.strip()) < MIN_REASON:
        raise RevealReasonTooShort()
    record(
        kind=Kind.SNAPSHOT_READ,
        subject=snapshot.wire_id,
        actor=by,
        invocation_id=snapshot.invocation_id,
        data=OpenedSnapshot(snapshot_kind=snapshot.kind, commitment=snapshot.commitment, reason=reason.strip()[:500]),
    )
    plain = _plain(snapshot)
    return plain[:SALT_BYTES], plain[SALT_BYTES:]


def compute_fingerprint(value: bytes, *, tenant_id: UUID) -> str:
    """A keyed hash of ``value`` within one tenant, for comparing what must not be stored."""
    return get_keystore().fingerprint(value, context=tenant_id.bytes)


def compute_user_fingerprint(user_id: str, *, tenant_id: UUID) -> str:
    """Of the person whom something is done for; empty for nobody."""
    return compute_fingerprint(user_id.encode(), tenant_id=tenant_id) if user_id else ""


def json_bytes(value: Any) -> bytes:
    """The JSON text that a tool gets as its arguments: what was committed to, byte for byte."""
    return encode_hash_input(value)[1]
