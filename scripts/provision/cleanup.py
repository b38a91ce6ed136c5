"""Cleanup: what `make run` and `make test` left on this machine, and how it goes away.

The Docker engine and the installed packages stay: others may use them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from sandbox.image import KINDS, PYTHON, REPOSITORY
from scripts.provision import services
from scripts.provision.console import ROOT, SetupError, print_line, query_program
from scripts.provision.image import BASE_REPOSITORY

FOLDERS = (
    ".testenv",
    ".venv",
    "var",
    "frontend/node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".import_linter_cache",
    ".hypothesis",
)


def clean_checkout() -> None:
    _check_nothing_runs()
    if services.get_runs_folder().is_dir():
        for folder in services.get_runs_folder().iterdir():
            services.stop_and_remove(folder)
        services.get_runs_folder().rmdir()
        print_line(f"removed {services.get_runs_folder()}")
    for name in _images():
        # Not by force: a hub of another checkout may be running a tool in it.
        removed = query_program(["docker", "image", "rm", name], timeout_s=60) is not None
        print_line(f"removed image {name}" if removed else f"kept image {name}: a container uses it")
    for name in FOLDERS:
        if (folder := ROOT / name).exists():
            shutil.rmtree(folder)
            print_line(f"removed {name}/")


def _images() -> list[str]:
    listed = ""
    kinds = (f"{REPOSITORY}-{kind}" for kind in (*KINDS, "layer") if kind != PYTHON)
    for repository in (*kinds, REPOSITORY, BASE_REPOSITORY):
        listed += query_program(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", repository]) or ""
    return listed.split()


def _check_nothing_runs() -> None:
    if tests := services.find_test_runs():
        raise SetupError(
            f"Tests of this checkout are running (process {tests[0]}).", "Wait for them, or end them with Ctrl-C."
        )
    lock = Path(os.environ.get("TOOLHUB_DATA_DIR", ROOT / "var")) / "hub.lock"
    if not lock.exists():
        return
    with lock.open("r+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SetupError(
                f"A hub runs on this checkout ({handle.read().strip()}).",
                "End it with Ctrl-C in its window, then clean.",
            ) from None
