"""Sentences: what services say when they refuse, in the language of the page that shows it.

Services say it in English, to programs and people alike, with the values in place. A page looks the sentence up as it stands, and else
among those that have values (``locale/sentences.json``, which scripts/messages.py writes), which are put into its translation.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.translation import get_language, gettext

from kernel.components.labels import STATUS

if TYPE_CHECKING:
    from kernel.problems import Problem

SOURCE = "en"  # the language that services speak


def _count_letters(text: str) -> int:
    return sum(len(literal) for literal, *_ in Formatter().parse(text))


def _compile(text: str) -> re.Pattern[str]:
    parts = (
        re.escape(literal) + ("(.*?)" if field is not None else "") for literal, field, *_ in Formatter().parse(text)
    )
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(1)
def _load_templates() -> list[tuple[re.Pattern[str], str]]:
    """Those that say most themselves come first."""
    texts = json.loads((settings.LOCALE_PATHS[0] / "sentences.json").read_text(encoding="utf-8"))
    return [(_compile(text), text) for text in sorted(texts, key=_count_letters, reverse=True)]


def _translate_value(value: str) -> str:
    """A state by its label, a sentence within a sentence; everything else as it is."""
    if value in STATUS:
        return str(STATUS[value][2])
    return translate_sentence(value) if value.endswith(".") else value


def translate_sentence(text: str) -> str:
    """The same where nobody has translated it."""
    if not text or (get_language() or SOURCE).startswith(SOURCE):
        return text
    if (whole := gettext(text)) != text:
        return whole
    for pattern, template in _load_templates():
        if (found := pattern.fullmatch(text)) and (translated := gettext(template)) != template:
            return translated.format(*map(_translate_value, found.groups()))
    return text


def describe_problem(problem: Problem) -> str:
    """What was refused, and what would help."""
    detail = translate_sentence(problem.detail)
    gap = "" if detail.endswith("。") else " "  # Chinese writes none between sentences
    return f"{detail}{gap}{translate_sentence(problem.remedy)}".strip()
