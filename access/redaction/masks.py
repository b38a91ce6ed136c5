"""Masks: what a value looks like when it may not be shown.

A mask keeps the shape, so that a person recognises what it was and can tell two of them apart: ``j***@e***.com``, ``138****5678``.
What is redacted says only of which kind it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from access.redaction.detectors import find_hits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

HIDDEN = "***"
REDACTED = "[redacted]"
_REGION = re.compile(r"(?:[一-龥]{2,6}?(?:省|自治区))?(?:[一-龥]{2,6}?市)?(?:[一-龥]{1,6}?(?:(?<!小)区|县))?")


def _keep_last(text: str, keep: int, first: int = 0) -> str:
    """Letters and digits become stars, but for the first and the last few; what stands between them stays."""
    places = [index for index, char in enumerate(text) if char.isalnum()]
    shown = set(places[:first]) | set(places[max(first, len(places) - keep) :])
    return "".join(char if index in shown or not char.isalnum() else "*" for index, char in enumerate(text))


def _email(text: str) -> str:
    local, _, domain = text.rpartition("@")
    name, _, top = domain.rpartition(".")
    return f"{local[:1]}{HIDDEN}@{name[:1]}{HIDDEN}.{top}"


def _phone(text: str) -> str:
    digits = sum(char.isdigit() for char in text)
    return _keep_last(text, 4 if digits > 8 else 2, first=3 if digits == 11 and text[0] == "1" else 0)


def _ip(text: str) -> str:
    if ":" in text:
        return text.split(":")[0] + ":" + HIDDEN
    return ".".join([*text.split(".")[:2], "*", "*"])


def _address(text: str) -> str:
    """Where about: a region or the kind of way stays, the name and the number do not."""
    if text.isascii():
        return " ".join(
            word if word.isalpha() and len(word) == 2 and word.isupper() else word[:1] + HIDDEN for word in text.split()
        )
    region = _REGION.match(text)
    return (region[0] if region else "") + HIDDEN


_MASKS: dict[str, Callable[[str], str]] = {
    "email": _email,
    "phone": _phone,
    "ip": _ip,
    "address": _address,
}


def masked_hit(text: str, kind: str) -> str:
    if kind == "secret":
        return HIDDEN
    return _MASKS[kind](text) if kind in _MASKS else _keep_last(text, 4)


def redacted_hit(_text: str, kind: str) -> str:
    return f"[redacted:{kind}]"


def changed_text(
    text: str, kinds: Iterable[str], change: Callable[[str, str], str], *, name: str = ""
) -> tuple[str, dict[str, int]]:
    """The text with each hit changed, and how many there were of each kind. ``name``: of the property that holds it."""
    hits = find_hits(text, kinds, name=name)
    if not hits:
        return text, {}
    counts: dict[str, int] = {}
    pieces, place = [], 0
    for hit in hits:
        pieces += [text[place : hit.start], change(text[hit.start : hit.end], hit.kind)]
        place = hit.end
        counts[hit.kind] = counts.get(hit.kind, 0) + 1
    return "".join([*pieces, text[place:]]), counts


def digit_text(value: Any) -> str | None:
    """A number as whoever reads it sees it, where it can be a number of somebody: whole ones, also when they came as floats."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return str(int(value)) if isinstance(value, int) or value.is_integer() else None


def number_duplicates(names: Sequence[str]) -> list[str]:
    """Names of properties that have become the same are numbered, so that none is lost."""
    taken: set[str] = set()
    found = []
    for name in names:
        new, number = name, 1
        while new in taken:
            number += 1
            new = f"{name} ({number})"
        taken.add(new)
        found.append(new)
    return found


def masked_whole(value: Any) -> Any:
    """A value of which nothing may be recognised but its shape: names and lengths of lists stay, what is in them does not."""
    if isinstance(value, dict):
        return {name: masked_whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [masked_whole(each) for each in value]
    if value is None:
        return None
    if not isinstance(value, str):
        return HIDDEN
    hits = find_hits(value)
    if len(hits) == 1 and (hits[0].start, hits[0].end) == (0, len(value)):
        return masked_hit(value, hits[0].kind)
    return value[:1] + HIDDEN if len(value) > 3 else HIDDEN
