"""Leave something for the next call of the same box: ``leave_…`` leaves it, ``find_…`` is the next call and looks."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .tricks import background, each_other

_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[Any] = []


def leave_files() -> list[str]:
    """In every form that a cleaner could stumble over; at last nobody may even look."""
    for name in (b"left", b".hidden", b"\xff\xfe not text", b"two\nlines", b"-rf"):
        with open(b"/w/" + name, "wb") as file:
            file.write(b"left")
    _kept.append(socket.socket(socket.AF_UNIX))
    for act in (
        lambda: os.symlink("/", "/w/root"),
        lambda: os.symlink("loop", "/w/loop"),
        lambda: os.link("/w/left", "/w/same"),
        lambda: os.mkfifo("/w/fifo"),
        lambda: _kept[-1].bind("/w/socket"),
        lambda: os.truncate("/w/left", 16 * 1024 * 1024),
    ):
        with suppress(OSError):
            act()
    place = "/w/d"
    os.mkdir(place)
    for _ in range(300):
        place += "/d"
        os.mkdir(place)
    os.chmod("/w/d/d", 0)
    os.chmod("/w", 0)
    return []


def leave_no_room() -> list[str]:
    with suppress(OSError), open("/w/large", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1024 * 1024))
    with suppress(OSError):
        for number in range(10_000):
            os.mkdir(f"/w/{number}")
    return []


def leave_an_open_file() -> list[str]:
    """Room in the scratch space that no name leads to any more."""
    file = open("/w/open", "wb", buffering=0)
    with suppress(OSError):
        while True:
            file.write(bytes(1024 * 1024))
    os.unlink("/w/open")
    os.mkdir("/w/here")
    os.chdir("/w/here")
    os.rmdir("/w/here")
    _kept.append(file)
    background(lambda: time.sleep(60))
    return []


def find_files() -> list[str]:
    found = [os.fsdecode(name) for name in os.listdir(b"/w")]
    try:
        with open("/w/new", "wb", buffering=0) as file:
            file.writelines(bytes(1024 * 1024) for _ in range(16))
        os.unlink("/w/new")
    except OSError as error:
        found.append(f"no room: {error}")
    return found


def leave_in_shared_places() -> list[str]:
    for path in (
        "/dev/mqueue/left",
        "/dev/shm/left",
        "/tmp/left",
        "/var/tmp/left",
        "/run/left",
        "/c/left",
        "/data/left",
        "/deps/left",
    ):
        with suppress(OSError):
            Path(path).write_text("left")
    _libc.syscall(29, 0x5155, 4096, 0o1666)  # shmget
    _libc.syscall(68, 0x5155, 0o1666)  # msgget
    _libc.syscall(240, b"left", 0o102, 0o666, None)  # mq_open
    _libc.syscall(248, b"user", b"left", b"left", 4, -4)  # add_key
    return []


def find_in_shared_places() -> list[str]:
    found = []
    for folder in ("/dev/mqueue", "/dev/shm", "/tmp", "/var/tmp", "/run", "/c", "/data", "/deps"):
        with suppress(OSError):
            found += [f"{folder}/{name}" for name in os.listdir(folder)]
    for name, arguments in (
        ("shmget", (29, 0x5155, 0, 0)),
        ("msgget", (68, 0x5155, 0)),
        ("mq_open", (240, b"left", 0, 0, None)),
    ):
        if _libc.syscall(*arguments) >= 0:
            found.append(name)
    return found


def leave_a_process() -> list[str]:
    """It answers on a name that needs no file, and writes where the next call writes."""

    def work() -> None:
        server = socket.socket(socket.AF_UNIX)
        server.bind("\0left")
        server.listen()
        while True:
            with suppress(OSError):
                Path("/w/alive").touch()
            time.sleep(0.01)

    background(work)
    time.sleep(0.05)
    return []


def leave_a_process_that_hops() -> list[str]:
    """Always another process number, so that whoever counts by looking at one after the other misses it."""

    def work() -> None:
        while True:
            if os.fork():
                os._exit(0)

    background(work)
    return []


def leave_a_holder_of_the_pipes() -> list[str]:
    """Ends itself, while a process of its own holds everything open that the call had."""
    background(lambda: time.sleep(60))
    os._exit(0)


def leave_a_process_for_the_next_child() -> list[str]:
    """It stops, slows and kills whatever is started after it."""

    def work() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            each_other(lambda pid: os.kill(pid, signal.SIGSTOP))
            each_other(lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19))

    background(work)
    return []


def find_a_process() -> list[str]:
    found = ["alive"] if os.path.exists("/w/alive") else []
    with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
        client.connect("\0left")
        found.append("it answers")
    time.sleep(0.05)
    return found + (["alive"] if os.path.exists("/w/alive") else [])


def leave_threads() -> list[str]:
    for _ in range(20):
        threading.Thread(target=time.sleep, args=(60,)).start()
    return []


def leave_no_process_numbers() -> list[str]:
    for _ in range(200):
        try:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
        except OSError:
            break
    return []


def find_process_numbers() -> list[str]:
    children = []
    for _ in range(20):
        try:
            children.append(os.fork())
        except OSError as error:
            return [f"only {len(children)} processes: {error}"]
        if children[-1] == 0:
            os._exit(0)
    for child in children:
        os.waitpid(child, 0)
    return []


def leave_descriptors_in_flight() -> list[str]:
    """Sockets that hold each other, with everything that the call had: only the kernel's collector finds them."""
    for _ in range(20):
        left, right = socket.socketpair()
        with suppress(OSError):
            socket.send_fds(left, [b"x"], [left.fileno(), right.fileno(), 0, 1, 2, 3])
            socket.send_fds(right, [b"x"], [left.fileno(), right.fileno(), os.open("/w", os.O_RDONLY)])
        left.close()
        right.close()
    return []


def leave_other_pipes() -> list[str]:
    """Its own ends of the pipes, as odd as they can be made, and closed."""
    for fd in range(1, 5):
        for command, value in (
            (fcntl.F_SETFL, os.O_NONBLOCK | getattr(os, "O_ASYNC", 0o20000)),
            (fcntl.F_SETPIPE_SZ, 4096),
        ):
            with suppress(OSError):
                fcntl.fcntl(fd, command, value)
    for fd in (1, 2, 4):
        with suppress(OSError):
            os.close(fd)
    return []


def leave_locks_and_timers() -> list[str]:
    for path in (os.__file__, sys.executable, __file__, "/w", "/opt/toolhub/sandbox/call.py"):
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY)
            _kept.append(fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    _libc.personality(0x0040000)
    _libc.prctl(1, 0)  # PR_SET_PDEATHSIG
    _libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    background(lambda: time.sleep(60))
    return []
