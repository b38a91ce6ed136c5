"""OpenAPI texts: what of a text of somebody else's may stand before a model.

A reviewer has to see what a model sees. A description is taken without what nobody sees, and cut where it is too long; one that holds
a credential, disguised letters or words that steer a model is left out. A name is taken as it is or not at all: another name would be
another thing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from unitools.checks.credentials import find_credential
from unitools.checks.prompt_injection import STEERS, normalize_text
from unitools.checks.texts import CONTROL, find_disguised_letter, find_hidden_character

MAX_TEXT_CHARS = 4000


def clean_text(said: Any, longest: int = MAX_TEXT_CHARS) -> tuple[str, str]:
    """The text as it may be shown, and why it is not as it was; both may be empty."""
    return _clean(said[: 4 * longest + 1], longest) if isinstance(said, str) else ("", "")


@lru_cache(maxsize=4_000)  # each keeps its text in the process
def _clean(said: str, longest: int) -> tuple[str, str]:
    text, why = said[: 4 * longest].replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ").strip(), ""
    while found := find_hidden_character(text):
        text = text.replace(found[1], "")
        why = f"A text held U+{ord(found[1]):04X}, which nobody sees; it is taken without."
    if CONTROL.search(text) or "\0" in text:
        text = CONTROL.sub("", text).replace("\0", "")
        why = "A text held control characters; it is taken without."
    text = text.encode("utf-8", "ignore").decode()
    if len(text) > longest or len(said) > 4 * longest:
        text = text[: longest - 1].rstrip() + "…"
        why = f"A text has more than {longest:,} characters; it is cut."
    if disguised := find_disguised_letter(text):
        return "", f"A text is left out: it holds a letter that only looks Latin (U+{ord(disguised[1]):04X})."
    if kind := find_credential(text):
        return "", f"A text is left out: it holds what looks like {kind}."
    if any(each.search(normalize_text(text)) for each in STEERS):
        return "", "A text is left out: it speaks to a model about its instructions."
    return text, why


@lru_cache(maxsize=20_000)
def find_name_problem(name: str) -> str:
    """Why a name or a value cannot be taken over; empty: it can."""
    if found := find_hidden_character(name):
        return f"A name holds U+{ord(found[1]):04X}, which nobody sees."
    if CONTROL.search(name) or re.search("[\x00\ud800-\udfff]", name):
        return "A name holds a control character."
    if found := find_disguised_letter(name):
        return f"A name holds a letter that only looks Latin (U+{ord(found[1]):04X})."
    if kind := find_credential(name):
        return f"A name holds what looks like {kind}."
    return ""
