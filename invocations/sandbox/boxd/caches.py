"""Caches: what a sandbox host keeps of what workers have sent it, by digest.

Packages are held in memory, folders of dependencies on the disk, where the engine mounts them from. What was used longest ago goes
first, and no folder that a box may still have mounted.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.wire.contract import compute_digest
from invocations.sandbox.wire.folder_archive import ArchiveRefused, unpack_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_PART = ".part"
_MARKER = ".toolhub-boxd"  # in a folder that is the daemon's
_NAME = re.compile("[0-9a-f]{64}")
_MOUNTED_S = 3600.0  # longer than any box lives


class NotTaken(Exception):
    """What was sent is not kept. The message says why."""


class FolderNotOwned(Exception):
    """The folder holds what is not this daemon's. The message says what to do."""


class PackageCache:
    """Tools' packages. May be used from many threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._packages: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, digest: str) -> bytes | None:
        with self._lock:
            found = self._packages.get(digest)
            if found is not None:
                self._packages.move_to_end(digest)
            return found

    def put(self, digest: str, data: bytes) -> None:
        if compute_digest(data) != digest:
            raise NotTaken(f"These bytes are not those of {digest}.")
        with self._lock:
            if digest in self._packages:
                return
            self._packages[digest] = data
            self._size += len(data)
            while self._size > self._most and len(self._packages) > 1:
                _, dropped = self._packages.popitem(last=False)
                self._size -= len(dropped)


class FolderCache:
    """Folders of dependencies below ``root``. May be used from many threads of one process, which owns ``root``.

    A folder is made beside its place and gets its name when it is whole, read-only and on the disk. Nothing that takes long is done
    under the lock: whoever looks for a folder is a call, and the worker takes a host for gone that says nothing for long.
    """

    def __init__(self, root: Path, most_bytes: int, *, clock: Callable[[], float] = time.time) -> None:
        self.root = root
        self._most = most_bytes
        self._clock = clock
        self._used: dict[str, float] = {}
        self._sizes: dict[str, int] = {}  # of the folders that are there
        self._lock = threading.Lock()

    def start(self) -> None:
        """Throw away what an earlier process has left half, and measure what it has left whole."""
        self._take_over()
        for path in self.root.iterdir():
            if path.name.endswith(_PART):
                _remove_folder(path)
            elif _NAME.fullmatch(path.name):
                self._sizes[path.name] = _size_of(path)

    def _take_over(self) -> None:
        """Who makes room in a folder where a worker builds removes what calls need, and the worker does the same."""
        self.root.mkdir(parents=True, exist_ok=True)
        marker = self.root / _MARKER
        if not marker.exists() and any(self.root.iterdir()):
            raise FolderNotOwned(
                f"{self.root} holds what toolhub-boxd has not put there, for example packages that a worker has built. "
                "Set TOOLHUB_BOXD_DEPENDENCY_DIR to an empty folder that is the daemon's alone."
            )
        marker.touch()

    def find(self, digest: str) -> Path | None:
        """Where it is; a box may have it mounted from now on."""
        name = _name_of(digest)
        with self._lock:
            if not (self.root / name).is_dir():
                self._sizes.pop(name, None)
                return None
            self._used[name] = self._clock()
            return self.root / name

    def put(self, digest: str, size: int, pieces: Iterable[bytes]) -> None:
        """``pieces``: its archive, of ``size`` bytes in all."""
        self._make_room(size)
        with self._make_work_folder() as work:
            with tempfile.TemporaryFile(dir=self.root) as archive:
                state = hashlib.sha256()
                for piece in pieces:
                    state.update(piece)
                    archive.write(piece)
                if f"sha256:{state.hexdigest()}" != digest:
                    raise NotTaken(f"These bytes are not those of {digest}.")
                archive.seek(0)
                try:
                    unpack_archive(archive, work)
                except ArchiveRefused as error:
                    raise NotTaken(str(error)) from error
            _settle_folder(work)
            self._take_in(work, _name_of(digest), _size_of(work))

    def _make_room(self, size: int) -> None:
        free = shutil.disk_usage(self.root).free
        if size * 2 > free:
            raise NotTaken(f"The disk of {self.root} has {free} bytes left, which is too little for {size} more.")
        doomed = []
        with self._lock:
            before = self._clock() - _MOUNTED_S
            spare = sorted(
                (name for name in self._sizes if self._used.get(name, 0.0) < before),
                key=lambda name: self._used.get(name, 0),
            )
            while sum(self._sizes.values()) + size > self._most and spare:
                doomed.append(self._take_out(spare.pop(0)))
            taken = sum(self._sizes.values())
        for folder in doomed:
            _remove_folder(folder)
        if taken + size > self._most:
            raise NotTaken(
                f"The folders of dependencies in use have {taken} of {self._most} bytes "
                f"(TOOLHUB_BOXD_CACHE_MB), and this one has {size}."
            )

    def _take_in(self, work: Path, name: str, size: int) -> None:
        """Unless somebody was faster, and it is the same."""
        with self._lock:
            if name not in self._sizes:
                work.rename(self.root / name)
                self._sizes[name] = size

    def _take_out(self, name: str) -> Path:
        """Under the lock. Nobody finds it any more; where it lies until it is removed."""
        doomed = self.root / f"{name}.{secrets.token_hex(4)}{_PART}"
        with suppress(FileNotFoundError):  # somebody has made room by hand
            (self.root / name).rename(doomed)
        del self._sizes[name]
        return doomed

    @contextmanager
    def _make_work_folder(self) -> Iterator[Path]:
        folder = self.root / f"{secrets.token_hex(8)}{_PART}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            _remove_folder(folder)


def _name_of(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def _settle_folder(folder: Path) -> None:
    for parent, _, names in os.walk(folder, topdown=False):
        for path in (*(Path(parent, name) for name in names), Path(parent)):
            if path.is_symlink():
                continue
            if path.is_dir():
                path.chmod(0o555)
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _remove_folder(folder: Path) -> None:
    for parent, _, _ in os.walk(folder):
        Path(parent).chmod(stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
