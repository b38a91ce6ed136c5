"""Words of problems: which reasons somebody means who remembers what a problem said, in the language in which they read it.

Looked for in the catalogue: what a tool said itself is sealed with the call, and no search opens it.
"""

from __future__ import annotations

import re
from functools import cache

from django.utils.translation import get_language, gettext, override

from kernel.problems import collect_problem_classes

_WORD = re.compile(r"[\w.]+")
SHORTEST = 3  # letters of a word that is looked for in sentences


def list_reasons() -> list[str]:
    return list(_load_titles("en"))


def find_reasons(text: str, *, starts: bool = False) -> list[str]:
    """Reasons that are ``text``, and those of problems that have all its words. ``starts``: it is the beginning of one."""
    upper = text.upper()
    named = {reason for reason in list_reasons() if reason == upper or (starts and reason.startswith(upper))}
    return sorted(named | _find_by_title(text, starts=starts))


def _find_by_title(text: str, *, starts: bool) -> set[str]:
    words = _WORD.findall(text.casefold())
    if not words or (max(map(len, words)) < SHORTEST and text.isascii()):
        return set()
    return {
        reason
        for reason, title in _load_titles(get_language() or "en").items()
        if all(_stands_in(word, title, starts=starts) for word in words)
    }


def _stands_in(word: str, title: tuple[str, frozenset[str]], *, starts: bool) -> bool:
    """Chinese has no spaces between words: there a part of the sentence is a word."""
    text, words = title
    if not word.isascii():
        return word in text
    return any(each.startswith(word) for each in words) if starts else word in words


@cache
def _load_titles(language: str) -> dict[str, tuple[str, frozenset[str]]]:
    """By reason: what its problem says, in English and in ``language``."""
    found = {}
    for cls in collect_problem_classes():
        if not cls.reason:
            continue
        with override(language):
            text = f"{cls.title()} {gettext(cls.title())}".casefold()
        found[cls.reason] = (text, frozenset(_WORD.findall(text.replace(".", " "))))
    return found
