"""Npm archives: does nothing of a package's file lie elsewhere or take more than it may, and is what needs a build named?"""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from registry.dependencies import npm_archives
from registry.dependencies.npm_archives import (
    ArchiveSize,
    ArchiveUnfit,
    NeedsBuild,
    PackageCheck,
    measure_archive,
    unpack_archive,
)
from tests.support.npm_packages import NAME, VERSION, about_of, pack_files, pack_package, zip_bytes

if TYPE_CHECKING:
    from pathlib import Path


def entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def unpack_checked(packed: bytes, place: Path, version: str = VERSION) -> None:
    check = PackageCheck(NAME, version)
    unpack_archive(packed, place, check_about=check.take)
    check.end()


@pytest.mark.req("BRING-2")
def test_plain_files_are_written_below_the_place_whatever_the_folder_is_called(tmp_path: Path) -> None:
    long = f"{'d' * 90}/{'e' * 90}/{'f' * 60}.js"
    files = [("any/package.json", about_of()), (f"any/{long}", b"long"), ("any/ü.js", b"u"), ("any/empty", b"")]

    unpack_checked(pack_files([(entry("any", tarfile.DIRTYPE), b""), *files]), tmp_path / "a")

    assert (tmp_path / "a" / long).read_bytes() == b"long"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(
        ["d" * 90, "empty", "package.json", "ü.js"]
    )


def test_gnu_names_are_read_too(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo(f"package/{'x' * 200}"), io.BytesIO())

    unpack_archive(packed.getvalue(), tmp_path / "a")

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["x" * 200]


HOSTILE: dict[str, tuple[list[tuple[Any, bytes]], str]] = {
    "above": ([("package/../../outside", b"x")], "none that a file may have"),
    "above by its folder": ([("../outside", b"x")], "none that a file may have"),
    "absolute": ([("/tmp/outside", b"x")], "none that a file may have"),
    "backslash": ([("package/..\\outside", b"x")], "none that a file may have"),
    "dot": ([("package/./a", b"x")], "none that a file may have"),
    "NUL and controls": ([("package/a\x1b[2J", b"x")], "none that a file may have"),
    "no folder": ([("outside", b"x")], "lies in no folder"),
    "symbolic link": ([(entry("package/a", tarfile.SYMTYPE, "/etc"), b""), ("package/a/b", b"x")], "a symbolic link"),
    "hard link": ([(entry("package/a", tarfile.LNKTYPE, "/etc/passwd"), b"")], "a hard link"),
    "device": ([(entry("package/a", tarfile.CHRTYPE), b"")], "a device"),
    "block device": ([(entry("package/a", tarfile.BLKTYPE), b"")], "a device"),
    "pipe": ([(entry("package/a", tarfile.FIFOTYPE), b"")], "a pipe"),
    "contiguous": ([(entry("package/a", tarfile.CONTTYPE), b"")], "of a kind that is not known"),
    "twice": ([("package/a", b"x"), ("package/a", b"y")], "twice"),
    "twice but for case": ([("package/a", b"x"), ("package/A", b"y")], "twice but for case"),
    "folder but for case": ([("package/a/b", b"x"), ("package/A/c", b"y")], "twice but for case"),
    "file and folder": ([("package/a", b"x"), ("package/a/b", b"y")], "twice"),
    "folder and file": ([("package/a/b", b"x"), ("package/a", b"y")], "twice"),
    "a file called so": ([("package/file", b"x"), ("package/file/b", b"y")], "twice"),
    "from other folders": ([("one/a", b"x"), ("two/a", b"y")], "twice"),
    "deep": ([("package/" + "a/" * 60 + "b", b"x")], "none that a file may have"),
    "long": ([("package/" + "a" * 1100, b"x")], "none that a file may have"),
    "a long word": ([("package/" + "a" * 256, b"x")], "none that a file may have"),
}


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("how", HOSTILE)
def test_what_is_no_plain_file_below_its_folder_is_refused(tmp_path: Path, how: str) -> None:
    files, says = HOSTILE[how]

    with pytest.raises(ArchiveUnfit, match=says):
        unpack_archive(pack_files(files), tmp_path / "within" / "a")

    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "within" / "outside").exists()


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE) -> list[tuple[Any, bytes]]:
    packed = io.BytesIO()
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(records)
    packed.write(info.tobuf(tarfile.USTAR_FORMAT))
    packed.write(records + bytes(-len(records) % 512))
    plain = tarfile.TarInfo("package/a")
    packed.write(plain.tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    return [(packed.getvalue(), b"")]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (pax(b"22 path=../../outside\n")[0][0], "none that a file may have"),
        (pax(b"12 size=999\n")[0][0], "what plain files have not"),
        (pax(b"17 linkpath=/etc\n")[0][0], "what plain files have not"),
        (pax(b"22 GNU.sparse.major=1\n")[0][0], "what plain files have not"),
        (pax(b"18 path=package/b\n", tarfile.XGLTYPE)[0][0], "names all its files at once"),
        (pax(b"99 path=a\n")[0][0], "cannot be read"),
        (pax(b"x" * 70_000)[0][0], "says too much"),
        (b"x" * 1024, "A number in it cannot be read|no tar"),
        (tarfile.TarInfo("package/a").tobuf(tarfile.USTAR_FORMAT), "ends in the middle"),
    ],
    ids=["path", "size", "link", "sparse", "global", "length", "much", "no tar", "cut short"],
)
def test_what_is_said_of_a_file_leads_nowhere_else(tmp_path: Path, raw: bytes, says: str) -> None:
    with pytest.raises(ArchiveUnfit, match=says):
        unpack_archive(gzip.compress(raw), tmp_path / "within" / "a")


