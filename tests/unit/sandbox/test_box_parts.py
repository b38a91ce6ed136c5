"""Small parts of the box that need no box."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from sandbox import namespaces, programs, scratch
from sandbox.ipc import WORD_BYTES, open_in_memory, receive_message, receive_work, send_message, send_work
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    yield one, other
    one.close()
    other.close()


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 5_000_000])
def test_what_is_given_is_taken_however_much_it_is(ends: tuple[socket.socket, socket.socket], size: int) -> None:
    read, write = os.pipe()
    data = os.urandom(size)

    send_work(ends[0], data, [write])
    taken, descriptors = receive_work(ends[1])

    assert taken == data
    os.write(descriptors[0], b"x")
    assert os.read(read, 1) == b"x"
    for fd in (read, write, *descriptors):
        os.close(fd)


def test_from_one_who_has_gone_nothing_is_taken(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()

    with pytest.raises(EOFError):
        receive_work(ends[1])
    assert receive_message(ends[1]) == (b"", 0, [])


def test_the_kernel_says_who_speaks(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[1].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    fd = open_in_memory(b"data")

    socket.send_fds(ends[0], [b"hello"], [fd])
    message, pid, descriptors = receive_message(ends[1])

    assert (message, pid) == (b"hello", os.getpid())
    assert os.read(descriptors[0], 10) == b"data"
    for each in (fd, *descriptors):
        os.close(each)


def test_several_descriptors_come_in_the_order_in_which_they_were_sent(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    given = [open_in_memory(text) for text in (b"one", b"two", b"three")]

    send_message(ends[0], b"take", given)
    message, _, taken = receive_message(ends[1], WORD_BYTES, len(given))

    assert message == b"take"
    assert [os.read(fd, 10) for fd in taken] == [b"one", b"two", b"three"]
    for each in (*given, *taken):
        os.close(each)


def test_to_run_a_program_needs_its_loader_and_a_script_its_interpreter(tmp_path: Path) -> None:
    python = os.path.realpath(sys.executable)
    (tmp_path / "script").write_text(f"#!{python} -I\nprint()")
    (tmp_path / "script-of-script").write_text(f"#! {tmp_path}/script\n")
    (tmp_path / "circle").write_text(f"#!{tmp_path}/circle\n")
    (tmp_path / "empty").write_text("#!\n")

    plain = programs.Programs([python], None, []).runnable
    script = programs.Programs([f"{tmp_path}/script-of-script"], None, []).runnable

    assert plain[0] == python
    assert "/ld-" in plain[1]
    assert script == (f"{tmp_path}/script-of-script", f"{tmp_path}/script", *plain)
    assert programs.Programs([f"{tmp_path}/circle"], None, []).runnable == (f"{tmp_path}/circle",)
    assert programs.Programs([f"{tmp_path}/empty", "/no/such"], None, []).runnable == (f"{tmp_path}/empty", "/no/such")


def test_a_folder_is_emptied_whatever_its_modes_and_nothing_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    place = tmp_path / "w"
    (place / "a" / "b" / "c").mkdir(parents=True)
    (place / "a" / "file").write_text("x")
    (place / "a" / "link").symlink_to(outside)
    (place / "a" / "b").chmod(0)
    (place / "a").chmod(0o500)
    monkeypatch.setattr(scratch, "WORK", str(place))
    folders = scratch.Scratch()
    folders.expect(100, with_files=False)

    assert folders.clear()

    assert list(place.iterdir()) == []
    assert (outside / "kept").read_text() == "kept"


def test_a_folder_that_cannot_be_emptied_in_time_is_said_to_be_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr(scratch, "WORK", str(tmp_path))
    monkeypatch.setattr(scratch, "_PATIENCE_S", -1)
    folders = scratch.Scratch()
    folders.expect(100, with_files=False)

    assert not folders.clear()


@pytest.mark.parametrize("act", ["chmod", "utime", "write", "create", "remove"])
def test_whoever_changes_the_package_is_noticed(tmp_path: Path, act: str) -> None:
    (tmp_path / "tool" / "below").mkdir(parents=True)
    file = tmp_path / "tool" / "below" / "main.py"
    file.write_text("x")
    folders = scratch.Scratch()
    folders._modes = {}
    folders.watch_package(str(tmp_path))
    file.read_text()
    untouched = folders.clear()

    match act:
        case "chmod":
            file.chmod(0o600)
        case "utime":
            os.utime(file, (1, 1))
        case "write":
            file.write_text("y")
        case "create":
            (tmp_path / "new").touch()
        case _:
            file.unlink()

    assert untouched
    assert not folders.clear()


def test_no_namespace_is_asked_for_that_a_tool_could_not_be_kept_from() -> None:
    names = {"mount": 0x20000, "ipc": 0x08000000, "user": 0x10000000, "pid": 0x20000000}

    assert sum(names.values()) == namespaces.NAMESPACES
    assert all(flags & 0b1110 == 0b1110 for flags in namespaces.MOUNT_FLAGS)  # nosuid, nodev, noexec


def test_progress_is_a_line_of_the_log_where_nobody_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    with runtime.running(runtime.Call()):
        runtime.log("begun")
        runtime.progress(0.25, "a quarter")
        runtime.progress(1)

    assert capsys.readouterr().out == "begun\n25% a quarter\n100%\n"


def test_progress_is_a_json_object_where_somebody_takes_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[bytes] = []

    with runtime.running(runtime.Call(), progress=lines.append):
        runtime.progress(0.25, "ein Viertel \N{LATIN SMALL LETTER U WITH DIAERESIS}ber")
    runtime.progress(0.5)

    assert lines == [b'{"fraction": 0.25, "message": "ein Viertel \\u00fcber"}\n']
    assert capsys.readouterr().out == "50%\n"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_progress_goes_from_nothing_to_all(fraction: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        runtime.progress(fraction)


def test_progress_that_nobody_reads_any_more_is_no_error() -> None:
    def broken(_: bytes) -> None:
        raise BrokenPipeError

    with runtime.running(runtime.Call(), progress=broken):
        runtime.progress(0.5)
