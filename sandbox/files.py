"""Files: those that a call gets, and those that it has left.

A call with files has a folder of its own, ``/data``. Before the tool's process is told to begin, the supervisor lays out
what the call brings; after everybody of the call is gone it takes what was made or changed below the paths that may be
written to. A tool can plant anything there, so nothing is followed: each file is opened by ``openat2`` beneath the folder,
without links of any kind, and taken only when it is a plain file with one name.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

DATA = "/data"

_OPENAT2 = 437  # the same on every architecture
_BENEATH, _NO_SYMLINKS, _NO_MAGIC_LINKS, _NO_OTHER_DEVICES = 0x08, 0x04, 0x02, 0x01
_SAFELY = _BENEATH | _NO_SYMLINKS | _NO_MAGIC_LINKS | _NO_OTHER_DEVICES
_HOW = struct.Struct("QQQ")

MAX_PATH_CHARS, MAX_NAME_BYTES, MAX_DEPTH = 400, 255, 16
_MAX_ENTRIES = 4096
_MAX_SKIPPED = 50
_CHANGES = ("write", "create")

_libc = ctypes.CDLL(None, use_errno=True)


class UnsafePath(ValueError):
    """A path that no file of a tenant may have. The message says why."""


def split_path(path: str) -> list[str]:
    """The names below ``/data`` that a path is made of; raises :class:`UnsafePath`."""
    if not path.startswith(f"{DATA}/"):
        raise UnsafePath(f"It is not below {DATA}.")
    if len(path) > MAX_PATH_CHARS:
        raise UnsafePath(f"It is longer than {MAX_PATH_CHARS} characters.")
    names = path[len(DATA) + 1 :].split("/")
    if len(names) > MAX_DEPTH:
        raise UnsafePath(f"It is deeper than {MAX_DEPTH} folders.")
    for name in names:
        if name in ("", ".", "..") or "\\" in name:
            raise UnsafePath("It has a part that is no name.")
        try:
            if len(name.encode()) > MAX_NAME_BYTES:
                raise UnsafePath(f"It has a name of more than {MAX_NAME_BYTES} bytes.")
        except UnicodeEncodeError:
            raise UnsafePath("It has a name that is not UTF-8.") from None
        if not name.isprintable():
            raise UnsafePath("It has a name with characters that cannot be shown.")
    return names


def open_safely(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """Open ``path`` beneath the folder without following a link, leaving it, or crossing a mount."""
    how = _HOW.pack(flags | os.O_CLOEXEC, mode, _SAFELY)
    fd: int = _libc.syscall(_OPENAT2, folder, os.fsencode(path), ctypes.create_string_buffer(how, len(how)), len(how))
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


def lay_out(folder: int, inputs: list[tuple[str, bytes]]) -> None:
    """Write the call's files; they belong to the tool's user, and which of them it may change its walls say."""
    for path, content in inputs:
        *folders, name = split_path(path)
        place = os.dup(folder)
        try:
            for each in folders:
                with suppress(FileExistsError):
                    os.mkdir(each, 0o700, dir_fd=place)
                below = open_safely(place, each, os.O_RDONLY | os.O_DIRECTORY)
                os.close(place)
                place = below
            fd = open_safely(place, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(fd, view) :]
            finally:
                os.close(fd)
        finally:
            os.close(place)


def make_folders(folder: int, rules: list[dict[str, Any]]) -> None:
    """The folders that rules name, so that a tool finds them and its walls have something to stand on."""
    for rule in rules:
        names = split_path(rule["path"]) if rule["path"] != DATA else []
        if rule.get("kind", "tree") == "file":
            names = names[:-1]
        place = ""
        for name in names:
            place = f"{place}/{name}".lstrip("/")
            with suppress(FileExistsError):
                os.mkdir(place, 0o700, dir_fd=folder)


class CollectedFiles:
    """What a call has left: files with their contents, what became of files that it got, and what was not taken."""

    def __init__(self) -> None:
        self.files: list[tuple[str, bytes]] = []
        self.gone: list[str] = []
        self.skipped: list[tuple[str, str]] = []

    def skip(self, path: str, why: str) -> None:
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append((path.encode("utf-8", "backslashreplace").decode()[:MAX_PATH_CHARS], why))


def snapshot_files(folder: int, paths: list[str]) -> dict[str, tuple[int, int, int]]:
    """What tells whether a file was touched; taken before the tool begins."""
    found = {}
    for path in paths:
        fd = open_safely(folder, "/".join(split_path(path)), os.O_PATH)
        about = os.fstat(fd)
        os.close(fd)
        found[path] = (about.st_ino, about.st_ctime_ns, about.st_size)
    return found


def collect_files(
    folder: int, rules: list[dict[str, Any]], before: dict[str, tuple[int, int, int]], *, most: int, most_bytes: int
) -> CollectedFiles:
    """Take what was made or changed where the rules let a tool write; ``most`` files of ``most_bytes`` together."""
    found = CollectedFiles()
    left = most_bytes
    for path, entry in _walk(folder, found):
        if before.get(path) == (entry.st_ino, entry.st_ctime_ns, entry.st_size):
            continue
        if not _may_change(path, rules):
            found.skip(path, "not where it may write")
        elif len(found.files) >= most or entry.st_size > left:
            found.skip(path, "more than the call may leave")
        else:
            content = _take(folder, path, left)
            if isinstance(content, str):
                found.skip(path, content)
            else:
                left -= len(content)
                found.files.append((path, content))
    found.gone = [path for path in before if _is_gone(folder, path)]
    return found


def _may_change(path: str, rules: list[dict[str, Any]]) -> bool:
    return any(
        set(_CHANGES) & set(rule["actions"])
        and (
            path == rule["path"]
            or (rule.get("kind", "tree") == "tree" and path.startswith(rule["path"].rstrip("/") + "/"))
        )
        for rule in rules
    )


def _is_gone(folder: int, path: str) -> bool:
    """Also where something else has taken its place: what lies there now is told for itself."""
    try:
        fd = open_safely(folder, "/".join(split_path(path)), os.O_PATH | os.O_NOFOLLOW)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    try:
        return not stat.S_ISREG(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def _take(folder: int, path: str, left: int) -> bytes | str:
    """The file's bytes, or why it is not taken."""
    try:
        fd = open_safely(folder, path[len(DATA) + 1 :], os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "unreadable")
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return "not a plain file"
        if about.st_nlink != 1:
            return "has more than one name"
        content = bytearray()
        while len(content) <= left and (chunk := os.read(fd, 1 << 20)):
            content += chunk
        return bytes(content) if len(content) <= left else "more than the call may leave"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "unreadable")
    finally:
        os.close(fd)


def _walk(folder: int, found: CollectedFiles) -> Iterator[tuple[str, os.stat_result]]:
    """Every entry that is no folder, in order, by its path in the box; no more than a tool may plant."""
    waiting = [DATA]
    seen = 0
    while waiting:
        place = waiting.pop(0)
        try:
            below = place[len(DATA) + 1 :]
            fd = open_safely(folder, below or ".", os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            found.skip(place, errno.errorcode.get(error.errno or 0, "unreadable"))
            continue
        try:
            with os.scandir(fd) as entries:
                names = []
                for entry in entries:
                    seen += 1
                    if seen > _MAX_ENTRIES:
                        found.skip(place, "too many entries")
                        return
                    names.append(entry.name)
            for name in sorted(names):
                path = f"{place}/{name}"
                try:
                    split_path(path)
                    about = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except (UnsafePath, OSError) as error:
                    found.skip(path, str(error) if isinstance(error, UnsafePath) else "unreadable")
                    continue
                if stat.S_ISDIR(about.st_mode):
                    waiting.append(path)
                else:
                    yield path, about
        finally:
            os.close(fd)
