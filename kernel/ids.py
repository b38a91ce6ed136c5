"""Ids: how things are identified, in the database and on the wire.

In the database an id is a UUIDv7 (RFC 9562), so ids sort by time. On the wire it is the TypeID form: a prefix that says
what it is, and the same 128 bits in Crockford's base 32: ``inv_01kc8q4m7tfxz…``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import UUID

import uuid_utils.compat

if TYPE_CHECKING:
    from datetime import datetime

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}
LENGTH = 26
_PYTHONS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")  # how Python's int() has base 32
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]


def new_id() -> UUID:
    """A new UUIDv7."""
    return uuid_utils.compat.uuid7()


def lowest_id(moment: datetime) -> UUID:
    """The lowest that :func:`new_id` could give at ``moment``: what came later has a higher one, so the primary key finds it."""
    ms = int(moment.timestamp() * 1000)
    return UUID(int=min(max(ms, 0), (1 << 48) - 1) << 80)


def encode(prefix: str, id: UUID) -> str:
    return f"{prefix}_" + write_letters(id.int)


def write_letters(number: int) -> str:
    """128 bits in base 32."""
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def read_letters(text: str) -> int:
    """What :func:`write_letters` has written as these letters."""
    return int(text.translate(_PYTHONS), 32)


def decode(prefix: str, text: str) -> UUID:
    """The UUID in ``text``; ``ValueError`` for another prefix or anything that :func:`encode` does not write."""
    head, _, body = text.partition("_")
    if head != prefix or len(body) != LENGTH:
        raise ValueError(f"Not an id of the form {prefix}_…")
    number = 0
    for letter in body:
        try:
            number = number << 5 | _VALUES[letter]
        except KeyError:
            raise ValueError(f"Not an id of the form {prefix}_…") from None
    if number >> 128:
        raise ValueError(f"Not an id of the form {prefix}_…")
    return UUID(int=number)


def id_pattern(prefix: str) -> str:
    """What :func:`decode` takes, as a regular expression. 26 letters have two bits more than a UUID, so the first is below 8."""
    return f"^{prefix}_[0-7][{ALPHABET}]{{{LENGTH - 1}}}$"


def encode_user(pk: int) -> str:
    """A person, whose row is one of Django's and has a number."""
    return f"usr_{pk}"


class PrefixedIdConverter:
    """URL converter base: ``<inv:invocation_id>`` takes ``inv_…`` and gives the view a UUID."""

    prefix: str
    regex: str

    def to_python(self, value: str) -> UUID:
        return decode(self.prefix, value)

    def to_url(self, value: UUID | str) -> str:
        return encode(self.prefix, value if isinstance(value, UUID) else UUID(value))


PREFIXES = (
    *("ten", "agt", "key", "con", "cli", "iss", "idn", "ntf", "dlv", "grt", "grq", "cns", "bud", "pol", "hlt"),
    *(
        "tol",
        "tvn",
        "rev",
        "ins",
        "sec",
        "inv",
        "chn",
        "run",
        "fct",
        "snp",
        "cbe",
        "cbd",
        "art",
        "rpl",
        "snk",
        "qry",
        "exp",
        "era",
        "ver",
        "cap",
        "pbk",
        "imp",
        "plg",
        "plc",
        "plm",
        "asv",
        "sac",
        "tlf",
        "viw",
    ),
)


def build_converters() -> dict[str, type[PrefixedIdConverter]]:
    """One URL converter a prefix, to be registered by the root URL configuration."""

    def make(prefix: str) -> type[PrefixedIdConverter]:
        regex = id_pattern(prefix)[1:-1]
        return type(f"{prefix.title()}IdConverter", (PrefixedIdConverter,), {"prefix": prefix, "regex": regex})

    return {prefix: make(prefix) for prefix in PREFIXES}


_HARMLESS = re.compile(r"[A-Za-z0-9._-]{8,64}")


def choose_request_id(given: str) -> str:
    """The id of a request: the caller's, if it is harmless."""
    return given if _HARMLESS.fullmatch(given) else str(new_id())