@pytest.mark.req("BRING-2")
def test_a_bomb_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm_archives, "MAX_BYTES", 8 << 20)
    zeros = tarfile.TarInfo("package/a")
    zeros.size = 64 << 20
    bomb = gzip.compress(zeros.tobuf(tarfile.USTAR_FORMAT) + bytes(zeros.size))

    with pytest.raises(ArchiveUnfit, match="more than 8 MiB"):
        unpack_archive(bomb, tmp_path / "a")
    with pytest.raises(ArchiveUnfit, match="no gzip"):
        unpack_archive(b"no gzip", tmp_path / "b")
    assert len(bomb) < 100_000
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 9 << 20


def test_too_many_files_are_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm_archives, "MAX_FILES", 10)

    with pytest.raises(ArchiveUnfit, match="more than 10 files"):
        unpack_archive(pack_files((f"package/{n}", b"") for n in range(20)), tmp_path / "a")
    assert zip_bytes(1)


FOLDERS: dict[str, list[Any]] = {
    "wide": [(entry(f"package/{n}", tarfile.DIRTYPE), b"") for n in range(20_001)],
    "deep": [(entry(f"package/{n}/" + "d/" * 36 + "e", tarfile.DIRTYPE), b"") for n in range(600)],
    "deep by files": [(f"package/{n}/" + "d/" * 36 + "e", b"") for n in range(600)],
}


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("how", FOLDERS)
def test_a_bomb_of_folders_is_refused_before_anything_is_written(tmp_path: Path, how: str) -> None:
    packed = pack_files([("package/package.json", about_of()), *FOLDERS[how]])

    with pytest.raises(ArchiveUnfit, match="more than 20,000 files and folders"):
        unpack_archive(packed, tmp_path / "a")

    assert not (tmp_path / "a").exists()


@pytest.mark.req("BRING-2")
def test_what_is_refused_at_its_end_has_left_nothing(tmp_path: Path) -> None:
    packed = pack_files([("package/package.json", about_of()), ("package/a", b"x"), ("package/../../outside", b"x")])

    with pytest.raises(ArchiveUnfit):
        unpack_archive(packed, tmp_path / "a")

    assert not (tmp_path / "a").exists()


def test_folders_and_pages_count_for_what_it_takes() -> None:
    packed = pack_files([("package/a/b/empty", b""), ("package/large", b"x" * 5000)])

    assert measure_archive(packed) == ArchiveSize(files=4, bytes=6 * 4096)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("about", "files", "says"),
    [
        ({"scripts": {"postinstall": "node x.js"}}, {}, "postinstall"),
        ({"scripts": {"install": "node-gyp rebuild"}}, {}, "install"),
        ({"scripts": {"preinstall": "x"}}, {}, "preinstall"),
        ({"gypfile": True}, {}, "gypfile"),
        ({}, {"binding.gyp": "{}"}, "binding.gyp"),
        ({}, {"node_modules/b/package.json": '{"scripts": {"install": "x"}}'}, r"\(node_modules/b\): install"),
        ({}, {"node_modules/@b/c/binding.gyp": "{}", "node_modules/@b/c/package.json": "{}"}, r"\(node_modules/@b/c\)"),
    ],
)
def test_what_has_to_be_run_to_be_installed_is_named(
    tmp_path: Path, about: dict[str, Any], files: dict[str, str], says: str
) -> None:
    with pytest.raises(NeedsBuild, match=says):
        unpack_checked(pack_package(files=files, **about), tmp_path / "a")


def test_scripts_of_development_are_nobodys_business_here(tmp_path: Path) -> None:
    packed = pack_package(scripts={"prepare": "tsc", "build": "tsc", "test": "x"})

    unpack_checked(packed, tmp_path / "a")
    with pytest.raises(ArchiveUnfit, match="another package or version"):
        unpack_checked(packed, tmp_path / "b", "1.0.1")
    with pytest.raises(ArchiveUnfit, match=r"no package\.json"):
        unpack_checked(pack_files([("package/a.js", b"")]), tmp_path / "c")


@pytest.mark.req("BRING-2")
def test_what_bundled_packages_say_is_looked_at_and_not_kept(tmp_path: Path) -> None:
    said = about_of("b", "1.0.0") + b" " * 1_000_000
    bundled = [(f"package/node_modules/b{number}/package.json", said) for number in range(40)]
    packed = pack_files([("package/package.json", about_of()), *bundled])
    tracemalloc.start()
    try:
        unpack_checked(packed, tmp_path / "a")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 20 * len(said)
