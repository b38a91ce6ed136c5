"""Scratch: whether anything of a call is left in the folders that the next call will see.

What a tool left in its scratch space is deleted within a bounded time, without following anything; what cannot be deleted
ends the box. The package cannot be written to, but its owner may give its files other modes and times, and the next call
would see them: the kernel is asked to tell of that. Devices belong to nobody here, but whoever may write to one may set its
times to now: they are set again after each call.
"""

from __future__ import annotations

import ctypes
import os
import stat
import time
from contextlib import suppress

from sandbox.access_attempts import PACKAGE, WORK
from sandbox.files import DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PATIENCE_S = 0.1
_DEVICES = ("/dev", "/dev/pts")
_ANY_CHANGE = 0x2 | 0x4 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # IN_MODIFY, ATTRIB, MOVED, CREATE, DELETE, SELF

_libc = ctypes.CDLL(None, use_errno=True)


class Scratch:
    """The folders of the box, as its first process sees them."""

    def __init__(self) -> None:
        self._modes = {WORK: 0o700}
        self._changes = -1
        self._devices = [path for path in _in_devices() if os.access(path, os.W_OK)]

    def expect(self, size: int, *, with_files: bool) -> None:
        """Without a size nothing may be written to the scratch space."""
        self._modes = {WORK: 0o700 if size else 0o500}
        if with_files:
            self._modes[DATA] = 0o700
        for place, mode in self._modes.items():
            os.chmod(place, mode)

    def watch_package(self, place: str = PACKAGE) -> None:
        """From now on nothing in it may change."""
        self._changes = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder, _, _ in os.walk(place):
            if _libc.inotify_add_watch(self._changes, os.fsencode(folder), _ANY_CHANGE) < 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), folder)

    def clear(self) -> bool:
        """Empty what can be emptied. False when that did not work in time, or when the package is not what it was."""
        try:
            for device in self._devices:
                os.utime(device)
            return all(_clear(place, mode) for place, mode in self._modes.items()) and not self._package_has_changed()
        except OSError:
            return False

    def _package_has_changed(self) -> bool:
        if self._changes < 0:
            return False
        try:
            return bool(os.read(self._changes, 4096))
        except BlockingIOError:
            return False


def _in_devices() -> Iterator[str]:
    for folder in _DEVICES:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if stat.S_ISCHR(entry.stat(follow_symlinks=False).st_mode):
                    yield entry.path


def _clear(place: str, mode: int) -> bool:
    if stat.S_IMODE(os.stat(place).st_mode) != mode:
        os.chmod(place, mode)
    left = os.listdir(place)
    if left:
        os.chmod(place, 0o700)
        _delete_all(place, time.monotonic() + _PATIENCE_S)
        os.chmod(place, mode)
    os.utime(place, (0, 0))  # a call could leave word for the next one in the times of the folder
    return not (left and os.listdir(place))  # nobody is alive who could make something of nothing


def _delete_all(place: str, deadline: float) -> None:
    """Depth first, with a list of its own: a tool makes trees deeper than a stack."""
    waiting = [place]
    while waiting:
        folder = waiting[-1]
        os.chmod(folder, 0o700)
        below = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if time.monotonic() > deadline:
                    raise TimeoutError
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
                else:
                    os.unlink(entry.path)
        if below:
            waiting += below
        else:
            waiting.pop()
            if waiting:
                os.rmdir(folder)
