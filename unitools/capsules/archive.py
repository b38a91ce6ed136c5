"""Archive: the files that it holds, if there is only one way to write it.

A capsule is a zip whose files are stored as they are, sorted by name, without times, comments or extra fields: the same files
give the same bytes everywhere, whatever version of zlib is installed. What is read is written again and compared, so an archive
that any other reader could understand differently is refused. Nothing is ever extracted to a disk.
"""

from __future__ import annotations

import io
import re
import stat
import struct
import unicodedata
import zipfile
from typing import TYPE_CHECKING

from unitools.capsules.errors import (
    AbsoluteName,
    CaseCollision,
    ChangedBytes,
    Compressed,
    DuplicateName,
    NotAFile,
    NotAnArchive,
    PathTraversal,
    TooLarge,
    TrailingData,
    UnsafeName,
)
from unitools.packages import MAX_PACKAGE_BYTES, MAX_PACKAGE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_CAPSULE_BYTES = MAX_PACKAGE_BYTES + 1024 * 1024
MAX_CAPSULE_FILES = MAX_PACKAGE_FILES + 100
MAX_NAME_BYTES = 255

_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_ENCRYPTED = 0x1
_END, _END_BYTES = b"PK\x05\x06", 22
_END_64, _END_64_BYTES = b"PK\x06\x07", 20
_ENTRY_BYTES = 46  # of the directory, beside the name
_DRIVE = re.compile(r"[A-Za-z]:")
_PLAIN = re.compile(r"[^\x00-\x1f\x7f\\:*?\"<>|]+")  # what Windows refuses, and what a terminal would obey


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """The one archive of these files. Raises what :func:`read_archive` would raise for it."""
    check_names(files)
    total = sum(map(len, files.values()))
    if len(files) > MAX_CAPSULE_FILES or total > MAX_CAPSULE_BYTES:
        raise _too_large()
    data = _written(files)
    if len(data) > MAX_CAPSULE_BYTES:
        raise _too_large()
    return data


def read_archive(data: bytes) -> dict[str, bytes]:
    """The files of an archive by name. Each that cannot have come from :func:`write_archive` is refused, by the first reason found."""
    if len(data) > MAX_CAPSULE_BYTES:
        raise _too_large()
    _check_end(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            for entry in entries:
                _check_entry(entry)
            check_names([entry.orig_filename for entry in entries])
            if sum(entry.file_size for entry in entries) > len(data):
                raise Compressed("Its files say that they are larger than the archive: their bytes overlap.")
            files = {entry.orig_filename: archive.read(entry) for entry in entries}
    except zipfile.BadZipFile as error:
        raise ChangedBytes(f"The archive was changed or is damaged: {error}.") from error
    except (ValueError, RuntimeError, EOFError, OSError, struct.error) as error:
        raise NotAnArchive(f"The archive cannot be read: {error}.") from error
    if _written(files) != data:
        raise ChangedBytes(
            "The archive is not written as capsules are: it holds something between its files, in another order, or besides them."
        )
    return files


def _too_large() -> TooLarge:
    return TooLarge(f"A capsule has at most {MAX_CAPSULE_BYTES:,} bytes and {MAX_CAPSULE_FILES:,} files.")


def _written(files: Mapping[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.create_system = _UNIX
            archive.writestr(entry, files[name])
    return memory.getvalue()


def _check_end(data: bytes) -> None:
    """The end of an archive says how long its directory is, which is what reading it costs: looked at before that is done."""
    at = len(data) - _END_BYTES
    if at < 0 or data[at : at + 4] != _END or data[-2:] != b"\0\0":
        if data.rfind(_END) < 0:
            raise NotAnArchive("It is no zip archive, or not all of one.")
        raise TrailingData("Something stands after the end of the archive.")
    count, size, offset = struct.unpack("<H2L", data[at + 10 : at + 20])
    if data[at - _END_64_BYTES : at - _END_64_BYTES + 4] == _END_64:
        raise NotAnArchive("It is an archive of the large kind (zip64), which no capsule needs.")
    if count > MAX_CAPSULE_FILES or size > MAX_CAPSULE_FILES * (_ENTRY_BYTES + MAX_NAME_BYTES):
        raise _too_large()
    if offset + size != at:
        raise TrailingData("Something stands before the archive, or between its files and its end.")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name, mode = entry.orig_filename, entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        raise NotAFile(f"{name!r} is a symbolic link; a capsule holds its files itself.")
    if name.endswith("/") or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise NotAFile(f"{name!r} is not a file; a capsule holds nothing else.")
    if entry.flag_bits & _ENCRYPTED:
        raise NotAnArchive(f"{name!r} is encrypted.")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise Compressed(
            f"{name!r} is compressed: {entry.compress_size:,} bytes that say they become {entry.file_size:,}. "
            "A capsule holds its files as they are."
        )


def check_names(names: Iterable[str]) -> None:
    """Is each a relative path that is kept as it is everywhere, and no two of them one?"""
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        check_name(name)
        key = _folded(name)
        if (other := seen.get(key)) is not None:
            if other == name:
                raise DuplicateName(f"{name!r} stands twice in it.")
            raise CaseCollision(f"{other!r} and {name!r} are the same file on many systems.")
        seen[key] = name
        for end in (at for at, letter in enumerate(name) if letter == "/"):
            folder = name[:end]
            if folders.setdefault(_folded(folder), folder) != folder:
                raise CaseCollision(f"The folders {folders[_folded(folder)]!r} and {folder!r} are one on many systems.")
    if both := sorted(seen.keys() & folders.keys()):
        raise DuplicateName(f"{seen[both[0]]!r} is the name of a file and of a folder.")


def check_name(name: str) -> None:
    """Absolute and climbing names are told apart from those that are only unusual: they are attacks, not accidents."""
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        raise AbsoluteName(f"{name!r} begins at the root of a disk.")
    parts = re.split(r"[/\\]", name)
    if ".." in parts:
        raise PathTraversal(f"{name!r} leads out of the capsule.")
    plain = _PLAIN.fullmatch(name) and unicodedata.is_normalized("NFC", name)
    if not plain or any(part in ("", ".") or part != part.strip(" ") or part.endswith(".") for part in parts):
        raise UnsafeName(f"{name!r} is not kept as it is on every system.")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UnsafeName(f"{name!r} is not text.") from None
    if size > MAX_NAME_BYTES:
        raise UnsafeName(f"{name[:60]!r}… has more than {MAX_NAME_BYTES} bytes.")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()
