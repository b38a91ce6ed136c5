"""Documented alarms: does the page on looking after the log say of each alarm what it means and what to do?"""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils.translation import override

from evidence.integrity.alarms import TITLES

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/look-after-the-log.md"


@pytest.mark.parametrize("kind", TITLES)
def test_each_alarm_stands_in_the_table_with_its_meaning_and_its_cure(kind: str) -> None:
    with override("en"):
        title = str(TITLES[kind])
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text().splitlines()
        if line[:1] == "|"
    ]

    [row] = [row for row in rows if row[0] == title]
    assert len(row) == 3
    assert all(row)
