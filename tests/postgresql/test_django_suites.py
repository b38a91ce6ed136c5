"""Django's own suites: does our engine pass the tests that Django's own engine passes?

Django's suites are run twice on the same server, on its engine and on ours, and each test has to end in the same way. They come
from the source distribution of the version that our lock has, so that a newer Django brings its newer tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import peers
from scripts.provision.console import ROOT
from tests.support.django_suite import ENGINE, OUTCOMES, POOLED
from toolhub.settings import POSTGRESQL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db  # the database of the hub: its migrations make the bound role
SUITES = ("backends", "transactions", "transaction_hooks")
DJANGO = "django.db.backends.postgresql"
AT_LEAST = 300  # tests that pass; fewer would mean that something else was run
PATIENCE_S = 600
# Tests that end otherwise on our engine → why they may. What is no longer so has to go.
DIFFERENT: dict[str, str] = {}


def run_suites(engine: str, *, pooled: bool, folder: Path) -> dict[str, Any]:
    """How each test ended, and whether the engine found the role that it binds statements to."""
    tests = peers.ensure_django_tests()
    outcomes = folder / f"{engine}.json"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PYTEST_"))}
    env |= {ENGINE: engine, POOLED: "yes" if pooled else "", OUTCOMES: str(outcomes), "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "runtests.py",
        *SUITES,
        "--settings=tests.support.django_suite",
        "--parallel=1",
        "--noinput",
    ]
    done = subprocess.run(command, cwd=tests, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
    assert outcomes.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(outcomes.read_text())
    found["report"] = done.stderr
    return found


@pytest.mark.parametrize(
    "pooled",
    [pytest.param(False, marks=pytest.mark.long, id="a connection a thread"), pytest.param(True, id="a pool")],
)
def test_each_test_of_djangos_ends_as_it_does_on_djangos_engine(pooled: bool, tmp_path: Path) -> None:
    django, ours = (run_suites(engine, pooled=pooled, folder=tmp_path) for engine in (DJANGO, POSTGRESQL))

    assert ours["walls"] is True
    different = {
        test: f"{django['outcomes'].get(test)} on Django's engine, {ours['outcomes'].get(test)} on ours"
        for test in django["outcomes"].keys() | ours["outcomes"].keys()
        if django["outcomes"].get(test) != ours["outcomes"].get(test)
    }
    assert different.keys() == DIFFERENT.keys(), f"{json.dumps(different, indent=1)}\n{ours['report'][-8000:]}"
    outcomes = list(ours["outcomes"].values())
    assert outcomes.count("passed") >= AT_LEAST
    assert set(django["outcomes"].values()) <= {"passed", "skipped", "expectedFailures"}, django["report"][-8000:]
