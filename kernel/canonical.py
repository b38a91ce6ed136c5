"""Canonical JSON: the exact bytes that a hash is over.

RFC 8785 canonical JSON for documents inside I-JSON; anything outside it (integers beyond 2^53, for example) is hashed as
the bytes that were given, and says so in ``alg``. What Python's own encoder writes in the same bytes is left to it, which is several
times faster; :mod:`rfc8785` does all else, and says what the bytes are.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

_MOST = 2**53 - 1
_encode = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":"), check_circular=False, allow_nan=False
).encode


def _is_plain(value: Any) -> bool:
    """Whether both encoders write it alike: names of objects in ASCII, which both sort alike; numbers that are written as they are."""
    waiting: list[Any] = [value]
    for each in waiting:  # which grows by what is in it
        kind = type(each)
        if kind is str or kind is bool or each is None:
            continue
        if kind is dict:
            try:
                if not "".join(each).isascii():
                    return False
            except TypeError:  # a name that is no text
                return False
            waiting += each.values()
        elif kind is list or kind is tuple:
            waiting += each
        elif kind is int:
            if not -_MOST <= each <= _MOST:
                return False
        elif not isinstance(each, str):  # of a kind of its own, as words of closed sets are
            return False
    return True


def canonicalize(value: Any) -> bytes:
    """RFC 8785 bytes of ``value``; ``rfc8785.CanonicalizationError`` when it is not I-JSON."""
    if _is_plain(value):
        try:
            return _encode(value).encode()
        except UnicodeEncodeError:
            pass  # half of a character: refused below
    return rfc8785.dumps(value)


def encode_hash_input(value: Any) -> tuple[str, bytes]:
    """``(alg, bytes)``: ``sha256-jcs`` with canonical bytes, or ``sha256-raw`` with compact, sorted JSON."""
    try:
        return "sha256-jcs", canonicalize(value)
    except rfc8785.CanonicalizationError:
        return "sha256-raw", json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def compute_digest(value: Any) -> str:
    """``sha256:<hex>`` over :func:`encode_hash_input` bytes."""
    return "sha256:" + hashlib.sha256(encode_hash_input(value)[1]).hexdigest()
