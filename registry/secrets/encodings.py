"""Secret encodings: the texts by which somebody else's answer would give a secret away.

Plain, and as values usually travel: base64 at each of the three alignments, URL and JSON escapes, hexadecimal; of a user with a
password the part that proves who is asking.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHORTEST = 6  # of a part of a secret: shorter ones stand in answers by chance


def _base64_forms(value: bytes) -> Iterator[str]:
    """How the value looks inside a longer text in base64: without the characters that its neighbours would change."""
    for before in range(3):
        text = base64.b64encode(b"\0" * before + value).decode().rstrip("=")
        first = (before * 8 + 5) // 6
        whole = (before + len(value)) * 8 // 6
        yield text[first:whole]


def list_secret_forms(value: str) -> set[str]:
    """The texts that give the value away."""
    raw = value.encode()
    found = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    for escaped in (quote(value), quote(value, safe=""), quote_plus(value)):
        found |= {escaped, _lower_escapes(escaped)}
    for text in _base64_forms(raw):
        found |= {text, text.translate(str.maketrans("+/", "-_"))}
    return found | {raw.hex(), raw.hex().upper()}


def _lower_escapes(text: str) -> str:
    """%2F and %2f are the same."""
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def list_texts(value: Any) -> Iterator[str]:
    """Every text and number in a JSON value, names included."""
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            stack += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            stack += each
        elif isinstance(each, str):
            yield each
        elif isinstance(each, int | float) and not isinstance(each, bool):
            yield str(each)


def find_spelled(said: Any, forms: Mapping[str, set[str]]) -> list[str]:
    """The names of the secrets that stand in a JSON value. ``forms``: those of each secret, by its name."""
    text = "\n".join(list_texts(said))
    return sorted(name for name, each in forms.items() if any(form in text for form in each))


def find_password(value: str) -> str:
    """Of ``user:password`` the part that services say back by itself; where there is no password to speak of, the user is a key."""
    user, _, password = value.partition(":")
    part = password if len(password) >= _SHORTEST else user
    return part if len(part) >= _SHORTEST else ""


def redact_secrets(text: str, secrets: Mapping[str, str]) -> str:
    return redact_forms(text, {name: list_secret_forms(value) for name, value in secrets.items()})


def redact_forms(text: str, forms: Mapping[str, set[str]]) -> str:
    """The text without the values; the longest forms first, since one may hold another."""
    pairs = [(form, name) for name, each in forms.items() for form in each]
    for form, name in sorted(pairs, key=lambda pair: -len(pair[0])):
        text = text.replace(form, f"[secret {name}]")
    return text
