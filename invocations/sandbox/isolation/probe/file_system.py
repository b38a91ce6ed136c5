"""File system: where a process can write, what it can read of the host, and what is mounted for it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# null, zero, full, random, urandom, tty, ptmx: what is written to them is nowhere
DEVICES = {os.makedev(*pair) for pair in ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2))}
# Besides these: what an engine puts into every container, and below /dev, /proc and /sys.
MOUNTED = {"/", "/w", "/p", "/c", "/deps", "/data", "/etc/resolv.conf", "/etc/hostname", "/etc/hosts"}
_READ_ONLY = 1
_ENOUGH = 20


def find_writable() -> list[str]:
    """Every file and folder of the whole tree that can be written to. Of /proc what belongs to no process."""
    got: list[str] = []
    for folder, names, files in os.walk("/"):
        if folder == "/proc":
            names[:] = [name for name in names if not name.isdigit() and not name.endswith("self")]
        inside = f"{folder.rstrip('/')}/.probe"
        if _can_make(inside) or can_create(inside):
            got.append(folder)
        for name in files:
            path = f"{folder.rstrip('/')}/{name}"
            if _can_open(path, os.O_WRONLY) and not _keeps_nothing(path):
                got.append(path)
    return got


def _can_make(folder: str) -> bool:
    try:
        os.mkdir(folder)
    except OSError:
        return False
    os.rmdir(folder)
    return True


def _can_open(path: str, flags: int) -> bool:
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _keeps_nothing(path: str) -> bool:
    about = os.stat(path)
    return stat.S_ISCHR(about.st_mode) and about.st_rdev in DEVICES


def can_create(path: str) -> bool:
    if not _can_open(path, os.O_CREAT | os.O_RDWR):
        return False
    os.unlink(path)
    return True


def try_creating(path: str) -> int:
    """The error number of making a file; 0 when it was made."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except OSError as error:
        return error.errno or -1
    os.unlink(path)
    return 0


def find_readable(paths: Iterable[str]) -> list[str]:
    """Which of these say anything."""
    return [path for path in paths if _says_something(path)]


def _says_something(path: str) -> bool:
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        with open(path, "rb", 0) as file:
            return bool(file.read(1))
    except OSError:
        return False


def find_not_read_only(paths: Iterable[str]) -> list[str]:
    """Which of these are there and not on a read-only mount."""
    return [path for path in paths if os.path.exists(path) and not os.statvfs(path).f_flag & _READ_ONLY]


def read_mounts() -> Iterator[tuple[str, str]]:
    """Each place and the options of what is mounted there."""
    with open("/proc/self/mountinfo") as file:
        for line in file:
            words = line.split()
            yield words[4].encode().decode("unicode_escape"), words[5]


def find_foreign_mounts() -> list[str]:
    system = ("/proc", "/dev", "/sys")
    return sorted({place for place, _ in read_mounts() if place not in MOUNTED and not place.startswith(system)})


def join_names(found: Iterable[str]) -> str:
    """A list that a line can hold."""
    names = list(found)
    more = f" and {len(names) - _ENOUGH} more" if len(names) > _ENOUGH else ""
    return ", ".join(names[:_ENOUGH]) + more
