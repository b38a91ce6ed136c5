"""File signer: signing keys in a file like that of the master keys, which only the keeper can read.

Whoever has the file can sign anything in the name of the hub, so web and worker have it not.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evidence.keys.key_file import add_key, forget_keys, make_key_file, read_key_file
from evidence.log.signers.base import FIRST, LogPublicKey, next_name
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOST = (
    "Restore the file of signing keys from its backup. If it is lost for good, `manage.py rotate_log_key --lost` begins with a "
    "new key, and everybody who verifies must be told of it."
)


@lru_cache(maxsize=32)
def _private(seed: bytes, clock: bool) -> Ed25519PrivateKey:
    own = hmac.digest(seed, b"toolhub: clock of a log", hashlib.sha256) if clock else seed
    return Ed25519PrivateKey.from_private_bytes(own)


class InMemorySigner:
    """Keys that live as long as the process. The fake of the contract suite, and all that tests need."""

    place = "the memory of this process"
    lost = LOST

    def __init__(self, seeds: dict[str, bytes] | None = None, current: str = "") -> None:
        self.seeds = {"memory-1": Ed25519PrivateKey.generate().private_bytes_raw()} if seeds is None else seeds
        self.current = current or next(iter(self.seeds), "")

    def refresh(self) -> None:
        """See keys that were added meanwhile."""

    def list_keys(self) -> list[LogPublicKey]:
        self.refresh()
        names = sorted(self.seeds, key=lambda name: (name != self.current, name))
        halves = [[_private(self.seeds[name], clock).public_key() for clock in (False, True)] for name in names]
        return [
            LogPublicKey(name, log.public_bytes_raw(), clock.public_bytes_raw())
            for name, (log, clock) in zip(names, halves, strict=True)
        ]

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        self.refresh()
        if key not in self.seeds:
            raise KeyUnavailable(f"The signing key {key} is not in {self.place}.", remedy=self.lost)
        return _private(self.seeds[key], clock).sign(message)

    def has_keys(self) -> bool:
        return bool(self.seeds)

    def make_first_key(self, name: str = FIRST) -> None:
        self._make(name)

    def add_key(self) -> str:
        name = next_name(self.seeds)
        self._make(name)
        return name

    def _make(self, name: str) -> None:
        self.seeds[name] = Ed25519PrivateKey.generate().private_bytes_raw()
        self.current = name

    def forget_keys(self, names: Iterable[str]) -> None:
        for name in set(names) - {self.current}:
            self.seeds.pop(name, None)


class FileSigner(InMemorySigner):
    """The keys of a file. One that somebody changed is read again: a rotation needs no restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = f"the file {path}"
        self._seen: tuple[int, int] | None = None
        super().__init__({})

    def refresh(self) -> None:
        try:
            stat = self.path.stat()
        except OSError as error:
            raise KeyUnavailable(f"The file of signing keys {self.path} cannot be read.", remedy=LOST) from error
        mark = (stat.st_ino, stat.st_mtime_ns)
        if mark != self._seen:
            self.seeds, self.current = read_key_file(self.path, lost=LOST)
            self._seen = mark

    def has_keys(self) -> bool:
        return self.path.exists()

    def make_first_key(self, name: str = FIRST) -> None:
        make_key_file(self.path, name=name)

    def add_key(self) -> str:
        return add_key(self.path, activate=True)

    def forget_keys(self, names: Iterable[str]) -> None:
        forget_keys(self.path, names, first_too=True)
