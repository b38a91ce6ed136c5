"""Environments with wheels of packaging/ in them, and of others what is named; all from what is installed here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.provision.wheels import PROJECTS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
QUIET = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


def read_name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0]


def find_closure(names: Iterable[str]) -> set[str]:
    """These distributions and what they need, without extras, as they are installed here."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            needed = [each for each in requires(name) or () if "extra ==" not in each and "python_version" not in each]
            waiting += [read_name(each) for each in needed]
    return found


def install_wheels(folder: Path, projects: Iterable[str], needed: Iterable[str], *, extra: str = "") -> Path:
    """The Python of an environment with these projects of packaging/, ``extra`` of the last, and copies of the others."""
    projects = list(projects)
    for project in projects:
        for part in (f"packaging/{project}", *PROJECTS[project]):
            ignored = shutil.ignore_patterns("__pycache__", "build")
            shutil.copytree(ROOT / part, folder / "source" / part, ignore=ignored, dirs_exist_ok=True)
    pip: list[str | Path] = [sys.executable, "-m", "pip"]
    env = os.environ | QUIET
    wheel = [*pip, "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder / "made"]
    subprocess.run([*wheel, *(folder / "source/packaging" / each for each in projects)], check=True, env=env)
    venv.create(folder / "venv", with_pip=False)
    site = next((folder / "venv/lib").glob("python*/site-packages"))
    for name in needed:
        installed = distribution(name)
        for file in installed.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(installed.locate_file(file)), site / file)
    built = [next((folder / "made").glob(f"*{project.removeprefix('toolhub-')}-*.whl")) for project in projects]
    wanted = [*built[:-1], f"{built[-1]}[{extra}]" if extra else built[-1]]
    python = folder / "venv/bin/python"
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-index", *wanted], check=True, env=env)
    return python
