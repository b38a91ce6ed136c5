"""Wheels: how packages of others are put into a folder of this machine, to be looked at."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from unitools.command.terminal import CannotRun, format_shown
from unitools.dependency_locks import format_constraint

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

INSTALL_WITHIN_S = 600


def install_wheels(requirements: Sequence[str], constraints: Sequence[str], site: Path) -> None:
    """Nothing of a package is run: what has no wheel is refused."""
    named = ", ".join(requirements)
    listed = site.with_name("constraints.txt")
    listed.write_text("".join(f"{format_constraint(each)}\n" for each in constraints))
    command = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", "--target", str(site), "--constraint", str(listed), "--", *requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"pip did not install {named} within {INSTALL_WITHIN_S} seconds.") from None
    if done.returncode:
        said = [format_shown(line) for line in done.stderr.splitlines() if line.startswith("ERROR:")] or [
            "pip is not here."
        ]
        raise CannotRun("\n".join([f"{named} cannot be installed from wheels:", *said[-3:]]))
