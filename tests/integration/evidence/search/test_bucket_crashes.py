"""Bucket crashes: does a keeper that is killed while it puts buckets together lose a tag, or write one twice?

Whole processes on a database of their own: each is killed by SIGKILL at one point, and the next one goes on.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from kernel.fault_injection import MERGING
from tests.integration.evidence.log.test_sealer_crashes import process

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-18")
def test_whoever_comes_after_a_keeper_that_was_killed_has_each_tag_once(begun_database: str, tmp_path: Path) -> None:
    made = process(begun_database, tmp_path, "migrate", "write", "seal", "index")
    assert made.returncode == 0, made.stderr
    killed = {}

    for point in MERGING:
        killed[point] = process(begun_database, tmp_path, "write", "seal", "index", faults=f"{point}=kill")
    halfway = process(begun_database, tmp_path, "find")
    after = process(begun_database, tmp_path, "write", "seal", "index", "find")

    assert {point: done.returncode for point, done in killed.items()} == dict.fromkeys(MERGING, -signal.SIGKILL)
    assert (halfway.returncode, after.returncode) == (0, 0), halfway.stderr + after.stderr
    assert ", 0 wrong, " in halfway.stdout
    assert after.stdout.strip() == f"{33 * (2 + len(MERGING))} leaves, 0 wrong, level 4"
