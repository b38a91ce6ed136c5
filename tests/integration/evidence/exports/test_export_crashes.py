"""Export crashes: does an export double or lose a line when keepers are killed in the middle of it?

Whole processes on a database of their own, each killed by SIGKILL at one point; the next one goes on where it was.
"""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from kernel.fault_injection import EXPORTING

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


def process(database: str, folder: Path, *words: str, faults: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"TOOLHUB_FAULTS": faults}
    command = [sys.executable, "-m", "tests.support.exporter_process", database, str(folder), *words]
    return subprocess.run(command, cwd=settings.BASE_DIR, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("times", [1, pytest.param(3, marks=pytest.mark.long)])
def test_exports_of_keepers_that_were_killed_hold_each_fact_once(
    times: int, begun_database: str, tmp_path: Path
) -> None:
    made = process(begun_database, tmp_path, "migrate", "write", "ask")
    assert made.returncode == 0, made.stderr
    points = list(EXPORTING) * times

    ended = [process(begun_database, tmp_path, "export", faults=f"{point}=kill").returncode for point in points]
    after = process(begun_database, tmp_path, "export", "check")

    assert ended == [-signal.SIGKILL] * len(points)
    assert after.returncode == 0, after.stderr
    states = [line.split() for line in after.stdout.splitlines()]
    assert {(format, state) for format, state, *_ in states} == {(name, "done") for name in ("jsonl", "csv", "bundle")}
    (count,) = {int(stop) for *_, stop in states}
    assert {int(rows) for *_, rows, _ in states} == {count}
    lines = [json.loads(line)["index"] for line in (tmp_path / "jsonl").read_bytes().splitlines()]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "csv").read_text(), newline="")))
    assert lines == [int(row["index"]) for row in rows] == list(range(count))
    (tmp_path / "bundle").rename(tmp_path / "bundle.zip")
    verify = [sys.executable, "-m", "evidence.verify", str(tmp_path / "bundle.zip")]
    done = subprocess.run(verify, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
