"""Archive: the files that a bundle holds.

A bundle is a zip file or the folder that it unpacks to. Nothing is ever unpacked: files are read as streams, only under
names that the format knows, and never more than it allows, so neither a path nor a bomb leads anywhere.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from .problems import InvalidEvidence, MalformedEvidence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

MANIFEST = "manifest.dsse.json"
VKEYS = "vkeys"
CHECKPOINT = "checkpoint"
OLDER = "checkpoint.older"
CONSISTENCY = "consistency"
GLOBAL = "global.tlog-proof"
FACTS = re.compile(r"facts/[0-9]{12}\.jsonl", re.ASCII)

MAX_FILES = 50_000
MAX_SMALL_BYTES = 16 << 20  # every file that is read as a whole
MAX_LINE_BYTES = 64 << 20  # one fact with its opened values
MAX_FACTS_BYTES = 64 << 30  # all of them
MAX_DIRECTORY_BYTES = MAX_FILES * 256  # of a zip file

_SMALL = {MANIFEST, VKEYS, CHECKPOINT, OLDER, CONSISTENCY, GLOBAL}
# What zipfile raises when it meets bytes that are no zip file.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError, IndexError)
_END = struct.Struct("<4s4H2IH")  # the last of a zip file
_LOCATOR64 = 20  # bytes before it, in one that needs more than 32 bits
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Archive(ABC):
    """The files of a bundle by name, with their sizes."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        if strange := sorted(name for name in sizes if name not in _SMALL and not FACTS.fullmatch(name)):
            raise MalformedEvidence(f"The bundle holds {strange[0]!r}, which is no file of a bundle.")
        if len(sizes) > MAX_FILES or sum(sizes.values()) > MAX_FACTS_BYTES:
            raise MalformedEvidence(f"The bundle has more than {MAX_FILES} files or {MAX_FACTS_BYTES >> 30} GiB.")
        if large := [name for name in _SMALL & sizes.keys() if sizes[name] > MAX_SMALL_BYTES]:
            raise MalformedEvidence(f"{large[0]} is larger than {MAX_SMALL_BYTES >> 20} MiB.")

    @property
    def facts(self) -> list[str]:
        return sorted(name for name in self.sizes if FACTS.fullmatch(name))

    def read(self, name: str) -> bytes:
        if name not in self.sizes:
            raise MalformedEvidence(f"The bundle has no file {name}.")
        with self.open(name) as file:
            return _read(file, self.sizes[name] + 1, name)

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[IO[bytes]]: ...


class _Folder(Archive):
    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(dict(_walk(path, path)))

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        with (self._path / name).open("rb") as file:
            yield file


class _Zip(Archive):
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._zip = archive
        sizes: dict[str, int] = {}
        for info in archive.infolist():
            if info.is_dir() and info.filename == "facts/" and not info.file_size:
                continue
            if info.filename in sizes:
                raise MalformedEvidence(f"{path.name} holds {info.filename!r} twice.")
            if info.flag_bits & 1 or info.compress_type not in _METHODS:
                raise MalformedEvidence(f"{path.name} holds {info.filename!r} encrypted or in an unusual compression.")
            sizes[info.filename] = info.file_size
        super().__init__(sizes)

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._zip.open(name) as file:
                yield file
        except InvalidEvidence:
            raise
        except _UNREADABLE as error:
            raise MalformedEvidence(f"{name} cannot be read from the zip file: it was changed or cut.") from error


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The bundle at ``path``. :class:`MalformedEvidence` when it is none, ``OSError`` when it cannot be read."""
    if path.is_dir():
        yield _Folder(path)
        return
    with path.open("rb") as file:
        _check_directory(file, path.name)
        try:
            archive = zipfile.ZipFile(file)
        except _UNREADABLE as error:
            raise MalformedEvidence(
                f"{path.name} is neither a folder nor a zip file, or the zip file was cut."
            ) from error
        with archive:
            yield _Zip(path, archive)


def _check_directory(file: IO[bytes], name: str) -> None:
    """Its size, before ``zipfile`` makes objects of a directory of millions of files."""
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _LOCATOR64 - _END.size))
    tail = file.read()
    if len(tail) < _END.size or not tail[-_END.size :].startswith(b"PK\5\6"):
        raise MalformedEvidence(f"{name} is neither a folder nor a zip file, or the zip file was cut.")
    *_, size, _, _ = _END.unpack(tail[-_END.size :])
    if size > MAX_DIRECTORY_BYTES or tail[: -_END.size].startswith(b"PK\6\7"):
        raise MalformedEvidence(
            f"{name} has more than {MAX_FILES} files, or is a zip file of the kind for more than 4 GiB."
        )


def iter_lines(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The lines of a file with their newlines, one at a time."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise MalformedEvidence(f"A line of {name} is longer than {MAX_LINE_BYTES >> 20} MiB.")
        yield line


def _read(file: IO[bytes], most: int, name: str) -> bytes:
    data = file.read(most)
    if len(data) == most:
        raise MalformedEvidence(f"{name} is longer than its folder or zip file says.")
    return data


def _walk(top: Path, folder: Path) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = os.path.relpath(entry.path, top).replace(os.sep, "/")
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and name == "facts":
                yield from _walk(top, folder / entry.name)
            elif stat.S_ISREG(mode):
                yield name, entry.stat(follow_symlinks=False).st_size
            else:
                raise MalformedEvidence(f"The bundle holds {name!r}, which is no file of a bundle.")
