"""Terminal: how a command of ``unitools`` ends.

Exit status: 0 good, 1 the command could not run, 2 it ran, and the answer is no.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from unitools.strict_json import STRICT, JsonRefused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from unitools.changes import ManifestChange

GOOD, COULD_NOT_RUN, NO = 0, 1, 2
URL_VARIABLE = "TOOLHUB_URL"
DISTRIBUTION = "toolhub-unitools"  # `unitools` is another project's on PyPI


class CannotRun(Exception):
    """The command has nothing to work on."""


class Parser(argparse.ArgumentParser):
    """2 is an answer here, so a wrong command line exits with 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(COULD_NOT_RUN, f"{self.prog}: {message}\n")


def read_json(path: Path) -> Any:
    """What stands in a JSON file; ``CannotRun`` with a sentence when nothing does."""
    try:
        return STRICT.read(path.read_bytes())
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}.") from error
    except JsonRefused as refusal:
        raise CannotRun(f"{path} cannot be read: {str(refusal)[:200]}") from refusal


def print_changes(changes: Sequence[ManifestChange] | None) -> None:
    """What a draft changes in the manifest that was there; None: there was none."""
    for change in changes or ():
        print_lines(
            f"  {change.bump:5}  {change.risk:6}  {change.kind}  {format_shown(change.pointer)}",
            f"      {format_shown(change.message)}",
        )
    if changes is not None and not changes:
        print_lines("  nothing changed")


def format_install_hint(extra: str) -> str:
    """How to get more of the SDK: from the hub, whose index gives it and sends on to PyPI for everything else."""
    hub = os.environ.get(URL_VARIABLE, "").rstrip("/") or "https://YOUR-HUB"
    return f'pip install --index-url {hub}/sdk/ "{DISTRIBUTION}[{extra}]"'


def format_shown(text: str, longest: int = 100) -> str:
    """Texts of others, as a terminal may have them."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[:longest])


def print_lines(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
