"""What in a text is personal data or a secret, and where exactly?

Each detector takes candidates of a shape and keeps those that pass the check of their kind: the digits of cards, accounts and
identity numbers have to add up, a telephone number has to exist in its country's plan. Nobody is asked and nothing is learned:
the same text has the same hits everywhere.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

import phonenumbers
from stdnum import iban, luhn
from stdnum.iso7064 import mod_11_2
from stdnum.us import ssn

from access.redaction import patterns

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator

SEPARATORS = " -.()"


@dataclass(frozen=True, slots=True, order=True)
class Hit:
    start: int
    end: int
    kind: str


Span = tuple[int, int]


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


def _prefixes(match: re.Match[str], text: str, least: int) -> Iterator[tuple[Span, str]]:
    """A candidate and, shorter and shorter, what remains of it when whole groups are left off at its end."""
    start, end = match.span()
    while end > start:
        compact = "".join(char for char in text[start:end] if char not in SEPARATORS)
        if len(compact) < least:
            return
        yield (start, end), compact
        end -= 1
        while end > start and text[end - 1] not in SEPARATORS:
            end -= 1
        while end > start and text[end - 1] in SEPARATORS:
            end -= 1


def _emails(text: str) -> Iterator[Span]:
    for match in patterns.AT.finditer(text):
        start = match.start()
        while start and match.start() - start < patterns.MAX_LOCAL and text[start - 1] in patterns.LOCAL:
            start -= 1
        while start < match.start() and text[start] in ".'/*=?!":
            start += 1
        if start < match.start():
            yield start, match.end()


_CARD_LENGTHS = {
    "34": {15}, "37": {15}, "35": {16, 17, 18, 19}, "36": {14, 16}, "38": {14, 16}, "39": {14, 16}, "30": {14, 16},
    "60": {16, 17, 18, 19}, "64": {16, 17, 18, 19}, "65": {16, 17, 18, 19}, "62": {16, 17, 18, 19}, "81": {16},
}  # fmt: skip


def _is_card(digits: str) -> bool:
    """A network that exists, the length that it uses, and a check digit that is right."""
    if digits[0] == "4":
        lengths = {13, 16, 19}
    elif "51" <= digits[:2] <= "55" or "2221" <= digits[:4] <= "2720":
        lengths = {16}
    elif digits[0] == "2":
        return False
    elif digits[0] == "5":
        lengths = {16, 17, 18, 19}
    else:
        lengths = _CARD_LENGTHS.get(digits[:2], {16, 17, 18, 19} if digits[0] == "6" else set())
    return len(digits) in lengths and len(set(digits)) > 1 and luhn.is_valid(digits)


def _cards(text: str) -> Iterator[Span]:
    for match in patterns.CARD.finditer(text):
        for span, digits in _prefixes(match, text, 13):
            if _is_card(digits):
                yield span
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
        for span, number in _prefixes(match, text, 15):
            if iban.is_valid(number.upper(), check_country=False):
                yield span
                break


def _near(text: str, start: int, words: re.Pattern[str], reach: int) -> bool:
    """Whether one of the words stands shortly before."""
    return words.search(text, max(0, start - reach), start) is not None


def _ssns(text: str) -> Iterator[Span]:
    for match in patterns.US_SSN.finditer(text):
        if ssn.is_valid(match[0].replace(" ", "-")):
            yield match.span()
    for match in patterns.US_SSN_BARE.finditer(text):
        if ssn.is_valid(match[0]) and _near(text, match.start(), patterns.SSN_WORDS, 32):
            yield match.span()


@lru_cache(maxsize=4096)
def _is_phone(text: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(text, region))
    except phonenumbers.NumberParseException:
        return False


def _phones(text: str) -> Iterator[Span]:
    for region, pattern in patterns.PHONES:
        for match in pattern.finditer(text):
            for (start, end), _ in _prefixes(match, text, 7):
                number = text[start:end]
                if number.startswith("00"):
                    if number.isdigit() and number[2:4] != "86" and not _near(text, start, patterns.PHONE_WORDS, 24):
                        break  # padded with zeros, more likely
                    number = "+" + number[2:]
                if _is_phone(number, region):
                    yield start, end
                    break
    if patterns.PHONE_WORDS.search(text):
        for match in patterns.PHONE_BARE.finditer(text):
            near = _near(text, match.start(), patterns.PHONE_WORDS, 24)
            if near and any(_is_phone(match[0], region) for region in patterns.PHONE_REGIONS):
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


ZH_REACH = 40


def _is_zh(char: str) -> bool:
    return "一" <= char <= "龥" or (char.isascii() and char.isalnum())


def _zh_addresses(text: str) -> Iterator[Span]:
    done = 0
    for match in patterns.ZH_ANCHOR.finditer(text):
        if match.start() < done:
            continue
        start = match.start()
        while start > done and match.start() - start < ZH_REACH and _is_zh(text[start - 1]):
            start -= 1
        region = patterns.ZH_REGION.search(text, start, match.start()) or patterns.ZH_DISTRICT.search(
            text, start, match.start()
        )
        if region is None and patterns.ZH_NO_WAYS.fullmatch(text, match.start() - 1, match.start() + 1):
            continue
        lead = patterns.ZH_LEAD.match(text, start, region.end() - 1 if region else match.start() - 1)
        if lead:
            start = lead.end()
        if start == match.start():
            continue  # a way without a name: "路12号"
        more = patterns.ZH_MORE.match(text, match.end())
        done = more.end() if more else match.end()
        yield start, done


def _addresses(text: str) -> Iterator[Span]:
    yield from _zh_addresses(text)
    for pattern in (patterns.EN_ADDRESS, patterns.PO_BOX):
        for match in pattern.finditer(text):
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


def _secrets(text: str) -> Iterator[Span]:
    yield from _private_keys(text)
    lower = text.lower()
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
    "phone": _phones,
    "ip": _ips,
    "address": _addresses,
}
KINDS = tuple(_DETECTORS)
ALL = "all"
_NUMERIC = frozenset({"iban", "cn_id", "card", "us_ssn", "phone", "ip", "address"})


MAX_IN_CONTEXT = 256


def find(text: str, kinds: Iterable[str] = KINDS, *, name: str = "") -> list[Hit]:
    """The hits of these kinds, by their place; no two overlap. ``name``: of the property that holds the text, if one does."""
    lead = f"{name}: " if name and len(text) <= MAX_IN_CONTEXT else ""
    wanted = frozenset(kinds)
    plain = lead + text
    plain = plain if plain.isascii() else plain.translate(patterns.PLAIN)
    numeric = patterns.NUMERIC.search(plain) is not None
    taken = bytearray(len(plain))
    taken[: len(lead)] = b"\1" * len(lead)
    found: list[Hit] = []
    for kind, detect in _DETECTORS.items():
        if kind not in wanted or (kind == "email" and "@" not in plain) or (kind in _NUMERIC and not numeric):
            continue
        for start, end in detect(plain):
            if 1 not in taken[start:end]:
                taken[start:end] = b"\1" * (end - start)
                found.append(Hit(start - len(lead), end - len(lead), kind))
    return sorted(found)
