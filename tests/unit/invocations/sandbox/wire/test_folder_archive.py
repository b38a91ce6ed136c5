from __future__ import annotations

import io
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.wire.folder_archive import ArchiveRefused, measure_folder, unpack_archive, write_archive

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "deps"
    (found / "pkg" / "inner").mkdir(parents=True)
    (found / "pkg" / "__init__.py").write_text("ONE = 1")
    (found / "pkg" / "inner" / "tool").write_bytes(b"\x7fELF")
    (found / "pkg" / "inner" / "tool").chmod(0o755)
    os.link(found / "pkg" / "__init__.py", found / "same.py")
    (found / "link").symlink_to("pkg/inner")
    (found / "pkg" / "up").symlink_to("../same.py")
    deep = found / "n" / ("long" * 30) / ("er" * 60) / "名字"
    deep.mkdir(parents=True)
    (deep / "far").symlink_to(f"../{'x' * 200}/../名字")
    (deep / os.fsdecode(b"not utf-8 \xff")).write_bytes(b"=\n" * 700)
    return found


def archive_of(folder: Path) -> bytes:
    pieces: list[bytes] = []
    write_archive(folder, pieces.append)
    return b"".join(pieces)


def test_a_folder_arrives_with_its_links(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()

    unpack_archive(io.BytesIO(archive_of(folder)), into)

    assert (into / "pkg" / "__init__.py").read_text() == "ONE = 1"
    assert (into / "same.py").read_text() == "ONE = 1"
    assert (into / "link").readlink().as_posix() == "pkg/inner"
    assert (into / "pkg" / "up").read_text() == "ONE = 1"
    assert (into / "pkg" / "inner" / "tool").stat().st_mode & 0o777 == 0o555
    assert archive_of(into) == archive_of(folder)


def test_the_same_folder_has_the_same_digest_whenever_it_was_made(folder: Path) -> None:
    first = measure_folder(folder)
    os.utime(folder / "pkg" / "__init__.py", (1, 1))

    assert measure_folder(folder) == first
    assert first[1] == len(archive_of(folder))


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for each, of_kind, to in (("door", tarfile.SYMTYPE, "a"), (name, kind, link)):
            info = tarfile.TarInfo(each)
            info.type, info.linkname = of_kind, to
            archive.addfile(info)
    return made.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        entry("../evil"),
        entry("/etc/evil"),
        entry("a/../../evil"),
        entry("out", tarfile.SYMTYPE, "/etc"),
        entry("a/out", tarfile.SYMTYPE, "../../etc"),
        entry("hard", tarfile.LNKTYPE, "/etc/passwd"),
        entry("device", tarfile.CHRTYPE),
        entry("pipe", tarfile.FIFOTYPE),
        entry("door"),
        b"no tar",
    ],
)
def test_what_does_not_belong_into_a_folder_is_refused(archive: bytes, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()

    with pytest.raises(ArchiveRefused):
        unpack_archive(io.BytesIO(archive), into)

    assert not (tmp_path / "evil").exists()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        (tmp_path / "outside").mkdir()
        for name, kind, to in (
            ("d", tarfile.DIRTYPE, ""),
            ("d/l", tarfile.SYMTYPE, "x"),
            ("d/l/file", tarfile.REGTYPE, ""),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, to, 0o755
            archive.addfile(info)
    into = tmp_path / "into"
    into.mkdir()

    with pytest.raises(ArchiveRefused):
        unpack_archive(io.BytesIO(made.getvalue()), into)


def test_a_file_that_says_to_hold_more_than_was_sent_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("holes")
        map_of_data = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
        info.size = len(map_of_data)
        info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
        archive.addfile(info, io.BytesIO(map_of_data))
    into = tmp_path / "into"
    into.mkdir()

    with pytest.raises(ArchiveRefused, match=r"'GNU\.sparse\.major' of an entry"):
        unpack_archive(io.BytesIO(made.getvalue()), into)


def header(kind: bytes, size: int, content: bytes = b"") -> bytes:
    info = tarfile.TarInfo("header")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


class Endless(io.BytesIO):
    """Gives what it begins with, then nothing but the same byte; counts what was taken."""

    def __init__(self, begin: bytes) -> None:
        super().__init__()
        self._begin, self.taken = begin, 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert 0 <= size <= 1 << 20, f"{size} bytes are taken into memory at once"
        assert self.taken < 1 << 20, "Much is taken that nobody needs"
        data = self._begin[self.taken : self.taken + size]
        self.taken += size
        return data + b"x" * (size - len(data))


@pytest.mark.req("OPS-1")
@pytest.mark.parametrize(
    "archive",
    [
        header(tarfile.XHDTYPE, 4 << 30),
        header(tarfile.XHDTYPE, 64 * 1024 + 1),
        header(tarfile.XHDTYPE, -1),
        header(tarfile.REGTYPE, -1),
        header(tarfile.XGLTYPE, 4 << 30),
        header(tarfile.GNUTYPE_LONGNAME, 4 << 30),
        header(tarfile.GNUTYPE_LONGLINK, 4 << 30),
        header(tarfile.GNUTYPE_SPARSE, 4 << 30),
        header(tarfile.XHDTYPE, 9, b"9 path=a\n") * 1000,
        header(tarfile.XHDTYPE, 12, b"12 size=999\n"),
        header(tarfile.XHDTYPE, 8, b"9 path=a"),
        header(tarfile.XHDTYPE, 9, b"0 path=a\n"),
        header(tarfile.XHDTYPE, 9, b"x path=a\n"),
        header(tarfile.XHDTYPE, 0),
    ],
)
def test_what_an_archive_says_of_its_entries_fills_no_memory(archive: bytes, tmp_path: Path) -> None:
    source = Endless(archive)

    with pytest.raises(ArchiveRefused):
        unpack_archive(source, tmp_path)

    assert source.taken <= 2048
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_ends_too_early_is_refused(folder: Path, tmp_path: Path) -> None:
    archive = archive_of(folder)
    for number, size in enumerate((0, 100, 512, 700, len(archive) // 1024 * 512)):
        into = tmp_path / str(number)
        into.mkdir()

        with pytest.raises(ArchiveRefused):
            unpack_archive(io.BytesIO(archive[:size]), into)
