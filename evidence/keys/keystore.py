"""Keystore: who holds the keys that snapshots are encrypted with.

A :class:`KeyStore` wraps and unwraps data keys; the key that wraps never leaves it. TOOLHUB_KEYSTORE says which: ``file``, named
256-bit keys in a file that only the owner can read; ``env``, the same document in TOOLHUB_MASTER_KEYS; ``service``, keys that
only a key management service has (:mod:`evidence.keys.key_service`). The current key wraps; older ones still unwrap.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from evidence.keys.check_values import CheckedKeyStore, forget_check_values
from evidence.keys.key_file import LOST, make_key_file, parse_keys, read_key_file
from evidence.keys.key_service import HttpKeyService, ServiceKeyStore
from evidence.keys.wrapped_keys import anything_is_sealed
from evidence.problems import KeyUnavailable
from kernel.singleton import Once

if TYPE_CHECKING:
    from pathlib import Path

NONCE_BYTES = 12
GIVE_KEYS = "It holds the JSON of a key file: `manage.py init` makes one (docs/how-to/rotate-and-back-up-keys.md)."


@lru_cache(maxsize=4096)
def _derive_key(key: bytes, message: bytes) -> bytes:
    """Every call asks for the same few."""
    return hmac.digest(key, message, hashlib.sha256)


class KeyStore(Protocol):
    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        """``(key_id, wrapped)``; ``context`` is authenticated and must be given again to unwrap."""

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        """The data key; raises :class:`KeyUnavailable` for an unknown key or changed bytes."""

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        """A keyed hash: equal values of one context match, and nobody without the key can guess what they were."""

    def first(self) -> str:
        """The name of the key that no rotation takes away."""

    def derive(self, purpose: bytes, key_id: str = "") -> tuple[str, bytes]:
        """``(key_id, key)``: a key for another purpose, made from the current master key or from the one that is named."""

    def names(self) -> set[str] | None:
        """Of all keys that it has; None when it cannot say."""


class InMemoryKeyStore:
    """Keys that live as long as the process. The fake of the contract suite, and all that tests need."""

    def __init__(self, keys: dict[str, bytes] | None = None, current: str = "") -> None:
        self.keys = keys or {"memory-1": AESGCM.generate_key(256)}
        self.current = current or next(iter(self.keys))

    def refresh(self) -> None:
        """See keys that were added meanwhile."""

    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        self.refresh()
        nonce = os.urandom(NONCE_BYTES)
        return self.current, nonce + AESGCM(self.keys[self.current]).encrypt(nonce, data_key, context)

    def _key(self, key_id: str) -> bytes:
        if key_id not in self.keys:
            self.refresh()
        if key_id not in self.keys:
            raise KeyUnavailable(
                f"The key {key_id} is not in the key file.", remedy="Restore the key file from its backup."
            )
        return self.keys[key_id]

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        key = self._key(key_id)
        try:
            return AESGCM(key).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], context)
        except InvalidTag as error:
            raise KeyUnavailable("A wrapped key does not belong to this key or this tenant.") from error

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        # Always the first key: a fingerprint must stay comparable after a rotation.
        first = self.keys[self.first()]
        key = _derive_key(first, b"fingerprint\0" + context)
        return "hmac-sha256:" + hmac.digest(key, value, hashlib.sha256).hex()

    def first(self) -> str:
        return min(self.keys)

    def names(self) -> set[str] | None:
        self.refresh()
        return set(self.keys)

    def derive(self, purpose: bytes, key_id: str = "") -> tuple[str, bytes]:
        if not key_id:
            self.refresh()
        name = key_id or self.current
        return name, _derive_key(self._key(name), b"derive\0" + purpose)


class FileKeyStore(InMemoryKeyStore):
    """The keys of :mod:`evidence.keys.key_file`. A file that somebody changed is read again: a rotation needs no restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._mark()
        super().__init__(*read_key_file(path))

    def _mark(self) -> tuple[int, int]:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return (0, 0)
        return (stat.st_ino, stat.st_mtime_ns)

    def refresh(self) -> None:
        mark = self._mark()
        if mark != self._seen:
            self.keys, self.current = read_key_file(self.path)
            self._seen = mark


@Once
def get_keystore() -> KeyStore:
    """The key store of this process, which takes no key but the database's own."""
    return CheckedKeyStore(_given())


def _given() -> KeyStore:
    """Only the embedded default makes a missing file, and only while nothing needs the old one."""
    if settings.TOOLHUB_KEYSTORE == "env":
        return InMemoryKeyStore(*parse_keys(settings.TOOLHUB_MASTER_KEYS, what="TOOLHUB_MASTER_KEYS", lost=GIVE_KEYS))
    if settings.TOOLHUB_KEYSTORE == "service":
        return ServiceKeyStore(HttpKeyService(settings.TOOLHUB_KEY_SERVICE_URL, settings.TOOLHUB_KEY_SERVICE_TOKEN))
    path = settings.TOOLHUB_KEY_FILE
    if settings.TOOLHUB_EMBEDDED and not path.exists():
        if anything_is_sealed():
            raise KeyUnavailable(
                f"The key file {path} is lost, and the database holds values that only its keys open.", remedy=LOST
            )
        forget_check_values()
        make_key_file(path)
    return FileKeyStore(path)
