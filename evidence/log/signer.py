"""Signer: who holds the keys that checkpoints are signed with.

A :class:`CheckpointSigner` signs; its keys never leave it. :class:`FileSigner` is the first one: named Ed25519 keys in a
file like that of
the master keys, which only the keeper can read. Whoever has it can sign anything in the name of the hub, so web and worker
have it not.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import connection

from evidence.keys.key_file import make_key_file, read_key_file
from evidence.models import LogKey
from evidence.problems import KeyUnavailable
from kernel.singleton import Once

if TYPE_CHECKING:
    from pathlib import Path

LOST = (
    "Restore the file of signing keys from its backup. If it is lost for good, `manage.py rotate_log_key --lost` begins with a "
    "new key, and everybody who verifies must be told of it."
)


@dataclass(frozen=True, slots=True)
class LogPublicKey:
    """The public halves of one named key."""

    name: str
    log: bytes  # signs texts: of checkpoints and manifests
    clock: bytes  # signs the text of a checkpoint with the time


class CheckpointSigner(Protocol):
    def keys(self) -> list[LogPublicKey]:
        """Those that sign, the current one first. During a rotation there are two."""

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        """An Ed25519 signature with that key, or with its clock; raises :class:`KeyUnavailable` for an unknown one."""


@lru_cache(maxsize=32)
def _private(seed: bytes, clock: bool) -> Ed25519PrivateKey:
    # Two keys, for the format forbids that one key makes both kinds of statement.
    own = hmac.digest(seed, b"toolhub: clock of a log", hashlib.sha256) if clock else seed
    return Ed25519PrivateKey.from_private_bytes(own)


class InMemorySigner:
    """Keys that live as long as the process. The fake of the contract suite, and all that tests need."""

    def __init__(self, seeds: dict[str, bytes] | None = None, current: str = "") -> None:
        self.seeds = seeds or {"memory-1": Ed25519PrivateKey.generate().private_bytes_raw()}
        self.current = current or next(iter(self.seeds))

    def refresh(self) -> None:
        """See keys that were added meanwhile."""

    def keys(self) -> list[LogPublicKey]:
        self.refresh()
        names = sorted(self.seeds, key=lambda name: (name != self.current, name))
        halves = [[_private(self.seeds[name], clock).public_key() for clock in (False, True)] for name in names]
        return [
            LogPublicKey(name, log.public_bytes_raw(), clock.public_bytes_raw())
            for name, (log, clock) in zip(names, halves, strict=True)
        ]

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        if key not in self.seeds:
            raise KeyUnavailable(f"The signing key {key} is not in the file of signing keys.", remedy=LOST)
        return _private(self.seeds[key], clock).sign(message)


class FileSigner(InMemorySigner):
    """The keys of a file. One that somebody changed is read again: a rotation needs no restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int] | None = None
        super().__init__(*read_key_file(path, lost=LOST))

    def refresh(self) -> None:
        try:
            stat = self.path.stat()
        except OSError as error:
            raise KeyUnavailable(f"The file of signing keys {self.path} cannot be read.", remedy=LOST) from error
        mark = (stat.st_ino, stat.st_mtime_ns)
        if mark != self._seen:
            self.seeds, self.current = read_key_file(self.path, lost=LOST)
            self._seen = mark


def signing_key_file() -> Path:
    path: Path | None = settings.TOOLHUB_SIGNING_KEY_FILE
    if path is None:
        raise KeyUnavailable(
            "This process has no file of signing keys: only the keeper signs.",
            remedy="Start `manage.py keep` with TOOLHUB_SIGNING_KEY_FILE set to a file that only it can read.",
        )
    return path


def _anything_is_signed() -> bool:
    """Before the first migration there is no table."""
    there = LogKey._meta.db_table in connection.introspection.table_names()
    return there and LogKey.objects.filter(retired_at=None).exists()


def make_signing_key() -> bool:
    """A file with a first key, unless there is one; False when it was there. Never in place of a file that was lost."""
    path = signing_key_file()
    if path.exists():
        return False
    if _anything_is_signed():
        raise KeyUnavailable(
            f"The file of signing keys {path} is lost, and logs were signed with its keys. No other was made: it would hide "
            "the loss.",
            remedy=LOST,
        )
    make_key_file(path)
    return True


@Once
def get_signer() -> CheckpointSigner:
    """The signer of this process; for the keeper only."""
    return FileSigner(signing_key_file())
