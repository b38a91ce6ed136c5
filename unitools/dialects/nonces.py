"""Nonces: how a reader of XML knows that a call was written for its own rendering, and not quoted from a document.

A nonce is 16 random bytes and their HMAC under the rendering's key, in URL-safe base64 (43 characters). Whoever has the key can check
one without having kept it; whoever wrote the document that a model quotes has never seen one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

RANDOM, SIGNED = 16, 16  # bytes


def _signed(key: bytes, random: bytes) -> bytes:
    return hmac.new(key, b"unitools xml nonce\0" + random, hashlib.sha256).digest()[:SIGNED]


def make_nonce(key: bytes) -> str:
    """A new nonce. Raises ValueError without a key: everybody could make such a nonce."""
    if not key:
        raise ValueError("A nonce needs a key.")
    random = secrets.token_bytes(RANDOM)
    return base64.urlsafe_b64encode(random + _signed(key, random)).rstrip(b"=").decode()


def check_nonce(key: bytes, nonce: str) -> bool:
    """Was the nonce made with this key? Never with an empty one."""
    try:
        held = base64.b64decode(nonce.encode("ascii") + b"=", altchars=b"-_", validate=True)
    except ValueError:
        return False
    random, signature = held[:RANDOM], held[RANDOM:]
    return bool(key) and hmac.compare_digest(signature, _signed(key, random))
