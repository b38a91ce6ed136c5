"""Benchmarks: they start from a shell that names no settings, as `make bench` starts them."""

from __future__ import annotations

import os
import subprocess
import sys

from scripts.provision.console import ROOT


def test_they_start_where_no_settings_are_named() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "TOOLHUB_"))}

    told = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, env=plain, capture_output=True, text=True
    )

    assert (told.returncode, "--only" in told.stdout) == (0, True), told.stderr
