"""Key file: what is in the file of master keys, and how it changes.

``{"current": "k1", "keys": {"k1": "<base64>"}}``. It is made by `manage.py init` (by the embedded default on its first use) and
changed only here: under a lock, written beside and moved into place, so that a reader sees the old or the new file.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from evidence.problems import KeyUnavailable
from kernel.secret_files import write_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FIRST = "k1"  # makes the fingerprints too, so it stays when others are forgotten
LOST = "Restore it from its backup; without it stored values stay unreadable. A new hub gets one from `manage.py init`."


def _fresh() -> str:
    return base64.b64encode(AESGCM.generate_key(256)).decode()


def make_key_file(path: Path, *, name: str = FIRST) -> None:
    """The file with a first key, unless there is one already."""
    write_once(path, json.dumps({"current": name, "keys": {name: _fresh()}}))


def read_key_file(path: Path, *, lost: str = LOST) -> tuple[dict[str, bytes], str]:
    """The keys by name, and the name of the one that wraps. ``lost``: what to do when the file is not there."""
    if not path.exists():
        raise KeyUnavailable(f"The key file {path} does not exist.", remedy=lost)
    try:
        return parse_keys(path.read_text(), what=f"The key file {path}", lost=lost)
    except OSError as error:
        raise KeyUnavailable(f"The key file {path} cannot be read.", remedy=lost) from error


def parse_keys(text: str, *, what: str, lost: str = LOST) -> tuple[dict[str, bytes], str]:
    """The keys by name, and the name of the one that wraps."""
    try:
        document = json.loads(text)
        keys = {name: base64.b64decode(text, validate=True) for name, text in document["keys"].items()}
        current = document["current"]
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise KeyUnavailable(f"{what} cannot be read.", remedy=lost) from error
    if current not in keys or any(len(key) != 32 for key in keys.values()):
        raise KeyUnavailable(f"{what} is damaged.", remedy="Restore it from its backup.")
    return keys, current


def add_key(path: Path, *, activate: bool) -> str:
    """A further key, which wraps from now on (``activate``) or waits until the file is on every host; returns its name."""
    with _changing(path) as document:
        numbers = [int(name[1:]) for name in document["keys"] if name[:1] == "k" and name[1:].isdigit()]
        name = f"k{max(numbers, default=0) + 1}"
        document["keys"][name] = _fresh()
        if activate:
            document["current"] = name
    return name


def activate_key(path: Path, name: str) -> None:
    with _changing(path) as document:
        document["current"] = name


def forget_keys(path: Path, names: Iterable[str], *, first_too: bool = False) -> None:
    """Destroy keys that wrap nothing any more. The first master key stays: fingerprints are made with it."""
    with _changing(path) as document:
        stay = {document["current"]} | (set() if first_too else {min(document["keys"])})
        for name in set(names) - stay:
            document["keys"].pop(name, None)


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Any]]:
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        read_key_file(path)  # a damaged file is not made worse
        document = json.loads(path.read_text())
        yield document
        scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(document))
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
