"""Phone numbers: the numbers in a text that can be called.

A number in the shape of a country, when it exists in the plan of that country. One that says itself that it is a telephone number, by
its country code, by the brackets around its area or by a word before it, only has to be possible: plans change, and a number that
nobody has today is somebody's tomorrow.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import phonenumbers

from access.redaction.spans import iter_prefixes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from access.redaction.spans import Span

_BEFORE = r"(?<![0-9A-Za-z+])(?<![0-9][.\-])(?<![A-Za-z]-)"
_AFTER = r"(?=x[0-9]|[^0-9A-Za-z]|\Z)(?![.\-][0-9])(?!-[A-Za-z])"
_EXTENSION = re.compile(
    r"(?:x|,? ?(?:ext|extn|extension|durchwahl|poste|转|分机)\.? ?)[0-9]{1,6}(?![0-9A-Za-z])", re.IGNORECASE
)

INTERNATIONAL = re.compile(
    r"(?<![0-9A-Za-z+])(?<![0-9A-Fa-f][:.\-])(?:\+|00)[ ]?[1-9][0-9]{0,2}(?:[ .\-/()]{0,3}[0-9]){6,13}(?=x[0-9]|[^0-9A-Za-z]|\Z)"
)
# By country; and whether the shape alone says that it is one.
NATIONAL: tuple[tuple[str, bool, re.Pattern[str]], ...] = tuple(
    (region, says, re.compile(_BEFORE + shape + _AFTER))
    for region, says, shape in (
        ("CN", False, r"(?:86[ \-]?)?1[3-9][0-9](?:[ .\-]?[0-9]{4}){2}"),
        ("CN", False, r"(?:86[ \-])?1[3-9][0-9]{2}[ \-][0-9]{3}[ \-][0-9]{4}"),
        ("CN", False, r"(?:\(0[1-9][0-9]{1,2}\)|0[1-9][0-9]{1,2})[ \-]?[2-9][0-9]{2,3}[ \-]?[0-9]{4}"),
        ("CN", False, r"[48]00[ \-][0-9]{3,4}[ \-][0-9]{3,4}"),
        ("US", True, r"(?:1[ .\-])?\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .\-][0-9]{4}"),
        ("US", True, r"(?:1([.\-]))?[2-9][0-9]{2}([.\-])[2-9][0-9]{2}\2[0-9]{4}"),
        ("US", False, r"(?:1[ .\-])?[2-9][0-9]{2}[ .\-][2-9][0-9]{2}[ .\-][0-9]{4}"),
        ("GB", True, r"\(0[1-9][0-9]{1,4}\) ?[0-9]{3,4}[ \-]?[0-9]{3,4}"),
        ("GB", False, r"(?:\(0[1-9][0-9]{1,4}\)|0[1-9][0-9]{1,4})(?:[ \-]?[0-9]){5,9}"),
        ("DE", True, r"\(0[1-9][0-9]{1,4}\)[ /\-]?[0-9]{3,9}"),
        ("DE", False, r"0[1-9][0-9]{1,4}[ /\-][0-9]{3,9}"),
        ("FR", False, r"0[1-9]([ .\-]?)[0-9]{2}(?:\1[0-9]{2}){3}"),
    )
)
# Nothing but words may stand between one of these and its number, and not many.
WORDS = re.compile(
    r"(?:phone|mobile|\bcell\b|\btel\b|\bfax\b|whatsapp|\bcall(?:[ -]?back)?\b|\bring\b|\bdial\b|\breach me\b|\btext me\b|\bhotline\b"
    r"|telefon|\bmobil|\bhandy|rufnummer|\banruf|\brufen\b|\btél|téléphon|\bappel|\bjoindre\b|\bportable\b"
    r"|电话|手机|号码|联系方式|微信|传真|致电|拨打)[^0-9\n]{0,24}$",
    re.IGNORECASE,
)
IN_CONTEXT = re.compile(_BEFORE + r"\(?[0-9](?:[ .\-/()]{0,2}[0-9]){6,14}(?=x[0-9]|[^0-9A-Za-z]|\Z)")
_DATE = re.compile(r"[0-9]{4}([-./])[0-9]{1,2}\1[0-9]{1,2}|[0-9]{1,2}([-./])[0-9]{1,2}\2[0-9]{4}|(?:19|20)[0-9]{6}")
_REACH = 40


@lru_cache(maxsize=4096)
def _parsed(text: str, region: str | None) -> phonenumbers.PhoneNumber | None:
    try:
        return phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return None


@lru_cache(maxsize=4096)
def _exists(text: str, region: str | None) -> bool:
    number = _parsed(text, region)
    return number is not None and phonenumbers.is_valid_number(number)


@lru_cache(maxsize=4096)
def _is_possible(text: str, region: str | None) -> bool:
    number = _parsed(text, region)
    return number is not None and phonenumbers.is_possible_number(number)


def _with_extension(text: str, start: int, end: int) -> Span:
    more = _EXTENSION.match(text, end)
    return start, more.end() if more else end


def _announced(text: str, start: int) -> bool:
    return WORDS.search(text, max(0, start - _REACH), start) is not None


def _is_international(number: str, announced: bool) -> bool:
    """A number that begins with zeros may be padded with them: it needs a country of its own, or a word before it."""
    parsed = _parsed(number, None)
    if parsed is None:
        return False
    apart = not number[len(str(parsed.country_code)) + 1 :][:1].isdigit()
    if announced or apart:
        return phonenumbers.is_possible_number(parsed)
    return parsed.country_code == 86 and phonenumbers.is_valid_number(parsed)


def _international(text: str) -> Iterator[Span]:
    for match in INTERNATIONAL.finditer(text):
        for (start, end), _ in iter_prefixes(match, text, 7):
            number = text[start:end]
            if number.startswith("00"):
                if _is_international("+" + number[2:], _announced(text, start)):
                    yield _with_extension(text, start, end)
                    break
            elif _is_possible(number, None):
                yield _with_extension(text, start, end)
                break


def _national(text: str, done: list[Span]) -> Iterator[Span]:
    for region, says, pattern in NATIONAL:
        for match in pattern.finditer(text):
            if any(begin <= match.start() < end for begin, end in done):
                continue
            if says:
                yield _with_extension(text, *match.span())
                continue
            for (start, end), _ in iter_prefixes(match, text, 7):
                if _exists(text[start:end], region):
                    yield _with_extension(text, start, end)
                    break


def find_phones(text: str) -> Iterator[Span]:
    found = [*_international(text), *_announced_ones(text)]
    yield from found
    yield from _national(text, found)


def _announced_ones(text: str) -> Iterator[Span]:
    for match in IN_CONTEXT.finditer(text):
        if _announced(text, match.start()) and not _DATE.fullmatch(match[0].strip("() ")):
            yield _with_extension(text, *match.span())
