"""Secret files: where a secret comes from on a machine where nobody has set one.

The embedded default keeps its secrets in files that only the owner can read. Two processes that start at once agree: the
file is created exclusively, and who loses reads what the other wrote.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_once(path: Path, text: str) -> str:
    """Write ``text`` to ``path`` unless the file exists; return what the file holds. Mode 0600, complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(scratch, path)
        except FileExistsError:
            return path.read_text()
        return text
    finally:
        scratch.unlink()


def read_or_make_secret(path: Path) -> str:
    """The secret in ``path``; a new random one, written there, when the file does not exist."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return write_once(path, secrets.token_urlsafe(48))
