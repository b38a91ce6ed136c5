"""Key service: how the hub uses master keys that it never sees.

A :class:`KeyService` is the shape of a key management service: it wraps, unwraps and makes MACs under keys that have ids and
never leave it. :class:`ServiceKeyStore` is a key store on one. :class:`HttpKeyService` speaks to it in JSON: ``POST <url>/wrap``
with ``{plaintext, context}``, ``/unwrap`` with ``{key_id, wrapped, context}``, ``/mac`` with ``{key_id, message}``; bytes in base64.
What stands before Vault or a cloud's service is then a few lines.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Protocol

from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from evidence.keys.keystore import KeyStore

KEPT_S = 300.0
PATIENCE_S = 5.0


class KeyService(Protocol):
    def wrap(self, plaintext: bytes, *, context: bytes) -> tuple[str, bytes]:
        """``(key_id, wrapped)`` under the key in use."""

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        """Raises :class:`KeyUnavailable`."""

    def mac(self, key_id: str, message: bytes) -> tuple[str, str, bytes]:
        """``(key_id, first, mac)``: with the key that is named, or, for ``""``, with the one in use; ``first`` never changes."""


class InMemoryKeyService:
    """The fake: the service's side over a key store of this process."""

    def __init__(self, store: KeyStore) -> None:
        self.store = store

    def wrap(self, plaintext: bytes, *, context: bytes) -> tuple[str, bytes]:
        return self.store.wrap(plaintext, context=context)

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        return self.store.unwrap(key_id, wrapped, context=context)

    def mac(self, key_id: str, message: bytes) -> tuple[str, str, bytes]:
        name, key = self.store.derive(message, key_id)
        return name, self.store.first(), key


class HttpKeyService:
    """Each request carries ``Authorization: Bearer <token>`` when there is one."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url, self.token = url.rstrip("/"), token

    def _ask(self, what: str, **said: Any) -> dict[str, Any]:
        document = {name: _text(value) if isinstance(value, bytes) else value for name, value in said.items()}
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(  # noqa: S310  the address is the operator's
            f"{self.url}/{what}", data=json.dumps(document).encode(), headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)
                return found
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise KeyUnavailable(
                f"The key service did not {what}: {type(error).__name__}.",
                remedy="Look whether TOOLHUB_KEY_SERVICE_URL answers, and still has the key.",
            ) from error

    def wrap(self, plaintext: bytes, *, context: bytes) -> tuple[str, bytes]:
        said = self._ask("wrap", plaintext=plaintext, context=context)
        return said["key_id"], _bytes(said["wrapped"])

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        return _bytes(self._ask("unwrap", key_id=key_id, wrapped=wrapped, context=context)["plaintext"])

    def mac(self, key_id: str, message: bytes) -> tuple[str, str, bytes]:
        said = self._ask("mac", key_id=key_id, message=message)
        return said["key_id"], said["first"], _bytes(said["mac"])


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


class ServiceKeyStore:
    """A key store whose master keys stay in the service. What it derives is kept for minutes: no call waits for it twice."""

    def __init__(self, service: KeyService) -> None:
        self.service = service
        self._kept: dict[tuple[str, bytes], tuple[float, tuple[str, str, bytes]]] = {}

    def wrap(self, data_key: bytes, *, context: bytes) -> tuple[str, bytes]:
        return self.service.wrap(data_key, context=context)

    def unwrap(self, key_id: str, wrapped: bytes, *, context: bytes) -> bytes:
        return self.service.unwrap(key_id, wrapped, context=context)

    def _mac(self, key_id: str, message: bytes) -> tuple[str, str, bytes]:
        until, found = self._kept.get((key_id, message), (0.0, ("", "", b"")))
        if until < time.monotonic():
            found = self.service.mac(key_id, message)
            self._kept[(key_id, message)] = (time.monotonic() + KEPT_S, found)
        return found

    def fingerprint(self, value: bytes, *, context: bytes) -> str:
        _, _, key = self._mac(self.first(), b"fingerprint\0" + context)
        return "hmac-sha256:" + hmac.digest(key, value, hashlib.sha256).hex()

    def first(self) -> str:
        return self._mac("", b"first")[1]

    def derive(self, purpose: bytes, key_id: str = "") -> tuple[str, bytes]:
        name, _, key = self._mac(key_id, b"derive\0" + purpose)
        return name, key

    def names(self) -> None:
        """Only the service knows which keys it has."""
