"""Folder archive: how a folder of built dependencies travels to a sandbox host.

A tar of folders, files and links in the order of their names, with nothing in it that depends on when or by whom it was made: the
same folder is the same bytes, so its digest names it. It is unpacked by a host that does not trust it: nothing lands outside.
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_ENTRIES = 500_000


class ArchiveRefused(ValueError):
    """The archive holds something that is no part of a folder of dependencies."""


class _Sink:
    """A file that only takes."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self.size = 0

    def write(self, data: bytes) -> int:
        self._write(data)
        self.size += len(data)
        return len(data)


def measure_folder(folder: Path) -> tuple[str, int]:
    """The digest and the size of its archive."""
    state = hashlib.sha256()
    size = write_archive(folder, state.update)
    return f"sha256:{state.hexdigest()}", size


def write_archive(folder: Path, write: Callable[[bytes], object]) -> int:
    """Hand the archive over piece by piece. Its size."""
    sink = _Sink(write)
    with tarfile.open(mode="w|", fileobj=cast("IO[bytes]", sink), format=tarfile.PAX_FORMAT) as archive:
        for path in _walk(folder):
            info = archive.gettarinfo(path, arcname=path.relative_to(folder).as_posix())
            info.mtime, info.uid, info.gid, info.uname, info.gname = 0, 0, 0, "", ""
            info.mode = 0o555 if info.isdir() or info.mode & 0o100 else 0o444
            if info.islnk():
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
            if info.isreg():
                with path.open("rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)
    return sink.size


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*folders, *names]):
            yield Path(parent, name)
        folders[:] = [name for name in folders if name not in links]


def unpack_archive(source: IO[Any], into: Path) -> None:
    """Into an empty folder of one's own. :class:`ArchiveRefused`, and then what is there is to be thrown away."""
    try:
        with tarfile.open(mode="r|", fileobj=source) as archive:
            for number, entry in enumerate(archive):
                if number > _MAX_ENTRIES:
                    raise ArchiveRefused(f"It has more than {_MAX_ENTRIES} entries.")
                _unpack_entry(archive, entry, into)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ArchiveRefused(f"The archive of the folder cannot be unpacked: {error}") from error


def _unpack_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, into: Path) -> None:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise ArchiveRefused(f"{entry.name!r} lies outside.")
    place = into.joinpath(*name.parts)
    if not place.parent.resolve().is_relative_to(into.resolve()):
        raise ArchiveRefused(f"{entry.name!r} lies behind a link.")
    if entry.issparse():
        raise ArchiveRefused(f"{entry.name!r} says that it holds more than was sent.")
    if entry.isdir():
        place.mkdir()
    elif entry.isreg():
        content = archive.extractfile(entry)
        assert content is not None
        with place.open("xb") as file:
            while piece := content.read(1 << 20):
                file.write(piece)
        place.chmod(0o555 if entry.mode & 0o100 else 0o444)
    elif entry.issym():
        target = PurePosixPath(entry.linkname)
        if target.is_absolute() or not _stays_inside(name.parent, target):
            raise ArchiveRefused(f"{entry.name!r} links to the outside.")
        place.symlink_to(entry.linkname)
    else:
        raise ArchiveRefused(f"{entry.name!r} is neither folder nor file nor link.")


def _stays_inside(parent: PurePosixPath, target: PurePosixPath) -> bool:
    depth = len(parent.parts)
    for part in target.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True
