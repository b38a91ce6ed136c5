"""Sealer crashes: does a keeper that is killed anywhere lose a fact, or seal one twice?

Whole processes on a database of their own: each is killed by SIGKILL at one point, and the next one goes on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from kernel.fault_injection import SEALING

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def begun(database: str, folder: Path, *words: str, faults: str = "") -> subprocess.Popen[str]:
    env = os.environ | {"TOOLHUB_FAULTS": faults}
    command = [sys.executable, "-m", "tests.support.keeper_process", database, str(folder), *words]
    return subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(running: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    with running:
        out, err = running.communicate(timeout=120)
    return subprocess.CompletedProcess(running.args, running.returncode, out, err)


def process(database: str, folder: Path, *words: str, faults: str = "") -> subprocess.CompletedProcess[str]:
    return ended(begun(database, folder, *words, faults=faults))


@pytest.mark.req("TOOLS-18")
def test_whoever_comes_after_a_keeper_that_was_killed_seals_each_fact_once(begun_database: str, tmp_path: Path) -> None:
    made = process(begun_database, tmp_path, "migrate", "write", "seal")
    assert made.returncode == 0, made.stderr
    killed = {}

    for point in SEALING:
        killed[point] = process(begun_database, tmp_path, "write", "seal", faults=f"{point}=kill")
    after = process(begun_database, tmp_path, "write", "seal", "check")

    assert {point: done.returncode for point, done in killed.items()} == dict.fromkeys(SEALING, -signal.SIGKILL)
    assert after.returncode == 0, after.stderr
    facts = 33 * (2 + len(SEALING))
    assert after.stdout.strip() == f"{facts} facts, {facts} leaves, 0 pending"
