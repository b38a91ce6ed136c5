"""Key sets of issuers: the public keys with which an identity provider signs at this moment.

The keys are in the :class:`TrustedIssuer` itself or at its ``jwks_url``. What was fetched is used for a while; a key id that is
not in it makes the hub ask once more, though not for every caller who makes one up.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry

from access.problems import IssuerUnavailable
from kernel.database.connections import release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request

if TYPE_CHECKING:
    from access.models import TrustedIssuer

FRESH_S = 300.0  # asked again after so long
STALE_S = 3600.0  # used for so long while the provider does not answer
AGAIN_S = 30.0  # the shortest time between two questions
MAX_KEYS = 50
KEY_TYPES = ("RSA", "EC", "OKP")  # public keys only: a shared secret in a public document would let anybody sign


def _describe_key(type: str, **parts: dict[str, Any]) -> dict[str, Any]:
    use = {"type": "string", "enum": ["sig"]}
    return {
        "type": "object",
        "required": ["kty", *parts],
        "properties": {"kty": {"type": "string", "enum": [type]}, **parts, "use": use},
        "not": {"required": ["d"]},
    }


_COORDINATE = {"type": "string", "pattern": "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"}
# Public keys for signatures as JSON Schema of OpenAPI 3.0 (RFC 7518, RFC 8037), by what each type is told by.
KEY_FORMS = (
    _describe_key("OKP", crv={"type": "string", "enum": ["Ed25519"]}, x=_COORDINATE),
    _describe_key(
        "RSA",
        n={"type": "string", "pattern": "^[h-z][A-Za-z0-9_-]{340}[AQgw]$", "description": "2048 bits."},
        e={"type": "string", "enum": ["AQAB"]},
    ),
    _describe_key(
        "EC",
        crv={"type": "string", "enum": ["P-256"]},
        x={"type": "string", "format": "curve-x", "description": "Of a point of the curve."},
        y={"type": "string", "format": "curve-y"},
    ),
)


@dataclass(slots=True)
class _Fetched:
    keys: list[Any]
    at: float
    asked_at: float


_fetched: dict[str, _Fetched] = {}
_failed: dict[str, float] = {}  # when a provider that is not known yet was asked in vain
_locks: dict[str, threading.Lock] = {}


def read_keys(document: Any) -> list[Any]:
    """The usable keys of a JWKS document; ``ValueError`` with a sentence when it is none."""
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise ValueError(f"A key set is an object with at most {MAX_KEYS} `keys`.")
    found = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("kty") not in KEY_TYPES or entry.get("use", "sig") != "sig":
            continue
        try:
            key = JWKRegistry.import_key(entry)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if not getattr(key, "is_private", False):
            found.append(key)
    return found


def load_issuer_keys(issuer: TrustedIssuer, *, unknown_kid: bool = False) -> list[Any]:
    """The keys; with ``unknown_kid`` those of a newer document, if it may be asked for already."""
    if issuer.jwks is not None:
        return read_keys(issuer.jwks)
    now = time.monotonic()
    known = _fetched.get(issuer.jwks_url)
    wanted = FRESH_S if not unknown_kid else AGAIN_S
    if known and (now - known.at < wanted or now - known.asked_at < AGAIN_S) and now - known.at < STALE_S:
        return known.keys
    return _ask(issuer.jwks_url, known, now)


def _ask(url: str, known: _Fetched | None, now: float) -> list[Any]:
    """One caller asks; the others take what is known, or hear at once that there is nothing."""
    release_connection()
    failed_at, lock = _failed.get(url), _locks.setdefault(url, threading.Lock())
    if (failed_at is not None and now - failed_at < AGAIN_S) or not lock.acquire(blocking=False):
        return _without_asking(known, now)
    try:
        newer = _fetched.get(url)
        if newer is not None and newer is not known:
            return newer.keys
        try:
            keys = read_keys(json.loads(send_request(url, headers={"Accept": "application/json"}).body))
        except (AddressRefused, OutboundFailed, ValueError, RecursionError) as error:
            _failed[url] = time.monotonic()
            if known is not None:
                known.asked_at = now
            return _without_asking(known, now, error)
        _failed.pop(url, None)
        _fetched[url] = _Fetched(keys, now, now)
        return keys
    finally:
        lock.release()


def _without_asking(known: _Fetched | None, now: float, error: Exception | None = None) -> list[Any]:
    if known is None or now - known.at >= STALE_S:
        raise IssuerUnavailable(remedy="Try again; if it stays so, tell an owner of your tenant.") from error
    return known.keys


def forget_fetched() -> None:
    """Ask every provider again."""
    _fetched.clear()
    _failed.clear()
