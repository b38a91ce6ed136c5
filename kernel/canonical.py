"""Canonical JSON: the exact bytes that a hash is over.

RFC 8785 canonical JSON for documents inside I-JSON; anything outside it (integers beyond 2^53, for example) is hashed as
the bytes that were given, and says so in ``alg``.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785


def canonicalize(value: Any) -> bytes:
    """RFC 8785 bytes of ``value``; ``rfc8785.CanonicalizationError`` when it is not I-JSON."""
    return rfc8785.dumps(value)


def encode_hash_input(value: Any) -> tuple[str, bytes]:
    """``(alg, bytes)``: ``sha256-jcs`` with canonical bytes, or ``sha256-raw`` with compact, sorted JSON."""
    try:
        return "sha256-jcs", rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        return "sha256-raw", json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def compute_digest(value: Any) -> str:
    """``sha256:<hex>`` over :func:`encode_hash_input` bytes."""
    return "sha256:" + hashlib.sha256(encode_hash_input(value)[1]).hexdigest()
