"""Token seals: how the tokens of a person's account are kept, and the secret of the hub's client at an authorization server.

Tokens are encrypted under a key of their own, which is wrapped with the person's: it is destroyed when the person is erased. The
secret belongs to the tenant, as its other secrets do. Both are bound to their row.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from evidence import services as evidence
from evidence.keys.keystore import NONCE_BYTES, get_keystore
from evidence.keys.subject_keys import get_subject_key, unwrap_under, wrap_under
from evidence.problems import KeyUnavailable

if TYPE_CHECKING:
    from access.models import AccountServer, ReturnedTokens, ServerAccount


@dataclass(frozen=True, slots=True)
class AccountTokens:
    """``refresh``: empty where newer ones are not to be had. ``client_secret``: of the client that they were given to."""

    access: str = field(repr=False)
    refresh: str = field(default="", repr=False)
    client_secret: str = field(default="", repr=False)


TOKEN_COLUMNS = ("subject_key", "token_key", "nonce", "ciphertext")
# Who the hub is at a server, with its secret.
CLIENT_COLUMNS = (
    "client_id",
    "client_kind",
    "client_ends_at",
    "client_refused_at",
    "key_id",
    "wrapped_key",
    "nonce",
    "ciphertext",
)


def _context(what: bytes, row: Any) -> bytes:
    return bytes(row.tenant_id.bytes + b"\0" + what + b"\0" + row.pk.bytes)


def seal_tokens(row: ServerAccount | ReturnedTokens, tokens: AccountTokens, *, person: str) -> None:
    """Into the row, which is saved by the caller, in whose transaction nobody destroys the person's key."""
    subject = evidence.compute_user_fingerprint(person, tenant_id=row.tenant_id)
    key = get_subject_key(tenant_id=row.tenant_id, subject=subject)
    data_key, nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
    plain = json.dumps([tokens.access, tokens.refresh, tokens.client_secret]).encode()
    row.subject_key, row.token_key, row.nonce = key, wrap_under(key, data_key), nonce
    row.ciphertext = AESGCM(data_key).encrypt(nonce, plain, _context(b"server account", row))


def open_tokens(row: ServerAccount | ReturnedTokens) -> AccountTokens:
    """For the worker that runs a call, and for giving them back. ``ValuesErased`` when the person was erased."""
    assert row.subject_key is not None
    data_key = unwrap_under(row.subject_key, bytes(row.token_key))
    return AccountTokens(*json.loads(_decrypt(data_key, row, _context(b"server account", row))))


def clear_tokens(account: ServerAccount) -> None:
    account.subject_key, account.token_key, account.nonce, account.ciphertext = None, b"", b"", b""
    account.refreshable, account.expires_at, account.refreshing_until = False, None, None


def clear_returned_tokens(row: ReturnedTokens) -> None:
    row.subject_key, row.token_key, row.nonce, row.ciphertext = None, b"", b"", b""


def seal_client_secret(server: AccountServer, secret: str) -> None:
    """Into the row, which is saved by the caller. Empty: the client has none."""
    server.key_id, server.wrapped_key, server.nonce, server.ciphertext = "", b"", b"", b""
    if secret:
        data_key, server.nonce = AESGCM.generate_key(256), os.urandom(NONCE_BYTES)
        server.key_id, server.wrapped_key = get_keystore().wrap(data_key, context=server.tenant_id.bytes)
        server.ciphertext = AESGCM(data_key).encrypt(
            bytes(server.nonce), secret.encode(), _context(b"account server", server)
        )


def open_client_secret(server: AccountServer) -> str:
    if not server.key_id:
        return ""
    data_key = get_keystore().unwrap(server.key_id, bytes(server.wrapped_key), context=server.tenant_id.bytes)
    return _decrypt(data_key, server, _context(b"account server", server)).decode()


def _decrypt(key: bytes, row: Any, context: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(bytes(row.nonce), bytes(row.ciphertext), context)
    except InvalidTag as error:
        raise KeyUnavailable("What is sealed does not belong to its row, or was changed.") from error
