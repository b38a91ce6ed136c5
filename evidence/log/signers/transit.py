"""Transit signer: signing keys in the transit engine of OpenBao or HashiCorp Vault, which they never leave.

The two halves of a key are two keys of type ``ed25519`` there, ``<prefix>-k1`` and ``<prefix>-k1-clock``; the clock is made first,
so a name counts once its log key is there. Each is used in its version 1: a rotation makes another name, never another version.
"""

from __future__ import annotations

import base64
import http
import re
import threading
from typing import TYPE_CHECKING, Any

import httpx2

from evidence.log.signers.base import FIRST, LogPublicKey, check_that_it_signs, key_number, newest_first, next_name
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOST = (
    "Look whether TOOLHUB_SIGNING_TRANSIT_URL answers, and has the keys. If they are lost for good, `manage.py rotate_log_key "
    "--lost` begins with a new key, and everybody who verifies must be told of it."
)
DENIED = (
    "The policy of the token in TOOLHUB_SIGNING_TRANSIT_TOKEN_FILE must allow it: docs/how-to/keep-signing-keys-in-a-token.md "
    "has one."
)
PATIENCE_S = 5.0
_CLOCK = "-clock"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


class TransitSigner:
    """``url``: of the engine, as ``https://bao.example.org:8200/v1/transit``. The token's file is read again for each request, since
    an agent renews it. ``ca``: a file of certificates, where the engine's is none that everybody trusts."""

    def __init__(self, url: str, *, token_file: Path | None, prefix: str = "toolhub", ca: Path | None = None) -> None:
        self.url, self.prefix = url.rstrip("/"), prefix
        self.place = f"the transit engine {self.url}"
        self.lost = LOST
        self._token_file, self._ca = token_file, ca
        self._client: httpx2.Client | None = None
        self._lock = threading.Lock()
        self._known: dict[str, LogPublicKey] = {}
        self._pattern = re.compile(re.escape(prefix) + r"-(k[1-9]\d{0,8})(-clock)?")

    def list_keys(self) -> list[LogPublicKey]:
        there = self._names()
        found = newest_first(name for name in there if key_number(name) and name + _CLOCK in there)
        self._known = {name: self._known.get(name) or self._read(name) for name in found}
        return [self._known[name] for name in found]

    def sign(self, message: bytes, *, key: str, clock: bool = False) -> bytes:
        wanted = key + (_CLOCK if clock else "")
        said = self._ask(
            "POST", f"sign/{self.prefix}-{wanted}", {"input": base64.b64encode(message).decode(), "key_version": 1}
        )
        if said is None:
            raise KeyUnavailable(f"The signing key {wanted} is not in {self.place}.", remedy=LOST)
        try:
            signature = base64.b64decode(said["signature"].rpartition(":")[2], validate=True)
        except (KeyError, AttributeError, ValueError) as error:
            raise self._strange() from error
        if len(signature) != _SIGNATURE_BYTES:
            raise self._strange()
        return signature

    def has_keys(self) -> bool:
        return any(map(key_number, self._names()))

    def make_first_key(self, name: str = FIRST) -> None:
        for each in (name + _CLOCK, name):
            if self._ask("POST", f"keys/{self.prefix}-{each}", {"type": "ed25519"}) is None:
                raise KeyUnavailable(f"There is no transit engine at {self.url}.", remedy=LOST)

    def add_key(self) -> str:
        name = next_name(self._names())
        self.make_first_key(name)
        return name

    def forget_keys(self, names: Iterable[str]) -> None:
        there = self._names()
        current = newest_first(name for name in there if key_number(name))[:1]
        for name in set(names) - set(current):
            for each in (name, name + _CLOCK):  # a name whose log key is gone counts no more
                if each in there:
                    self._ask("POST", f"keys/{self.prefix}-{each}/config", {"deletion_allowed": True})
                    self._ask("DELETE", f"keys/{self.prefix}-{each}")

    def _names(self) -> set[str]:
        """``k1``, ``k1-clock``, …: an engine without keys answers that there is nothing."""
        said = self._ask("GET", "keys?list=true") or {"keys": []}
        named = [self._pattern.fullmatch(str(each)) for each in said.get("keys", [])]
        return {found[1] + (found[2] or "") for found in named if found}

    def _read(self, name: str) -> LogPublicKey:
        key = LogPublicKey(name, self._read_public(name), self._read_public(name + _CLOCK))
        check_that_it_signs(self, key)
        return key

    def _read_public(self, name: str) -> bytes:
        said = self._ask("GET", f"keys/{self.prefix}-{name}")
        if said is None:
            raise KeyUnavailable(f"The signing key {name} is not in {self.place}.", remedy=LOST)
        try:
            public = base64.b64decode(said["keys"]["1"]["public_key"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise self._strange() from error
        if said.get("type") != "ed25519" or len(public) != _KEY_BYTES:
            raise self._strange()
        return public

    def _ask(self, method: str, path: str, said: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """The ``data`` of the answer; None where nothing is there."""
        try:
            answer = self._connect().request(
                method, f"{self.url}/{path}", json=said, headers={"X-Vault-Token": self._token()}
            )
        except httpx2.HTTPError as error:
            raise KeyUnavailable(f"T{self.place[1:]} does not answer: {type(error).__name__}.", remedy=LOST) from error
        if answer.status_code == http.HTTPStatus.NOT_FOUND:
            return None
        if answer.status_code in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise KeyUnavailable(f"T{self.place[1:]} does not allow {method} {path}.", remedy=DENIED)
        if (
            answer.status_code == http.HTTPStatus.BAD_REQUEST
            and "not found" in answer.text
            and path.startswith("sign/")
        ):
            return None
        if not answer.is_success:
            raise KeyUnavailable(f"T{self.place[1:]} answered {answer.status_code} to {method} {path}.", remedy=LOST)
        if not answer.content:
            return {}
        try:
            data = answer.json()["data"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._strange() from error
        return data if isinstance(data, dict) else {}

    def _strange(self) -> KeyUnavailable:
        return KeyUnavailable(
            f"What {self.place} answers is not what a transit engine says of an Ed25519 key.", remedy=LOST
        )

    def _token(self) -> str:
        try:
            return self._token_file.read_text().strip() if self._token_file else ""
        except OSError as error:
            raise KeyUnavailable(
                f"The token of the transit engine cannot be read from {self._token_file}.", remedy=DENIED
            ) from error

    def _connect(self) -> httpx2.Client:
        with self._lock:
            if self._client is None:
                verify = str(self._ca) if self._ca else True
                self._client = httpx2.Client(timeout=PATIENCE_S, verify=verify, trust_env=False, follow_redirects=False)
            return self._client
