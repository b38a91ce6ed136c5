"""Requirement marks: does each stand on the test that shows it, and name a row that is there?"""

from __future__ import annotations

from scripts.requirements import ROOT, find_mistakes, parse_requirements, read_marks


def test_every_mark_stands_on_a_test_and_names_a_requirement_once() -> None:
    known = parse_requirements((ROOT / "docs" / "reference" / "requirements.md").read_text(encoding="utf-8"))

    assert find_mistakes(read_marks(), known) == []
