"""Box files: does a box take only what a call may leave, whatever lies there?"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.files import (
    DATA,
    CollectedFiles,
    UnsafePath,
    collect_files,
    lay_out,
    make_folders,
    open_safely,
    snapshot_files,
    split_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WRITE = [{"path": "/data/out", "kind": "tree", "actions": ["create", "write"]}]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The folder of a call: a descriptor of it and its place, with ``/data/out`` made."""
    place = tmp_path / "data"
    place.mkdir()
    (tmp_path / "secret").write_text("SECRET")
    folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    make_folders(folder, WRITE)
    yield folder, place
    os.close(folder)


def take(
    folder: int, before: dict[str, Any] | None = None, *, most: int = 100, most_bytes: int = 1 << 20
) -> CollectedFiles:
    return collect_files(folder, WRITE, before or {}, most=most, most_bytes=most_bytes)


@pytest.mark.req("TOOLS-3", "SVC-6")
def test_what_a_call_brings_is_laid_out_and_what_it_makes_is_taken(data: tuple[int, Path]) -> None:
    folder, place = data
    lay_out(folder, [("/data/in/a/b.txt", b"given"), ("/data/out/old.txt", b"old"), ("/data/out/same.txt", b"same")])
    before = snapshot_files(folder, ["/data/in/a/b.txt", "/data/out/old.txt", "/data/out/same.txt"])
    assert (place / "in/a/b.txt").read_bytes() == b"given"

    (place / "out/new.txt").write_bytes(b"new")
    (place / "out/old.txt").write_bytes(b"changed")
    found = take(folder, before)

    assert found.files == [("/data/out/new.txt", b"new"), ("/data/out/old.txt", b"changed")]
    assert found.gone == []
    assert found.skipped == []


def test_a_file_that_is_gone_is_said_to_be(data: tuple[int, Path]) -> None:
    folder, place = data
    lay_out(folder, [("/data/out/old.txt", b"old")])
    before = snapshot_files(folder, ["/data/out/old.txt"])
    (place / "out/old.txt").unlink()

    assert take(folder, before).gone == ["/data/out/old.txt"]


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("below", [(), ("x",)])
def test_a_file_whose_place_a_folder_has_taken_is_gone(data: tuple[int, Path], below: tuple[str, ...]) -> None:
    folder, place = data
    lay_out(folder, [("/data/out/a", b"old")])
    before = snapshot_files(folder, ["/data/out/a"])
    (place / "out/a").unlink()
    (place / "out/a").mkdir()
    for name in below:
        (place / "out/a" / name).write_bytes(b"new")

    found = take(folder, before)

    assert (found.gone, [path for path, _ in found.files]) == (
        ["/data/out/a"],
        [f"/data/out/a/{name}" for name in below],
    )


@pytest.mark.parametrize("how", ["link", "parent link", "fifo"])
def test_a_file_whose_place_something_else_has_taken_is_gone(data: tuple[int, Path], how: str) -> None:
    folder, place = data
    lay_out(folder, [("/data/out/in/a", b"old")])
    before = snapshot_files(folder, ["/data/out/in/a"])
    (place / "out/in/a").unlink()
    match how:
        case "link":
            (place / "out/in/a").symlink_to("/etc/passwd")
        case "parent link":
            (place / "out/in").rmdir()
            (place / "out/in").symlink_to("/etc")
        case "fifo":
            os.mkfifo(place / "out/in/a")

    found = take(folder, before)

    assert (found.gone, found.files) == (["/data/out/in/a"], [])
    assert found.skipped


@pytest.mark.req("SVC-10")
def test_nothing_that_a_tool_plants_is_followed(data: tuple[int, Path]) -> None:
    folder, place = data
    out = place / "out"
    (out / "good.txt").write_bytes(b"hello")
    (out / "etc").symlink_to("/etc")
    (out / "passwd").symlink_to("/etc/passwd")
    (out / "up").symlink_to("../../secret")
    (out / "magic").symlink_to("/proc/self/root")
    os.mkfifo(out / "fifo")
    os.link(place.parent / "secret", out / "hard")
    with (out / "sparse").open("wb") as file:
        file.truncate(10 << 30)
    (out / "new\nline").write_bytes(b"x")
    os.close(os.open(os.fsencode(out) + b"/bad\xff", os.O_WRONLY | os.O_CREAT))

    found = take(folder)

    assert found.files == [("/data/out/good.txt", b"hello")]
    assert len(found.skipped) == 9
    assert b"SECRET" not in repr(found).encode()


def test_a_device_is_not_opened_for_reading(data: tuple[int, Path]) -> None:
    folder, place = data
    os.mknod(place / "out" / "zero", 0o600 | 0o020000, os.makedev(1, 5))

    assert take(folder).files == []


def test_a_file_outside_of_what_may_be_written_is_left(data: tuple[int, Path]) -> None:
    folder, place = data
    (place / "elsewhere.txt").write_bytes(b"x")

    found = take(folder)

    assert found.files == []
    assert found.skipped == [("/data/elsewhere.txt", "not where it may write")]


def test_number_and_size_are_limited(data: tuple[int, Path]) -> None:
    folder, place = data
    for number in range(4):
        (place / "out" / f"{number}").write_bytes(b"0123456789")

    assert len(take(folder, most=2).files) == 2
    assert len(take(folder, most_bytes=25).files) == 2
    assert take(folder, most=0).files == []


def test_a_tree_that_is_too_deep_or_too_wide_is_left(data: tuple[int, Path]) -> None:
    folder, place = data
    deep = place / "out"
    for _ in range(20):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x")

    found = take(folder)

    assert found.files == []
    assert any("deeper" in why for _, why in found.skipped)


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(data: tuple[int, Path]) -> None:
    folder, place = data
    race, other = place / "out" / "race", place / "out" / "other"
    race.mkdir()
    (race / "secret").write_bytes(b"mine")
    over = threading.Event()

    def flip() -> None:
        while not over.is_set():
            race.rename(other)
            race.symlink_to("../..")
            race.unlink()
            other.rename(race)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        taken = [content for _ in range(300) for _, content in take(folder).files]
    finally:
        over.set()
        thread.join()

    assert set(taken) <= {b"mine"}


def test_inputs_are_not_written_through_a_link(data: tuple[int, Path]) -> None:
    folder, place = data
    (place / "in").symlink_to(place.parent)

    with pytest.raises(OSError, match="in"):
        lay_out(folder, [("/data/in/secret", b"x")])

    assert (place.parent / "secret").read_text() == "SECRET"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/data", "/data/", "/data/../x", "/data/a//b", "/data/a/./b", "/data/a\0b", "/data/a\\b",
     "/data/\u202egnp.txt", "/data/" + "x" * 300, "/data/" + "a/" * 20 + "b", "data/x", "/data/\ud800", ""],
)  # fmt: skip
def test_a_path_that_no_file_may_have_is_refused(path: str) -> None:
    with pytest.raises(UnsafePath):
        split_path(path)


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5))
def test_a_path_is_its_parts_or_nothing(names: list[str]) -> None:
    path = DATA + "/" + "/".join(names)
    try:
        parts = split_path(path)
    except UnsafePath:
        return
    assert "/".join([DATA, *parts]) == path
    assert not {"", ".", ".."} & set(parts)


def test_opening_never_leaves_the_folder(data: tuple[int, Path]) -> None:
    folder, _ = data
    for path in ("../secret", "/etc/passwd", "out/../../secret"):
        with pytest.raises(OSError, match=r"."):
            open_safely(folder, path, os.O_RDONLY)
