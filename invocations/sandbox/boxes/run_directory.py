"""Run directory: where on this host boxes and their owner meet.

Below the run directory each process that owns boxes has a folder, locked for as long as it lives: the lock tells the next
one what is left over, whatever process numbers mean where it runs. In it each box has a folder of its own.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

_LOCK = "lock"
_LONGEST = 60  # characters of the run directory: the names of sockets are short


class NoRunDirectory(Exception):
    """Nothing can be put there. The message says why."""


def find_default_run_dir() -> Path:
    """Where the system puts such things, as far as this user may."""
    if os.access("/run", os.W_OK):
        return Path("/run/toolhub")
    if own := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(own, "toolhub")
    return Path(tempfile.gettempdir(), f"toolhub-{os.getuid()}")


class RunDir:
    """The folder of this process. ``instance`` keeps the hubs of a host apart."""

    def __init__(self, place: Path, instance: str) -> None:
        self.place = place
        self._prefix = hashlib.sha256(instance.encode()).hexdigest()[:12]
        self._opening = threading.Lock()
        self._own: Path | None = None
        self._lock = -1

    def open(self) -> Path:
        """The folder of this process; made when it is asked for first."""
        with self._opening:
            return self._own or self._make()

    def _make(self) -> Path:
        if len(str(self.place)) > _LONGEST:
            raise NoRunDirectory(f"The name of {self.place} is too long for sockets in it: {_LONGEST} characters.")
        name = f"{self._prefix}.{secrets.token_hex(4)}"
        making, own = self.place / f"making-{name}", self.place / name
        try:
            self.place.mkdir(mode=0o711, parents=True, exist_ok=True)
            making.mkdir()
            making.chmod(0o711)
            self._lock = os.open(making / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            making.rename(own)  # nobody ever sees it without its lock
        except OSError as error:
            shutil.rmtree(making, ignore_errors=True)
            raise NoRunDirectory(f"TOOLHUB_SANDBOX_RUN_DIR cannot be used: {error}") from error
        self._own = own
        return own

    def make_folder(self) -> Path:
        """A folder for a box, which the box's user may enter."""
        folder = self.open() / secrets.token_hex(8)
        try:
            folder.mkdir()
            folder.chmod(0o711)
        except OSError as error:
            raise NoRunDirectory(f"TOOLHUB_SANDBOX_RUN_DIR cannot be used: {error}") from error
        return folder

    def clear_leftovers(self) -> int:
        """Remove the folders of processes that are gone, of whichever hub; returns how many."""
        removed = 0
        for folder in self._folders():
            if folder != self._own and _is_left_over(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
        return removed

    def close(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
            os.close(self._lock)
        with suppress(OSError):
            self.place.rmdir()  # if nobody else has a folder there

    def _folders(self) -> list[Path]:
        try:
            return list(self.place.iterdir())
        except OSError:
            return []


def _is_left_over(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False  # it is being removed, or somebody else's
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
