"""The processes of `make test`: is what they share out there, and does each test run in one of them?"""

from __future__ import annotations

from pathlib import Path

from scripts.provision.tests import BOXES, HUBS, ONLY_WITH_POSTGRESQL, ONLY_WITH_SQLITE

ROOT = Path(__file__).resolve().parents[3]


def test_every_place_that_is_named_is_there() -> None:
    named = (*ONLY_WITH_POSTGRESQL, *ONLY_WITH_SQLITE, *HUBS, *BOXES)

    assert [each for each in named if not (ROOT / each).exists()] == []


def test_no_test_is_left_out_of_both_databases() -> None:
    assert set(ONLY_WITH_POSTGRESQL) & set(ONLY_WITH_SQLITE) == set()
    assert [
        each for each in (*ONLY_WITH_POSTGRESQL, *ONLY_WITH_SQLITE) if not each.startswith("tests/integration/")
    ] == []
