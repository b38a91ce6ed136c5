"""Modules of the bench: each still fills its database and measures what it says. Small here, and no figure is judged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import ROOT
from bench.hubs import make_own_database, measure_in, measure_on_postgresql, measure_on_sqlite
from bench.year import FOUND, judge_ages

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def environment_of_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of the tests are not those of the hub that a module measures."""
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("bench.preflight", ["20"]),
        ("bench.discovery", ["1"]),
        ("bench.policy", ["500"]),
        ("bench.evidence_pairs", ["1"]),
    ],
)
def test_a_module_measures_on_a_database_of_its_own(module: str, words: list[str]) -> None:
    found = measure_on_postgresql(os.environ["TOOLHUB_TEST_DATABASE_URL"], module, *words)

    assert found
    assert all(isinstance(figure, (int, float)) for figures in found.values() for figure in figures)


@pytest.mark.parametrize(("module", "words"), [("bench.preflight", ["20"]), ("bench.redaction", [])])
def test_a_module_measures_on_sqlite(module: str, words: list[str]) -> None:
    assert all(figures for figures in measure_on_sqlite(module, *words).values())


def test_a_year_is_filled_and_asked() -> None:
    with make_own_database(os.environ["TOOLHUB_TEST_DATABASE_URL"]) as env:
        file = str(Path(env["TOOLHUB_DATA_DIR"], "asked.pickle"))
        measure_in(env, "bench.evidence_year", "fill", "4000", "60", file)
        found = measure_in(env, "bench.evidence_year", "ask", file, "1")

    assert all(verdict == "reached" for _, _, verdict in judge_ages(4000, found, found))  # as long as itself
    assert all(ms > 0 for name, each in found.items() for ms in each if not name.endswith(FOUND))


def test_the_command_line_of_the_bench_is_there() -> None:
    done = subprocess.run([sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
