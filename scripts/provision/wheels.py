"""Wheels: whether those that the hub serves at ``/sdk/`` are those of these sources.

They are built where the hub is set up (or its image is made), from the folders beside, with nothing from a network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.provision.console import ROOT, announce_step, run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

WHEELS = ROOT / "packaging" / "wheels"
PROJECTS = {  # folder of packaging/ → what it packs
    "unitools": ("unitools",),
    "toolhub-llm": ("llm", "kernel"),
    "toolhub-verify": ("evidence/verify",),
}
LONG_AGO = "315532800"  # 1980: the same sources give the same bytes
_STAMP = "built-from"


def ensure_wheels(python: Path) -> None:
    """``python`` has setuptools (requirements.lock)."""
    wanted = _digest()
    stamp = WHEELS / _STAMP
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    with (
        announce_step("building the wheels that the hub serves", "wheels that the hub serves built"),
        tempfile.TemporaryDirectory() as folder,
    ):
        made = build_wheels(python, Path(folder))
        WHEELS.mkdir(exist_ok=True)
        for old in WHEELS.glob("*.whl"):
            old.unlink()
        for wheel in made:
            shutil.copy(wheel, WHEELS)
        stamp.write_text(wanted)


def build_wheels(python: Path, folder: Path) -> list[Path]:
    """From a copy: setuptools leaves a folder behind, and packs again what it finds there."""
    for project, packed in PROJECTS.items():
        for part in (f"packaging/{project}", *packed):
            shutil.copytree(
                ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "build"), dirs_exist_ok=True
            )
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "--no-index"]
    projects = [str(folder / "packaging" / project) for project in PROJECTS]
    run_program(
        [*pip, "--no-build-isolation", "-w", str(folder / "made"), *projects],
        env=os.environ | {"SOURCE_DATE_EPOCH": LONG_AGO},
    )
    return sorted((folder / "made").glob("*.whl"))


def _digest() -> str:
    said = hashlib.sha256()
    for path in sorted(_sources()):
        said.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return said.hexdigest()


def _sources() -> Iterator[Path]:
    for project, packed in PROJECTS.items():
        for folder in (ROOT / "packaging" / project, *(ROOT / each for each in packed)):
            for path in folder.rglob("*"):
                if path.is_file() and not {"__pycache__", "build"} & set(path.parts):
                    yield path
