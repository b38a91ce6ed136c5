"""Is this database older than what the hub has signed already?

Whoever puts a whole database back to an older state takes the newer checkpoints with it; each log in it verifies. So the keeper keeps
the newest checkpoint of the global log, which covers all others, in a file of its own outside the database, and holds the two
against each other when it starts and from then on. Any checkpoint that somebody kept serves the same way.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from django.conf import settings

from evidence.checking.findings import Finding, Wrong
from evidence.checking.walking import tiles_of
from evidence.log.keys import keys_of
from evidence.models import GLOBAL_LOG, Checkpoint, Log
from evidence.verify.notes import open_checkpoint, split_note
from evidence.verify.problems import Refused
from toolhub.kernel.db import one_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def log_of_note(note: str) -> Log | None:
    """The log that a note is about, by its first line."""
    try:
        text, _ = split_note(note)
    except Refused:
        return None
    return Log.objects.filter(origin=text.partition("\n")[0]).first()


def continues(log: Log, note: str) -> list[Finding]:
    """Whether the log as it is stored is a continuation of the checkpoint in ``note``."""
    try:
        kept = open_checkpoint(note, keys_of(log.origin), origin=log.origin)
    except Refused as error:
        return [Finding(Wrong.ROLLED_BACK, None, str(error)[:200])]
    if kept.size > log.size:
        return [Finding(Wrong.ROLLED_BACK, None, f"{log.size} leaves, and {kept.size} were signed")]
    try:
        same = tiles_of(log.pk).root(kept.size) == kept.root
    except Refused as error:
        return [Finding(Wrong.ROLLED_BACK, None, str(error)[:200])]
    return [] if same else [Finding(Wrong.ROLLED_BACK, kept.size - 1, f"another root at size {kept.size}")]


def against_kept(path: Path | None = None) -> list[Finding]:
    """Whether the global log continues what is kept in the file; nothing is kept, nothing is found."""
    kept = _kept(path or settings.TOOLHUB_KEPT_CHECKPOINT_FILE)
    with one_snapshot():
        return _wrong_with(Log.objects.filter(pk=GLOBAL_LOG).first(), kept)


def hold_against_kept(path: Path | None = None) -> list[Finding]:
    """Compare the global log with the file, and when it continues it, keep its newest checkpoint there."""
    path = path or settings.TOOLHUB_KEPT_CHECKPOINT_FILE
    kept = _kept(path)
    with one_snapshot():
        log = Log.objects.filter(pk=GLOBAL_LOG).first()
        found = _wrong_with(log, kept)
        newest = Checkpoint.objects.filter(tenant_id=GLOBAL_LOG).order_by("-size").first()
        if found or log is None or newest is None or newest.note == kept:
            return found
        found = continues(log, newest.note)  # what is kept must be good itself
    if not found:
        _write(path, newest.note)
    return found


def _kept(path: Path) -> str:
    """Read before the log is: what another keeper writes there meanwhile would be newer than the log as it was read."""
    return path.read_text() if path.exists() else ""


def _wrong_with(log: Log | None, kept: str) -> list[Finding]:
    if not kept:
        return []
    return continues(log, kept) if log else [Finding(Wrong.ROLLED_BACK, None, "The global log is gone.")]


def _write(path: Path, text: str) -> None:
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with scratch.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
