"""How does a tree become something that the hub can be held to?

A checkpoint is size and root, signed by every key that signs now, and by the clock of the current one. Its text says no time, so
that two checkpoints of one tree are the same; the clock's signature does, and is made anew while the log stands still: a
checkpoint whose clock is old means that nobody seals. Others may add their signatures below (:func:`add_signatures`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.utils import timezone

from evidence.log.names import clock_name
from evidence.log.signer import signer
from evidence.models import Checkpoint, Log
from evidence.verify import notes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from evidence.log.signer import PublicKey

SIGNED_AGAIN_AFTER = timedelta(minutes=5)  # a log that stands still; others may rely on 10
_TIME_BYTES = 8


def publish(log: Log, root: bytes, keys: list[PublicKey]) -> Checkpoint:
    """The checkpoint of a tree that has just grown, in the same transaction."""
    now = timezone.now()
    text = notes.Checkpoint(log.origin, log.size, root).text()
    note = text + "\n" + "".join(found.line for found in _signatures(text, log.origin, keys, now))
    log.signed_at = now
    log.save(update_fields=["signed_at"])
    return Checkpoint.objects.create(tenant_id=log.pk, size=log.size, root=root, note=note, created_at=now)


def _signatures(text: str, origin: str, keys: list[PublicKey], now: datetime) -> list[notes.Signature]:
    found = []
    for key in keys:
        id = notes.VerifierKey(origin, notes.ED25519, key.log).id
        found.append(notes.Signature(origin, id, signer().sign(text.encode(), key=key.name)))
    at, current, clock = int(now.timestamp()), keys[0], clock_name()
    id = notes.VerifierKey(clock, notes.COSIGNATURE, current.clock).id
    message = notes.cosigned_message(text, at)
    signature = at.to_bytes(_TIME_BYTES, "big") + signer().sign(message, key=current.name, clock=True)
    return [*found, notes.Signature(clock, id, signature)]


def sign_again(keys: list[PublicKey], *, limit: int = 500) -> int:
    """Give the newest checkpoint of each log that stood still a signature of now; returns how many were signed."""
    due = Log.objects.filter(size__gt=0, signed_at__lt=timezone.now() - SIGNED_AGAIN_AFTER).order_by("signed_at")
    done = 0
    for log in due[:limit]:
        with transaction.atomic():
            row = _locked(log.pk, log.size)
            now = timezone.now()
            if row is not None and Log.objects.filter(pk=log.pk, size=log.size).update(signed_at=now):
                text, _ = notes.split_note(row.note)
                _merge(row, _signatures(text, log.origin, keys, now))
                done += 1
    return done


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


def _merge(row: Checkpoint, new: list[notes.Signature]) -> None:
    text, old = notes.split_note(row.note)
    found = {(each.name, each.id): each for each in [*old, *new]}  # in the order in which they came first
    row.note = text + "\n" + "".join(each.line for each in found.values())
    row.save(update_fields=["note"])
