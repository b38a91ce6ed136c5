"""Dotenv: the settings in the file beside the code, so that all who start something here have the same ones.

`make run` reads it before there is a virtual environment, the hub's own processes when they read their settings. What the
environment says itself comes first.
"""

from __future__ import annotations

import os
from pathlib import Path

NAMED = "TOOLHUB_ENV_FILE"


def read_dotenv(root: Path) -> dict[str, str]:
    """``NAME=value`` lines of ``.env`` in ``root``, if it is there, or of the file that TOOLHUB_ENV_FILE names (empty: none).

    ``ValueError`` with a sentence when it cannot be read.
    """
    named = os.environ.get(NAMED)
    file = root / ".env" if named is None else Path(named)
    if named == "" or (named is None and not file.exists()):
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(
            f"The settings in {file} cannot be read: {why}. {NAMED} names another file; empty, none."
        ) from error
    pairs = (line.split("=", 1) for line in map(str.strip, lines) if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, value in pairs}


def load_dotenv(root: Path) -> None:
    """Into the environment of this process, and so of those that it starts."""
    for name, value in read_dotenv(root).items():
        os.environ.setdefault(name, value)
