"""The glossary: each term once, in order, with one sentence and a place that is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")


def list_terms() -> list[tuple[str, str, str]]:
    rows = [line.split("|") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    return [(row[1].strip(), row[2].strip(), row[3].strip()) for row in rows[1:]]


def test_the_glossary_has_each_term_once_in_the_order_of_the_alphabet() -> None:
    terms = [term.lower() for term, _, _ in list_terms()]

    assert len(terms) > 60
    assert terms == sorted(set(terms))


def test_every_term_of_the_glossary_has_one_sentence_and_a_place_that_is_there() -> None:
    for term, sentence, place in list_terms():
        assert sentence.endswith(".") and ". " not in sentence, term
        paths = re.findall(r"`([^`]+)`", place)
        assert paths and all((ROOT / path).exists() for path in paths), term
