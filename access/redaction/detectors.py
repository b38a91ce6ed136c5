"""Detectors: what in a text is personal data or a secret, and where exactly.

Each detector takes candidates of a shape and keeps those that pass the check of their kind: the digits of cards, accounts and
identity numbers have to add up, a telephone number has to exist in its country's plan. Nobody is asked and nothing is learned:
the same text has the same hits everywhere.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from stdnum import iban, luhn
from stdnum.iso7064 import mod_11_2
from stdnum.us import ssn

from access.redaction import patterns
from access.redaction.national_ids import find_national_ids
from access.redaction.phones import find_phones
from access.redaction.postal_addresses import find_addresses
from access.redaction.spans import has_word_before, iter_prefixes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from access.redaction.spans import Span


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    start: int
    end: int
    kind: str


def _emails(text: str) -> Iterator[Span]:
    for match in patterns.AT.finditer(text):
        start = match.start()
        while start and match.start() - start < patterns.MAX_LOCAL and text[start - 1] in patterns.LOCAL:
            start -= 1
        while start < match.start() and text[start] in ".'/*=?!":
            start += 1
        if start < match.start():
            yield start, match.end()


_SIXTEEN, _UP_TO_19, _FROM_12 = {16}, {16, 17, 18, 19}, set(range(12, 20))
# The networks by the digits that their cards begin with, and the lengths that they use; the most digits decide.
_NETWORKS: dict[str, set[int]] = (
    {"4": {13, 16, 19}, "81": _SIXTEEN}
    | dict.fromkeys(("35", "60", "61", "62", "63", "64", "65", "66", "67", "68", "69"), _UP_TO_19)
    | {key: {14, 16} for key in ("30", "36", "38", "39")}
    | {key: {15} for key in ("34", "37", "1800", "2131")}
    | dict.fromkeys(("50", "56", "57", "58"), _FROM_12)
    | dict.fromkeys(map(str, (*range(51, 56), *range(2221, 2721))), _SIXTEEN)
    | dict.fromkeys(("5018", "5020", "5038", "5893", "6304", "6390", "6759", "6761", "6762", "6763"), _FROM_12)
)
_GROUPS = re.compile(r"[0-9]+|[0-9]{4,8}([ .\-]{1,2})[0-9]{3,8}(?:\1[0-9]{1,8})*")


def _is_card(digits: str) -> bool:
    """A network that exists, the length that it uses, and a check digit that is right."""
    lengths = next((_NETWORKS[digits[:most]] for most in (4, 2, 1) if digits[:most] in _NETWORKS), ())
    return len(digits) in lengths and len(set(digits)) > 1 and luhn.is_valid(digits)


def _cards(text: str) -> Iterator[Span]:
    for match in patterns.CARD.finditer(text):
        for (start, end), digits in iter_prefixes(match, text, 12):
            if _is_card(digits) and _GROUPS.fullmatch(text, start, end):
                yield start, end
                break


def _is_cn_id(number: str) -> bool:
    """The check digit and a date of birth. Regions are no check: lists of them lack those that were renamed."""
    try:
        born = date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    return born.year >= 1900 and bool(mod_11_2.is_valid(number.upper()))


def _cn_ids(text: str) -> Iterator[Span]:
    for match in patterns.CN_ID.finditer(text):
        if _is_cn_id(match[0].replace(" ", "").replace("-", "")):
            yield match.span()


def _ibans(text: str) -> Iterator[Span]:
    for match in patterns.IBAN.finditer(text):
        for span, number in iter_prefixes(match, text, 15):
            if iban.is_valid(number.upper(), check_country=False):
                yield span
                break


def _ssns(text: str) -> Iterator[Span]:
    for match in patterns.US_SSN.finditer(text):
        if ssn.is_valid(match[0].replace(" ", "-")):
            yield match.span()
    for match in patterns.US_SSN_BARE.finditer(text):
        if ssn.is_valid(match[0]) and has_word_before(text, match.start(), patterns.SSN_WORDS, 32):
            yield match.span()


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _ips(text: str) -> Iterator[Span]:
    for match in patterns.IPV4.finditer(text):
        if _is_address(match[0]):
            yield match.span()
    for match in patterns.IPV6.finditer(text):
        if match[0].count(":") > 1 and _is_address(match[0]):
            yield match.span()


def _private_keys(text: str) -> Iterator[Span]:
    """From BEGIN to its END; without one, everything that follows."""
    place = 0
    while match := patterns.KEY_BEGIN.search(text, place):
        end = text.find(patterns.KEY_END, match.end())
        line = text.find("-----", end + len(patterns.KEY_END)) if end >= 0 else -1
        place = line + 5 if line >= 0 else len(text)
        yield match.start(), place


def _says_much(value: str) -> bool:
    """Whether what is set under a name such as "password" could be one, and not a word about it."""
    return any(char.isdigit() for char in value) or not (value.isalpha() or value.isidentifier())


_SECRET_WORDS = tuple(word for words, _ in patterns.SECRETS for word in words)


def _secrets(text: str) -> Iterator[Span]:
    yield from _private_keys(text)
    lower = text.lower()
    if not any(map(lower.__contains__, _SECRET_WORDS)):
        return
    for words, pattern in patterns.SECRETS:
        if not any(word in lower for word in words):
            continue
        for match in pattern.finditer(text):
            if "set" not in pattern.groupindex or _says_much(match["set"]):
                yield match.span(match.lastindex or 0)


# The order is that of precedence: of two hits that overlap, the kind that is named first stays.
_DETECTORS: dict[str, Callable[[str], Iterable[Span]]] = {
    "secret": _secrets,
    "email": _emails,
    "iban": _ibans,
    "cn_id": _cn_ids,
    "card": _cards,
    "us_ssn": _ssns,
    "national_id": find_national_ids,
    "phone": find_phones,
    "ip": _ips,
    "address": find_addresses,
}
KINDS = tuple(_DETECTORS)
ALL = "all"
_LONG = frozenset({"cn_id", "card", "us_ssn", "phone"})  # of which each has seven digits that nothing but signs part
_NUMERIC = frozenset({"iban", "cn_id", "card", "us_ssn", "national_id", "phone", "ip", "address"})


MAX_IN_CONTEXT = 256


def find_hits(text: str, kinds: Iterable[str] = KINDS, *, name: str = "") -> list[Hit]:
    """The hits of these kinds, by their place; no two overlap. ``name``: of the property that holds the text, if one does."""
    lead = f"{name}: " if name and len(text) <= MAX_IN_CONTEXT else ""
    wanted = frozenset(kinds)
    plain = lead + text
    plain = plain if plain.isascii() else plain.translate(patterns.PLAIN)
    numeric = patterns.NUMERIC.search(plain) is not None
    long = numeric and patterns.SEVEN_DIGITS.search(plain) is not None
    taken = bytearray(len(plain))
    taken[: len(lead)] = b"\1" * len(lead)
    found: list[Hit] = []
    for kind, detect in _DETECTORS.items():
        if kind not in wanted or (kind == "email" and "@" not in plain):
            continue
        if (kind in _NUMERIC and not numeric) or (kind in _LONG and not long):
            continue
        for start, end in detect(plain):
            if 1 not in taken[start:end]:
                taken[start:end] = b"\1" * (end - start)
                found.append(Hit(start - len(lead), end - len(lead), kind))
    return sorted(found)
