"""Durability: figures are taken on a PostgreSQL whose commits wait for the disk, and on no other."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bench.figures import ROOT, CannotMeasure
from bench.hubs import describe_database

# A process of its own, as `make bench` is: what it starts, it alone ends.
MEASURED = """
from bench.hubs import describe_database
from scripts.provision import services
with services.run_services(durable=True) as env:
    print(describe_database(env["TOOLHUB_TEST_DATABASE_URL"]))
"""


def test_a_server_that_does_not_wait_for_its_disk_is_not_measured() -> None:
    with pytest.raises(
        CannotMeasure, match=r"fsync = off, synchronous_commit = off, full_page_writes = off.*make bench"
    ):
        describe_database(os.environ["TOOLHUB_TEST_DATABASE_URL"])


def test_what_is_measured_runs_on_a_server_that_waits_for_its_disk_and_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", MEASURED], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "fsync on, synchronous_commit on, full_page_writes on" in done.stdout
