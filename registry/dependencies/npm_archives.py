"""Npm archives: what the file of a package of npm holds, read by ourselves and written below one folder.

Such a file is a tar that anybody may have made. Plain files and folders are taken, whose names lie below the package's one folder;
links, devices, names that lead elsewhere or stand twice, also but for case, and more than a package may have are refused, before
anything is written. Nothing of a package is run, and what asks for that to be installed is refused by its name.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_PACKED_BYTES = 48 * 2**20
MAX_BYTES = 256 * 2**20
MAX_FILES = 20_000  # and folders, whether the archive names them or not
MAX_NAME_BYTES, MAX_WORD_BYTES, MAX_DEPTH = 1000, 255, 40
PAGE = 4096  # what the smallest file or folder takes of a disk
MAX_ABOUT_BYTES = 2**20
_BLOCK = 512
_MAX_HEADER_BYTES = 64 * 1024  # of one that says more of the next file
_PIECE = 1 << 20
_FILE, _OLD_FILE, _FOLDER, _LONG_NAME, _PAX, _PAX_OF_ALL = b"0", b"\0", b"5", b"L", b"x", b"g"
_KINDS = {b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe"}
ABOUT = "package.json"
_NO_ABOUT = "It has no package.json that can be read."
_SCRIPTS = ("preinstall", "install", "postinstall")
_ABOUT = re.compile(r"(?:.*/)?node_modules/(?:@[^/]+/)?[^/]+/(package\.json|binding\.gyp)|(package\.json|binding\.gyp)")


class ArchiveUnfit(Exception):
    """The archive is not taken. The message says why."""


class NeedsBuild(Exception):
    """The package is only whole when something of it has been run. The message says what."""


class _Unpacked:
    """The bytes of a gzip, piece by piece, and no more than may be."""

    def __init__(self, packed: bytes) -> None:
        self._left, self._gzip = memoryview(packed), zlib.decompressobj(wbits=31)
        self._ready, self._tail, self._given = bytearray(), b"", 0

    def take(self, count: int) -> bytes:
        while len(self._ready) < count:
            piece = self._next()
            if not piece:
                raise ArchiveUnfit("It ends in the middle.")
            self._ready += piece
        found = bytes(self._ready[:count])
        del self._ready[:count]
        return found

    def skip(self, count: int) -> None:
        while count:
            count -= len(self.take(min(count, _PIECE)))

    def _next(self) -> bytes:
        try:
            while not self._gzip.eof and (self._tail or self._left):
                fed = self._tail or bytes(self._left[:_PIECE])
                if not self._tail:
                    self._left = self._left[_PIECE:]
                piece = self._gzip.decompress(fed, _PIECE)
                self._tail = self._gzip.unconsumed_tail
                self._given += len(piece)
                if self._given > MAX_BYTES:
                    raise ArchiveUnfit(f"It holds more than {MAX_BYTES >> 20} MiB.")
                if piece:
                    return piece
        except zlib.error as error:
            raise ArchiveUnfit("It is no gzip.") from error
        return b""


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """``files``: with folders; ``bytes``: that they take of a disk."""

    files: int
    bytes: int


def measure_archive(packed: bytes) -> ArchiveSize:
    """What it holds, once all of it was looked at and nothing written. Raises :class:`ArchiveUnfit`."""
    if len(packed) > MAX_PACKED_BYTES:
        raise ArchiveUnfit(f"It has more than {MAX_PACKED_BYTES >> 20} MiB.")
    seen: dict[str, str] = {}  # by its name in small letters: a folder as it is written; empty: a file
    data, pages = _Unpacked(packed), 0
    for name, size in _entries(data):
        if size is None:
            _note_folders(f"{name}/.", seen)
            continue
        _note_folders(name, seen)
        if name.lower() in seen:
            raise ArchiveUnfit(f"{_shown(name)} is in it twice, or twice but for case.")
        _note(name.lower(), "", seen)
        if _is_about(name) and size > MAX_ABOUT_BYTES:
            raise ArchiveUnfit(f"{name.rpartition('/')[2]} has more than {MAX_ABOUT_BYTES >> 20} MiB.")
        pages += -(-size // PAGE)
        data.skip(size + -size % _BLOCK)
    return ArchiveSize(len(seen), (pages + len(seen)) * PAGE)


def unpack_archive(
    packed: bytes,
    place: Path,
    *,
    check_size: Callable[[ArchiveSize], None] = lambda _: None,
    check_about: Callable[[str, bytes], None] = lambda _name, _content: None,
    beat: Callable[[], None] = lambda: None,
) -> None:
    """Write what it holds below ``place``, a folder that is not there yet.

    Raises :class:`ArchiveUnfit`, and has then written nothing. ``check_size`` is told what it takes, before anything is written;
    ``check_about`` is given each file that says what a package is, of which there may be thousands, and none is kept; ``beat`` is
    called for each file.
    """
    check_size(measure_archive(packed))
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        raise ArchiveUnfit("Another package brings what belongs to its place.") from None
    data = _Unpacked(packed)
    for name, size in _entries(data):
        if size is not None:
            content = _write(data, size, place / name, keep=_is_about(name))
            if content is not None:
                check_about(name, content)
            beat()


def _is_about(name: str) -> bool:
    return _ABOUT.fullmatch(name) is not None


def _note(name: str, said: str, seen: dict[str, str]) -> None:
    seen[name] = said
    if len(seen) > MAX_FILES:
        raise ArchiveUnfit(f"It holds more than {MAX_FILES:,} files and folders.")


def _note_folders(name: str, seen: dict[str, str]) -> None:
    """A file cannot be where another has its folder, and two folders cannot differ in case alone."""
    words = name.split("/")[:-1]
    for count in range(1, len(words) + 1):
        folder = "/".join(words[:count])
        if folder.lower() not in seen:
            _note(folder.lower(), folder, seen)
        elif seen[folder.lower()] != folder:
            raise ArchiveUnfit(f"{_shown(folder)} is in it twice, or twice but for case.")


def _write(data: _Unpacked, size: int, path: Path, *, keep: bool) -> bytes | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kept, left = bytearray(), size
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb") as file:
        while left:
            piece = data.take(min(left, _PIECE))
            left -= len(piece)
            file.write(piece)
            if keep:
                kept += piece
    data.skip(-size % _BLOCK)
    return bytes(kept) if keep else None


def _entries(data: _Unpacked) -> Iterator[tuple[str, int | None]]:
    """Name and size of each file, whose bytes are to be taken before the next is asked for; of a folder the size is None."""
    named: str | None = None
    count = 0
    while (header := data.take(_BLOCK)) != bytes(_BLOCK):
        count += 1
        if count > 4 * MAX_FILES:
            raise ArchiveUnfit(f"It holds more than {MAX_FILES:,} files and folders.")
        _check_sum(header)
        size, kind = _read_number(header[124:136]), header[156:157]
        if kind in (_PAX, _PAX_OF_ALL, _LONG_NAME):
            if size > _MAX_HEADER_BYTES:
                raise ArchiveUnfit("It says too much of one file.")
            said = data.take(size + -size % _BLOCK)[:size]
            if kind == _LONG_NAME:
                named = _read_text(said.rstrip(b"\0"))
            else:
                found = _read_pax(said)
                if kind == _PAX_OF_ALL and found is not None:
                    raise ArchiveUnfit("It names all its files at once.")
                named = found or named
            continue
        name, named = named or _name_of(header), None
        inside = _check_name(name)
        if kind in (_FILE, _OLD_FILE) and not name.endswith("/"):
            if not inside:
                raise ArchiveUnfit(f"{_shown(name)} lies in no folder.")
            yield inside, size
        elif kind in (_FOLDER, _OLD_FILE):
            if size:
                raise ArchiveUnfit(f"The folder {_shown(name)} has bytes.")
            if inside:
                yield inside, None
        else:
            raise ArchiveUnfit(f"{_shown(name)} is {_KINDS.get(kind, 'of a kind that is not known')}.")


def _check_sum(header: bytes) -> None:
    said = _read_number(header[148:156])
    if said != sum(header[:148]) + 8 * 0x20 + sum(header[156:]):
        raise ArchiveUnfit("It is no tar.")


def _read_number(field: bytes) -> int:
    text = field.rstrip(b"\0 ").lstrip(b" ")
    if not re.fullmatch(rb"[0-7]{0,12}", text):
        raise ArchiveUnfit("A number in it cannot be read.")
    return int(text or b"0", 8)


def _name_of(header: bytes) -> str:
    name = _read_text(header[:100].partition(b"\0")[0])
    before = _read_text(header[345:500].partition(b"\0")[0]) if header[257:263] == b"ustar\0" else ""
    return f"{before}/{name}" if before else name


def _read_pax(said: bytes) -> str | None:
    """The path that it gives to the next file. What else it says of it is nothing of ours, but for another size or a link."""
    path = None
    while said:
        length, _, _ = said.partition(b" ")
        if not length.isdigit() or len(length) > 6 or not 3 < int(length) <= len(said):
            raise ArchiveUnfit("What it says of a file cannot be read.")
        record, said = said[len(length) + 1 : int(length)], said[int(length) :]
        key, sign, value = record.partition(b"=")
        if not sign or not value.endswith(b"\n"):
            raise ArchiveUnfit("What it says of a file cannot be read.")
        if key == b"path":
            path = _read_text(value[:-1])
        elif key in (b"size", b"linkpath") or key.startswith(b"GNU.sparse"):
            raise ArchiveUnfit("It says of a file what plain files have not.")
    return path


def _read_text(said: bytes) -> str:
    try:
        return said.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArchiveUnfit("A name in it is no UTF-8.") from error


def _check_name(name: str) -> str:
    """Below the one folder that each archive has, whatever it is called. Empty: that folder itself."""
    words = name.removeprefix("./").rstrip("/").split("/")
    odd = name.startswith("/") or "\\" in name or not name.isprintable() or len(name.encode()) > MAX_NAME_BYTES
    odd = odd or any(len(word.encode()) > MAX_WORD_BYTES for word in words)
    if odd or len(words) > MAX_DEPTH or {"", ".", ".."} & set(words):
        raise ArchiveUnfit(f"The name {_shown(name)} is none that a file may have.")
    return "/".join(words[1:])


def _shown(name: str) -> str:
    return repr(name[:100])


class PackageCheck:
    """Whether the files are of the package that the lock names, and all that it needs: of those that say it, one after the other."""

    def __init__(self, name: str, version: str) -> None:
        self.wanted, self.is_named = (name, version), False

    def take(self, file: str, content: bytes) -> None:
        """Raises :class:`ArchiveUnfit` and :class:`NeedsBuild`."""
        whose = "" if "/" not in file else f" ({file.rpartition('/')[0]})"
        if file.endswith("binding.gyp"):
            raise NeedsBuild(f"it is built from source{whose}: it has a binding.gyp")
        said = read_about(content)
        if file == ABOUT:
            if (said.get("name"), said.get("version")) != self.wanted:
                raise ArchiveUnfit("Its package.json is of another package or version.")
            self.is_named = True
        scripts = said.get("scripts")
        runs = [each for each in _SCRIPTS if isinstance(scripts, dict) and scripts.get(each)]
        if runs:
            raise NeedsBuild(f"it runs a script when it is installed{whose}: {', '.join(runs)}")
        if said.get("gypfile") is True:
            raise NeedsBuild(f"it is built from source{whose}: gypfile")

    def end(self) -> None:
        if not self.is_named:
            raise ArchiveUnfit(_NO_ABOUT)


def list_needed(said: dict[str, object]) -> list[str]:
    """The names under which a package finds what it cannot do without, as its package.json says."""
    needed, optional = said.get("dependencies"), said.get("optionalDependencies")
    left_out = set(optional) if isinstance(optional, dict) else set()
    return sorted(set(needed) - left_out) if isinstance(needed, dict) else []


def read_about(content: bytes) -> dict[str, object]:
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArchiveUnfit(_NO_ABOUT) from error
    return said if isinstance(said, dict) else {}
