"""API keys: their form, and whether a text is one.

``hub_<environment>_<lookup>_<secret><check>``: the look-up part finds the row, the secret is compared as a hash in constant
time, and the check digits let secret scanners (and people who mistype) know a key from other text. A SHA-256 is enough:
the secret has 256 bits, so there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import zlib
from dataclasses import dataclass

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LOOKUP_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 8, 43, 6
ENVIRONMENT = "live"


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """``text`` is shown once; ``lookup`` and ``digest`` are stored."""

    text: str
    lookup: str
    digest: bytes


def compute_check(body: str) -> str:
    number, letters = zlib.crc32(body.encode()), ""
    for _ in range(CHECK_LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        letters += ALPHABET[rest]
    return letters


def draw_letters(count: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(count))


def new_key() -> GeneratedKey:
    lookup = draw_letters(LOOKUP_LENGTH)
    body = f"hub_{ENVIRONMENT}_{lookup}_{draw_letters(SECRET_LENGTH)}"
    text = body + compute_check(body)
    return GeneratedKey(text=text, lookup=lookup, digest=compute_digest(text))


def compute_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def extract_lookup(text: str) -> str:
    """The look-up part of a well-formed key; empty for anything else, so that junk costs no query."""
    parts = text.split("_")
    if (
        len(parts) != 4
        or parts[0] != "hub"
        or len(parts[2]) != LOOKUP_LENGTH
        or len(parts[3]) != SECRET_LENGTH + CHECK_LENGTH
    ):
        return ""
    if not text.isascii() or not hmac.compare_digest(compute_check(text[:-CHECK_LENGTH]), text[-CHECK_LENGTH:]):
        return ""
    return parts[2]


def matches_digest(text: str, digest: bytes) -> bool:
    return hmac.compare_digest(compute_digest(text), digest)
