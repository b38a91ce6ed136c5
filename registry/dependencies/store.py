"""Dependency store: where on this host built dependencies lie, so that a folder is whole or not there.

``TOOLHUB_DEPENDENCY_DIR/<name>``: the name says all that decides what is in it (:func:`registry.dependencies.target.folder_name`).
A folder is made beside its place, read-only and on the disk before it gets its name. One process of a host builds at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings

from registry.dependencies.target import folder_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

WHOLE = re.compile(r"[0-9a-f]{64}")
PART = ".part"
PAGE = 4096


def store_root() -> Path:
    return Path(settings.TOOLHUB_DEPENDENCY_DIR).absolute()  # the engine knows no other


def folder_of_lock(lock_digest: str) -> Path:
    """Where it is, or would be."""
    return store_root() / folder_name(lock_digest)


def list_folders() -> set[str]:
    """The names of all that are here."""
    try:
        return {name for name in os.listdir(store_root()) if WHOLE.fullmatch(name)}  # noqa: PTH208  names are all it takes
    except FileNotFoundError:
        return set()


@contextlib.contextmanager
def claim_host() -> Iterator[bool]:
    """Whether this process is the one that builds on this host while the block runs."""
    store_root().mkdir(parents=True, exist_ok=True)
    with (store_root() / ".building").open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@contextlib.contextmanager
def make_work_folder() -> Iterator[Path]:
    """An empty folder beside the finished ones, on the same disk; gone afterwards with all that is in it."""
    folder = store_root() / f"{secrets.token_hex(8)}{PART}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        remove_folder(folder)


def folder_size(folder: Path) -> int:
    """Bytes of all files and folders below it, each of at least a page: an empty one takes room, too. What has gone does not count."""
    total = 0
    for parent, folders, names in os.walk(folder):
        total += PAGE * len(folders)
        for name in names:
            with contextlib.suppress(OSError):
                total += max(os.lstat(os.path.join(parent, name)).st_size, PAGE)  # noqa: PTH118  thousands of files
    return total


def put_in_place(folder: Path, lock_digest: str, *, beat: Callable[[], None]) -> Path:
    """Make a finished folder read-only, see that it is on the disk, and give it its name."""
    there = folder_of_lock(lock_digest)
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118  as above
            os.chmod(path, 0o444)  # noqa: PTH101
            _to_disk(path)
            beat()
        os.chmod(parent, 0o555)  # noqa: PTH101, S103  boxes run as others
        _to_disk(parent)
    try:
        folder.rename(there)
    except OSError:
        if not there.is_dir():  # otherwise somebody was faster, and it is the same
            raise
    _to_disk(there.parent)
    return there


def _to_disk(path: str | Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_folder(folder: Path) -> None:
    """Also what is read-only. Nobody meets a half of it: it loses its name first."""
    doomed = folder
    if WHOLE.fullmatch(folder.name):
        doomed = folder.with_name(f"{folder.name}{PART}")
        with contextlib.suppress(FileNotFoundError):
            folder.rename(doomed)
    for parent, _, _ in os.walk(doomed):
        os.chmod(parent, stat.S_IRWXU)  # noqa: PTH101
    shutil.rmtree(doomed, ignore_errors=True)


def remove_unneeded(needed: Collection[str], *, older_than_s: float) -> list[str]:
    """Remove what nobody needs and what a crash has left. Call it :func:`claim_host`. The names of the folders that are gone."""
    gone = []
    before = time.time() - older_than_s
    for path in store_root().iterdir():
        if path.name.endswith(PART):
            remove_folder(path)
        elif path.name in list_folders() - set(needed) and path.stat().st_ctime < before:
            remove_folder(path)
            gone.append(path.name)
    return sorted(gone)
