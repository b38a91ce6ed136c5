"""Who holds the keys that snapshots are encrypted with?

A :class:`KeyStore` wraps and unwraps data keys; the key that wraps never leaves it. :class:`FileKeyStore` is the first one:
a JSON file of named 256-bit keys that only the owner can read. The current key wraps; older ones still unwrap.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings

from evidence.problems import KeyUnavailable
from toolhub.kernel.secrets import write_once

if TYPE_CHECKING:
    from pathlib import Path

NONCE_BYTES = 12


class KeyStore(Protocol):
    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        """``(key_id, wrapped)``; ``context`` is authenticated and must be given again to unwrap."""

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        """The data key; raises :class:`KeyUnavailable` for an unknown key or changed bytes."""

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        """A keyed hash: equal values of one context match, and nobody without the key can guess what they were."""


class InMemoryKeyStore:
    """Keys that live as long as the process. The fake of the contract suite, and all that tests need."""

    def __init__(self, keys: dict[str, bytes] | None = None, current: str = "") -> None:
        self.keys = keys or {"memory-1": AESGCM.generate_key(256)}
        self.current = current or next(iter(self.keys))

    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        nonce = os.urandom(NONCE_BYTES)
        return self.current, nonce + AESGCM(self.keys[self.current]).encrypt(nonce, data_key, context)

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        key = self.keys.get(key_id)
        if key is None:
            raise KeyUnavailable(
                f"The key {key_id} is not in the key file.", remedy="Restore the key file from its backup."
            )
        try:
            return AESGCM(key).decrypt(wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:], context)
        except InvalidTag as error:
            raise KeyUnavailable("A wrapped key does not belong to this key or this tenant.") from error

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        # Always the first key: a fingerprint must stay comparable after a rotation.
        first = self.keys[min(self.keys)]
        key = hmac.digest(first, b"fingerprint\0" + context, hashlib.sha256)
        return "hmac-sha256:" + hmac.new(key, value, hashlib.sha256).hexdigest()


class FileKeyStore(InMemoryKeyStore):
    """``{"current": "k1", "keys": {"k1": "<base64>"}}``, made on first use."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            fresh = base64.b64encode(AESGCM.generate_key(256)).decode()
            write_once(path, json.dumps({"current": "k1", "keys": {"k1": fresh}}))
        try:
            document = json.loads(path.read_text())
            keys = {name: base64.b64decode(text, validate=True) for name, text in document["keys"].items()}
            current = document["current"]
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise KeyUnavailable(
                f"The key file {path} cannot be read.",
                remedy="Restore it from its backup; without it snapshots stay unreadable.",
            ) from error
        if current not in keys or any(len(key) != 32 for key in keys.values()):
            raise KeyUnavailable(f"The key file {path} is damaged.", remedy="Restore it from its backup.")
        super().__init__(keys, current)


@lru_cache(maxsize=1)
def keystore() -> KeyStore:
    """The key store of this process."""
    return FileKeyStore(settings.TOOLHUB_KEY_FILE)
