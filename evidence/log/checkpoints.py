"""Checkpoints: how a tree becomes something that the hub can be held to.

A checkpoint is size and root, signed by every key that signs now and by the clock of each. Its text says no time, so
that two checkpoints of one tree are the same; the clock's signature does, and is made anew while the log stands still: a
checkpoint whose clock is old means that nobody seals. Others may add their signatures below (:func:`add_signatures`).
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.utils import timezone

from evidence.log.signer import get_signer
from evidence.log.tree import LogDamaged, signed_frontier
from evidence.models import Checkpoint, Log
from evidence.verify import notes
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from evidence.log.signers.base import LogPublicKey

log = logging.getLogger("toolhub.sealer")
SIGNED_AGAIN_AFTER = timedelta(minutes=5)  # a log that stands still; others may rely on 10
_TIME_BYTES = 8


def publish_checkpoint(log: Log, root: bytes, keys: list[LogPublicKey]) -> Checkpoint:
    """The checkpoint of a tree that has just grown, in the same transaction."""
    now = timezone.now()
    text = notes.Checkpoint(log.origin, log.size, root).text()
    note = text + "\n" + "".join(found.line for found in _signatures(text, log.origin, keys, now))
    log.signed_at = database_time()  # judged by others; in signatures is the time of who signs
    log.save(update_fields=["signed_at"])
    return Checkpoint.objects.create(tenant_id=log.pk, size=log.size, root=root, note=note, created_at=now)


def _signatures(text: str, origin: str, keys: list[LogPublicKey], now: datetime) -> list[notes.NoteSignature]:
    found = []
    for key in keys:
        id = notes.VerifierKey(origin, notes.ED25519, key.log).id
        found.append(notes.NoteSignature(origin, id, get_signer().sign(text.encode(), key=key.name)))
    at, clock = int(now.timestamp()), notes.clock_name(origin)
    message = notes.cosigned_message(text, at)
    for key in keys:
        id = notes.VerifierKey(clock, notes.COSIGNATURE, key.clock).id
        signature = at.to_bytes(_TIME_BYTES, "big") + get_signer().sign(message, key=key.name, clock=True)
        found.append(notes.NoteSignature(clock, id, signature))
    return found


def sign_again(keys: list[LogPublicKey], *, limit: int = 500) -> int:
    """Give the newest checkpoint of each log that stood still a signature of now; returns how many were signed."""
    now = database_time()  # a clock that was set back leaves times ahead of it
    fresh = (now - SIGNED_AGAIN_AFTER, now + SIGNED_AGAIN_AFTER)
    due = Log.objects.filter(size__gt=0).exclude(signed_at__range=fresh).order_by("signed_at")
    done = 0
    for found in due[:limit]:
        try:
            done += _sign_again(found, keys)
        except LogDamaged as damage:
            log.error("A log is not signed again: %s", damage)  # noqa: TRY400  the sentence says all
    return done


@transaction.atomic
def _sign_again(tree: Log, keys: list[LogPublicKey]) -> bool:
    now = timezone.now()
    if not Log.objects.filter(pk=tree.pk, size=tree.size).update(signed_at=database_time()):
        return False  # it has grown
    root = signed_frontier(tree).root()
    row = _locked(tree.pk, tree.size)
    if row is None:
        return False
    _merge(row, _signatures(notes.Checkpoint(tree.origin, tree.size, root).text(), tree.origin, keys, now))
    return True


@transaction.atomic
def add_signatures(*, tenant_id: UUID, size: int, lines: Iterable[str]) -> Checkpoint:
    """Put signature lines of others (witnesses) below a checkpoint; of one key the newer counts. Not verified here."""
    row = _locked(tenant_id, size)
    if row is None:
        raise Checkpoint.DoesNotExist
    text, _ = notes.split_note(row.note)
    _, new = notes.split_note(text + "\n" + "".join(lines))
    _merge(row, new)
    return row


def _locked(tenant_id: UUID, size: int) -> Checkpoint | None:
    rows = Checkpoint.objects.filter(tenant_id=tenant_id, size=size)
    if connection.features.has_select_for_update:
        rows = rows.select_for_update()
    return rows.first()


def _merge(row: Checkpoint, new: list[notes.NoteSignature]) -> None:
    text, old = notes.split_note(row.note)
    found = {(each.name, each.id): each for each in [*old, *new]}  # in the order in which they came first
    row.note = text + "\n" + "".join(each.line for each in found.values())
    row.save(update_fields=["note"])
