"""Texts: whether what a reviewer sees is what the model reads, and what everybody may see.

No hidden characters, no look-alikes, no credentials. Every text and every name of the document is looked at, also those
inside the schemas.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from unitools.checks.credentials import find_credential
from unitools.checks.findings import declare_rule, walk_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding, Path
    from unitools.manifest import Manifest

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
CONTROL = re.compile("[\x01-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ue000-\uf8ff\U000f0000-\U0010ffff]")
EMOJI_STYLE, JOINER, NON_JOINER = "\ufe0f", "\u200d", "\u200c"
# Letters that look like Latin ones, and styled copies of the alphabet. A word that mixes them with Latin is a disguise.
LOOKALIKE = frozenset("АВЕЅІЈКМНОРСТУХЗаеорсухіјѕһԁԛԝɡαοριυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")
STYLED = re.compile("[\U0001d400-\U0001d7ff\U0001f130-\U0001f189]")

HIDDEN = declare_rule(
    "text.invisible", "Texts hold no invisible characters: a model reads what a reviewer cannot see.", "Remove it."
)
CONTROLS = declare_rule("text.control", "Texts hold no control characters but line feed and tab.", "Remove it.")
CONFUSABLE = declare_rule(
    "text.confusable",
    "Words are of one alphabet: look-alike letters make two names out of what looks like one.",
    "Write the word in one alphabet.",
)
SECRET = declare_rule(
    "text.secret",
    "A manifest holds no key, token or password: everybody who may see the tool reads it.",
    "Take it back where it was issued, and name it under secrets.",
)


def walk_texts(document: Any) -> Iterator[tuple[Path, str]]:
    """Every text and every name, with the path of what it names."""
    for path, value in walk_document(document):
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            for name in value:
                yield (*path, name), name


def find_hidden_character(text: str) -> tuple[int, str] | None:
    """The first invisible character that is not part of an emoji or of a script that joins its letters by one."""
    for match in INVISIBLE.finditer(text):
        place, sign = match.start(), match[0]
        before = text[place - 1 : place]
        after = text[place + 1 : place + 2]
        emoji = bool(before) and (
            unicodedata.category(before) in ("So", "Sk") or before in "#*0123456789\u203c\u2049\u2194"
        )
        if sign == EMOJI_STYLE and emoji:
            continue
        if sign == JOINER and (emoji or before == EMOJI_STYLE) and after and unicodedata.category(after) == "So":
            continue
        if sign in (JOINER, NON_JOINER) and _joins(before) and _joins(after):
            continue
        return place, sign
    return None


def _joins(sign: str) -> bool:
    """Arabic and the scripts of India, where joiners are spelling."""
    return bool(sign) and "\u0600" <= sign <= "\u0dff" and unicodedata.category(sign)[0] in "LM"


def find_disguised_letter(text: str) -> tuple[int, str] | None:
    """The first letter that only looks Latin, in a word that has Latin letters as well, or of a styled alphabet."""
    if text.isascii():
        return None
    if styled := STYLED.search(text):
        return styled.start(), styled[0]
    for word in re.finditer(r"\w+", text):
        place = next((place for place, sign in enumerate(word[0]) if sign in LOOKALIKE), None)
        if place is not None and re.search("[A-Za-z]", word[0]):
            return word.start() + place, word[0][place]
    return None


def _at(place: int, sign: str) -> str:
    return f"U+{ord(sign):04X} at character {place + 1}"


def check_characters(manifest: Manifest) -> Iterator[ManifestFinding]:
    for path, text in walk_texts(manifest.document):
        if found := find_hidden_character(text):
            yield HIDDEN.at(path, f"The text holds the invisible character {_at(*found)}.")
        if control := CONTROL.search(text):
            yield CONTROLS.at(path, f"The text holds the control character {_at(control.start(), control[0])}.")
        if disguised := find_disguised_letter(text):
            yield CONFUSABLE.at(path, f"The text holds a letter that only looks Latin: {_at(*disguised)}.")


def check_credentials(manifest: Manifest) -> Iterator[ManifestFinding]:
    for path, text in walk_texts(manifest.document):
        if kind := find_credential(text):
            yield SECRET.at(path, f"The text holds what looks like {kind}.")
