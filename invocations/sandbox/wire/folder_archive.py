"""Folder archive: how a folder of built dependencies travels to a sandbox host.

A tar of folders, files and links in the order of their names, with nothing in it that depends on when or by whom it was made: the
same folder is the same bytes, so its digest names it. It is unpacked by a host that does not trust it: nothing lands outside, and
what stands before a file is read only as far as names need it (``tarfile`` would hold gigabytes of it in memory).
"""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_ENTRIES = 500_000
_MAX_HEADER_BYTES = 64 * 1024  # a name and the target of a link
_RECORDS = (
    b"path",
    b"linkpath",
    b"hdrcharset",
)  # what write_archive puts before an entry whose names are long, or not in ASCII
_PIECE_BYTES = 1 << 20


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


def unpack_archive(source: IO[bytes], into: Path) -> None:
    """Into an empty folder of one's own. :class:`ArchiveRefused`, and then what is there is to be thrown away."""
    try:
        for number, entry in enumerate(_read_entries(source)):
            if number > _MAX_ENTRIES:
                raise ArchiveRefused(f"It has more than {_MAX_ENTRIES} entries.")
            _unpack_entry(source, entry, into)
    except (tarfile.TarError, OSError, ValueError) as error:
        raise ArchiveRefused(f"The archive of the folder cannot be unpacked: {error}") from error


def _read_entries(source: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    """Each is followed by its content, which whoever takes the entry reads."""
    records: dict[bytes, str] = {}
    while any(block := _read_block(source)):
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if entry.size < 0:
            raise ArchiveRefused("It says that an entry has less than nothing.")
        if entry.type == tarfile.XHDTYPE and not records:
            if entry.size > _MAX_HEADER_BYTES:
                raise ArchiveRefused(f"What it says of an entry has {entry.size} bytes, more than {_MAX_HEADER_BYTES}.")
            records = _read_records(b"".join(_read_content(source, entry.size)))
            continue
        entry.name, entry.linkname = records.get(b"path", entry.name), records.get(b"linkpath", entry.linkname)
        records = {}
        yield entry


def _read_records(data: bytes) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    start = 0
    while start < len(data):
        size = data[start : start + 10].partition(b" ")[0]
        end = start + int(size)
        name, _, value = data[start + len(size) + 1 : end].partition(b"=")
        if name not in _RECORDS or end > len(data) or not value.endswith(b"\n"):
            raise ArchiveRefused(f"It says {name[:40]!r} of an entry, which is no part of a folder of dependencies.")
        found[name] = value[:-1].decode("utf-8", "surrogateescape")
        start = end
    if not found:
        raise ArchiveRefused("It says nothing of an entry.")
    return found


def _read_block(source: IO[bytes]) -> bytes:
    block = source.read(tarfile.BLOCKSIZE)
    if len(block) < tarfile.BLOCKSIZE:
        raise ArchiveRefused("It ends too early.")
    return block


def _read_content(source: IO[bytes], size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = source.read(min(left, _PIECE_BYTES))
        if not piece:
            raise ArchiveRefused("It ends too early.")
        yield piece
        left -= len(piece)
    if size % tarfile.BLOCKSIZE:
        source.read(tarfile.BLOCKSIZE - size % tarfile.BLOCKSIZE)


def _unpack_entry(source: IO[bytes], entry: tarfile.TarInfo, into: Path) -> None:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise ArchiveRefused(f"{entry.name!r} lies outside.")
    place = into.joinpath(*name.parts)
    if not place.parent.resolve().is_relative_to(into.resolve()):
        raise ArchiveRefused(f"{entry.name!r} lies behind a link.")
    if entry.type == tarfile.DIRTYPE:
        place.mkdir()
    elif entry.type == tarfile.REGTYPE:
        with place.open("xb") as file:
            for piece in _read_content(source, entry.size):
                file.write(piece)
        place.chmod(0o555 if entry.mode & 0o100 else 0o444)
    elif entry.type == tarfile.SYMTYPE:
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
