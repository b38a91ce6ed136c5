"""Rollback detection: whether this database is older than what the hub has signed already.

Whoever puts a whole database back to an older state takes the newer checkpoints with it; each log in it verifies. So the keeper keeps
the newest checkpoint of the global log, which covers all others, in a file of its own outside the database, and holds the two
against each other when it starts and from then on. Any checkpoint that somebody kept serves the same way.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from django.conf import settings

from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.tree_walk import load_tiles
from evidence.log.signing_keys import list_vkeys
from evidence.models import GLOBAL_LOG, Checkpoint, Log
from evidence.verify.notes import open_checkpoint, split_note
from evidence.verify.problems import InvalidEvidence
from kernel.database.connections import one_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def find_log(note: str) -> Log | None:
    """The log that a note is about, by its first line."""
    try:
        text, _ = split_note(note)
    except InvalidEvidence:
        return None
    return Log.objects.filter(origin=text.partition("\n")[0]).first()


def verify_continuation(log: Log, note: str) -> list[IntegrityFinding]:
    """Whether the log as it is stored is a continuation of the checkpoint in ``note``."""
    try:
        kept = open_checkpoint(note, list_vkeys(log.origin), origin=log.origin)
    except InvalidEvidence as error:
        return [IntegrityFinding(FindingCode.ROLLED_BACK, None, str(error)[:200])]
    if kept.size > log.size:
        return [
            IntegrityFinding(
                FindingCode.ROLLED_BACK, None, f"{kept.size} leaves were signed", (kept.size, kept.root.hex())
            )
        ]
    if _has_root(log, kept.size, kept.root):
        return []
    seen = kept.size, kept.root.hex()
    return [IntegrityFinding(FindingCode.ROLLED_BACK, kept.size - 1, f"another root at size {kept.size}", seen)]


def continues_from(log: Log, size: int, root: bytes) -> bool:
    """Whether the log as it is stored is a continuation of one that had this size and this root."""
    return size <= log.size and _has_root(log, size, root)


def _has_root(log: Log, size: int, root: bytes) -> bool:
    try:
        return load_tiles(log.pk).root(size) == root
    except InvalidEvidence:
        return False


def verify_against_kept(kept: str) -> list[IntegrityFinding]:
    """Whether the global log continues what is kept in the file; nothing is kept, nothing is found."""
    return _wrong_with(Log.objects.filter(pk=GLOBAL_LOG).first(), kept)


def verify_and_keep(path: Path | None = None) -> list[IntegrityFinding]:
    """Compare the global log with the file, and when it continues it, keep its newest checkpoint there."""
    path = path or settings.TOOLHUB_KEPT_CHECKPOINT_FILE
    kept = kept_note(path)
    with one_snapshot():
        log = Log.objects.filter(pk=GLOBAL_LOG).first()
        found = _wrong_with(log, kept)
        newest = Checkpoint.objects.filter(tenant_id=GLOBAL_LOG).order_by("-size").first()
        if found or log is None or newest is None or newest.note == kept:
            return found
        found = verify_continuation(log, newest.note)  # what is kept must be good itself
    if not found:
        _write(path, newest.note)
    return found


def kept_note(path: Path | None = None) -> str:
    """Read before the log is: what another keeper writes there meanwhile would be newer than the log as it was read."""
    path = path or settings.TOOLHUB_KEPT_CHECKPOINT_FILE
    return path.read_text() if path.exists() else ""


def _wrong_with(log: Log | None, kept: str) -> list[IntegrityFinding]:
    if not kept:
        return []
    return (
        verify_continuation(log, kept)
        if log
        else [IntegrityFinding(FindingCode.ROLLED_BACK, None, "The global log is gone.")]
    )


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with scratch.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
