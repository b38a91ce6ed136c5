"""Letters: which page is opened by G and a letter, of those that somebody may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from toolhub.addresses import collect_navigation

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    from kernel.principal import Principal

COOKIE, OFF = "shortcuts", "off"
# By the key of the entry of the navigation.
LETTERS = {
    "overview": "o",
    "invocations": "i",
    "approvals": "a",
    "tools": "t",
    "reviews": "r",
    "evidence": "e",
    "halts": "h",
    "grants": "g",
    "policies": "p",
    "budgets": "b",
    "agents": "n",
    "people": "u",
}


@dataclass(frozen=True, slots=True)
class LetterLink:
    letter: str
    label: _StrPromise
    url: str


def list_letters(by: Principal) -> list[LetterLink]:
    return [
        LetterLink(LETTERS[entry.key], entry.label, reverse(entry.address))
        for _, section in collect_navigation()
        for entry in section
        if entry.key in LETTERS and by.may(entry.permission)
    ]
