"""Command ``unitools lock requirements.txt``: what stands under a manifest's ``dependency_lock``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from unitools.command.terminal import GOOD, CannotRun, print_lines
from unitools.dependency_locks import read_lock_lines

if TYPE_CHECKING:
    import argparse


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("requirements", type=Path, metavar="requirements.txt")


def run(options: argparse.Namespace) -> int:
    try:
        lines = read_lock_lines(options.requirements.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRun(f"{options.requirements} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CannotRun(
            f"{options.requirements}: {error} Make it with pip-compile or uv pip compile, --generate-hashes."
        ) from error
    print_lines(json.dumps(lines, indent=2))
    return GOOD
