"""Sealer: how facts become leaves.

A loop, every second, in any number of processes; a lock lets one of them seal at a time. Each turn takes of each tenant at most a
batch of what is pending, so that a busy tenant keeps nobody waiting. A batch is one transaction: its facts are in the log, with
a signed checkpoint, or pending as before. In the end the new checkpoints of all become leaves of the global log.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from django.db import IntegrityError, connection, models, transaction

from evidence.log.checkpoints import publish_checkpoint, sign_again
from evidence.log.origins import new_origin
from evidence.log.reader import select_leaves
from evidence.log.signer import make_signing_key
from evidence.log.signing_keys import register_keys
from evidence.log.tree import LogDamaged, append_hashes
from evidence.models import GLOBAL_LOG, Checkpoint, Log, LogKey, Pending, Seal
from evidence.problems import KeyUnavailable
from evidence.verify.merkle import leaf_hash
from evidence.verify.notes import split_note
from kernel.fault_injection import inject_fault
from kernel.loops import Rest, repeat_work

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator
    from uuid import UUID

    from evidence.log.signers.base import LogPublicKey

log = logging.getLogger("toolhub.sealer")
BATCH = 10_000
SQLITE_BATCH = 1_000  # its other writers wait for as long as a batch takes
EVERY_S = 1.0
WITHOUT_A_KEY_S = 30.0  # and as often it is said
FROZEN_AFTER_S = (
    30  # a transaction in which nothing happens: its keeper is frozen, or its host gone, and keeps the lock
)
LOCK = 0x746F6F6C687562  # of PostgreSQL, for a transaction; SQLite's transactions take turns anyway

_TURN = "SELECT set_config('idle_in_transaction_session_timeout', %s, true), pg_try_advisory_xact_lock(%s)"
_TAKE = """
    INSERT INTO evidence_seal (fact_id, tenant_id, leaf_index)
    SELECT fact_id, tenant_id, %s + row_number() OVER (ORDER BY fact_id) - 1
    FROM (SELECT fact_id, tenant_id FROM evidence_pending WHERE tenant_id = %s LIMIT %s) AS taken
"""


def seal_pending(*, batch: int | None = None) -> tuple[int, bool]:
    """One turn: how many facts were sealed, and whether some tenant has more than a batch of them."""
    batch = batch or (BATCH if connection.vendor == "postgresql" else SQLITE_BATCH)
    keys = register_keys()
    sealed, more = 0, False
    for tenant_id in _who_waits():
        try:
            count = _seal_some_of(tenant_id, batch, keys)
        except (LogDamaged, IntegrityError) as damage:  # or somebody has put rows where the next ones go
            log.error("Nothing is sealed of one tenant: %s", damage)  # noqa: TRY400  the sentence says all
            continue
        sealed, more = sealed + count, more or count == batch
    try:
        _note_checkpoints(batch, keys)
    except LogDamaged as damage:
        log.error("No checkpoint is noted: %s", damage)  # noqa: TRY400  the sentence says all
    return sealed, more


def _who_waits() -> Iterator[UUID]:
    """The tenants with pending facts, each once; the index leads from one to the next."""
    rows = Pending.objects.order_by("tenant_id").values_list("tenant_id", flat=True)
    found = rows.first()
    while found is not None:
        yield found
        found = rows.filter(tenant_id__gt=found).first()


def _it_is_my_turn() -> bool:
    """For this transaction. Held no longer, so that it needs no session of its own and nobody to notice that it was lost."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(_TURN, [f"{FROZEN_AFTER_S}s", LOCK])
        return bool(cursor.fetchone()[1])


def _log_of(tenant_id: UUID) -> Log:
    found, _ = Log.objects.get_or_create(tenant_id=tenant_id, defaults={"origin": new_origin(tenant_id)})
    return found


def _seal_some_of(tenant_id: UUID, batch: int, keys: list[LogPublicKey]) -> int:
    with transaction.atomic():
        if not _it_is_my_turn():
            return 0
        tree = _log_of(tenant_id)
        first = tree.size
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [first, models.UUIDField().get_db_prep_value(tenant_id, connection), batch])
            taken = int(cursor.rowcount)
        if not taken:
            return 0
        mine = Seal.objects.filter(tenant_id=tenant_id, leaf_index__gte=first)
        publish_checkpoint(tree, append_hashes(tree, _leaf_hashes(tree, taken)), keys)
        Pending.objects.filter(fact_id__in=mine.values("fact_id")).delete()
        inject_fault("seal.before_commit")
    inject_fault("seal.committed")
    return taken


def _leaf_hashes(tree: Log, taken: int) -> list[bytes]:
    """Made anew from the leaves: what is sealed is what is stored, or nothing."""
    rows = select_leaves(tree.pk, tree.size, tree.size + taken).values_list("leaf", "leaf_hash", "id")
    sha256, hashes = hashlib.sha256, []
    for leaf, recorded, fact_id in rows:
        hash = sha256(b"\x00" + (leaf or b"")).digest()
        if leaf is None or hash != bytes(recorded):
            raise LogDamaged(f"The fact {fact_id}, not sealed yet, is not the one that was recorded.")
        hashes.append(hash)
    if len(hashes) != taken:
        raise LogDamaged(f"{taken} facts were taken, and {len(hashes)} are there.")
    return hashes


def _note_checkpoints(batch: int, keys: list[LogPublicKey]) -> None:
    """Checkpoints that the global log does not hold yet become leaves of it."""
    with transaction.atomic():
        if not _it_is_my_turn():
            return
        new = Checkpoint.objects.filter(global_index=None).exclude(tenant_id=GLOBAL_LOG).order_by("pk")
        rows = list(new[:batch])
        if not rows:
            return
        tree = _log_of(GLOBAL_LOG)
        for index, row in enumerate(rows, tree.size):
            row.global_index = index
        Checkpoint.objects.bulk_update(rows, ["global_index"], batch_size=500)
        publish_checkpoint(
            tree, append_hashes(tree, [leaf_hash(split_note(row.note)[0].encode()) for row in rows]), keys
        )
        inject_fault("note.before_commit")
    inject_fault("note.committed")


def run_turn() -> bool:
    """What the loop does each second; whether there is more to do at once."""
    _, more = seal_pending()
    sign_again(register_keys())
    return more


def _pass() -> Rest | None:
    try:
        if not LogKey.objects.exists():
            make_signing_key()  # the very first; one that was lost is not replaced
        return Rest(0) if run_turn() else None
    except KeyUnavailable as problem:
        log.error("Nothing is sealed. %s %s", problem.detail, problem.remedy)  # noqa: TRY400  the sentence says all
        return Rest(WITHOUT_A_KEY_S)


def run_sealer(stop: threading.Event) -> None:
    """Seal until told to stop."""
    repeat_work(_pass, stop, every_s=EVERY_S, what="Facts were not sealed", log=log)
