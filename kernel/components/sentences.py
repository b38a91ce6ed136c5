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
from django.utils.translation import get_language, gettext, pgettext_lazy

from kernel.components.labels import CAPABILITY_BOUND, STATUS
from kernel.components.manifest_words import DATA_CLASS, EFFECT, RISK_LEVEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.components.labels import Text
    from kernel.problems import Problem

SOURCE = "en"  # the language that services speak
NOUN: dict[str, Text] = {
    "permission": pgettext_lazy("noun in a sentence", "permission"),
    "scope": pgettext_lazy("noun in a sentence", "scope"),
    "key": pgettext_lazy("noun in a sentence", "key"),
    "token": pgettext_lazy("noun in a sentence", "token"),
    "tool": pgettext_lazy("noun in a sentence", "tool"),
    "agent": pgettext_lazy("noun in a sentence", "agent"),
    "person": pgettext_lazy("noun in a sentence", "person"),
    "tenant": pgettext_lazy("noun in a sentence", "tenant"),
}
# Values that are words of the hub, by their place in a sentence. All other values are names and figures, which stay as they are: an
# agent may be called "key".
WORD_VALUES: dict[str, dict[int, Mapping[str, Text]]] = {
    "{0} does not hold the {1} {2}.": {1: NOUN},
    "Use a {0} with the scope {1}, or ask for one.": {0: NOUN},
    "There is no permission {0} on a {1}.": {1: NOUN},
    "Name one {0} by its id, {1}_….": {0: NOUN},
    "Ask an operator to widen the {0} by {1}.": {0: CAPABILITY_BOUND},
    "{0} needs {1}, which the {2} does not allow.": {2: CAPABILITY_BOUND},
    "Whose files are kept is another: {0} instead of {1}.": {0: NOUN, 1: NOUN},
    "The side effect is {0} instead of {1}, which is more or something else.": {0: EFFECT, 1: EFFECT},
    "The side effect is {0} instead of {1}; grants by effect reach it.": {0: EFFECT, 1: EFFECT},
    "The safety class is {0} instead of {1}.": {0: RISK_LEVEL, 1: RISK_LEVEL},
    "The safety class is {0} instead of {1}; it is reviewed and watched less.": {0: RISK_LEVEL, 1: RISK_LEVEL},
    "The tool touches a further kind of data: {0}.": {0: DATA_CLASS},
    "The tool no longer touches {0} data.": {0: DATA_CLASS},
}


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


def _translate_value(value: str, words: Mapping[str, Text]) -> str:
    """A state by its label, one of the words of this place, a sentence within a sentence; everything else as it is."""
    if value in words:
        return str(words[value])
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
            words = WORD_VALUES.get(template, {})
            values = (_translate_value(value, words.get(place, {})) for place, value in enumerate(found.groups()))
            return translated.format(*values)
    return text


def describe_problem(problem: Problem) -> str:
    """What was refused, and what would help."""
    detail = translate_sentence(problem.detail)
    gap = "" if detail.endswith("。") else " "  # Chinese writes none between sentences
    return f"{detail}{gap}{translate_sentence(problem.remedy)}".strip()
