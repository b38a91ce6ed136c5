"""Use up what others need."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def processes() -> list[str]:
    started = 0
    for _ in range(1000):
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
    return [f"{started} processes"] if started > 64 else []


def fork_bomb() -> NoReturn:
    while True:
        try:
            os.fork()
        except OSError:
            continue


def threads() -> list[str]:
    started = 0
    for _ in range(1000):
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            break
        started += 1
    return [f"{started} threads"] if started > 64 else []


def memory() -> list[str]:
    held: list[bytes] = []
    while len(held) < 4096:
        held.append(b"x" * (1024 * 1024))
    return [f"{len(held)} MiB"]


def memory_by_children() -> list[str]:
    """Each says so when it has its 200 MiB; no two may have it at the same time."""
    outlet, inlet = os.pipe()
    os.set_blocking(outlet, False)
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(b"x") * (200 * 1024 * 1024)
            os.write(inlet, b"x")
            time.sleep(60)
            os._exit(len(block) and 0)
    deadline = time.monotonic() + 3
    ended = have = 0
    while ended < 7 and time.monotonic() < deadline:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        ended += 1 if pid else 0
        with suppress(BlockingIOError):
            have += len(os.read(outlet, 8))
        time.sleep(0.02)
    return [f"{have - ended} children with 200 MiB each"] if have - ended > 1 else []


def memory_in_files_without_names() -> list[str]:
    held = 0
    try:
        for number in range(64):
            fd = os.memfd_create(f"m{number}")
            held += os.write(fd, bytes(32 * 1024 * 1024)) // (1024 * 1024)
    except OSError:
        pass
    return [f"{held} MiB"] if held > 320 else []


def processor() -> NoReturn:
    for number in (signal.SIGXCPU, signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        pass


def processor_by_a_chain() -> list[str]:
    """Each takes less than it may, and has begun anew; none is waited for by the one that had it made."""
    done, end = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.8:
                    pass
                os.write(end, b"x")
            os._exit(0)
        os.wait()
        os.read(done, 1)
    return []


def processor_by_threads() -> NoReturn:
    for _ in range(32):
        threading.Thread(target=processor_of_a_thread, daemon=True).start()
    while True:
        pass


def processor_of_a_thread() -> NoReturn:
    while True:
        sum(range(10_000))


def disk() -> list[str]:
    written = 0
    try:
        for number in range(1000):
            with open(f"/w/{number}", "wb") as file:
                for _ in range(16):
                    written += file.write(bytes(1024 * 1024))
                    file.flush()
    except OSError:
        pass
    return [f"{written} bytes"] if written > 33 * 1024 * 1024 else []


def files() -> list[str]:
    made = 0
    try:
        for number in range(100_000):
            Path(f"/w/{number}").touch()
            made += 1
    except OSError:
        pass
    return [f"{made} files"] if made > 4096 else []


def deep_folders() -> list[str]:
    made = 0
    try:
        while made < 100_000:
            os.mkdir("d")
            os.chdir("d")
            made += 1
    except OSError:
        pass
    return [f"{made} folders"] if made > 4096 else []


def descriptors() -> list[str]:
    held: list[int] = []
    try:
        while len(held) < 10_000:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    return [f"{len(held)} descriptors"] if len(held) > 256 else []


def pipe_pages() -> list[str]:
    grown = 0
    try:
        while grown < 200:
            _, inlet = os.pipe()
            fcntl.fcntl(inlet, fcntl.F_SETPIPE_SZ, 1024 * 1024)
            grown += 1
    except OSError:
        pass
    return [f"{grown} pipes of 1 MiB"] if grown > 64 else []


def flood_of_output() -> NoReturn:
    line = "x" * 65_536
    while True:
        sys.stdout.write(line)
        sys.stderr.write(line)


def slow_output() -> NoReturn:
    while True:
        os.write(1, b"x" * 1000)
        time.sleep(0.005)


def huge_result() -> str:
    return "x" * (8 * 1024 * 1024)


def huge_result_past_the_runtime() -> NoReturn:
    while True:
        os.write(3, b"x" * 65_536)


def huge_exception() -> NoReturn:
    raise ValueError("x" * (32 * 1024 * 1024))


def flood_of_progress() -> NoReturn:
    line = b'{"done": 1, "of": 2}\n' * 3000
    while True:
        os.write(4, line)


def one_endless_line() -> NoReturn:
    """Of progress, which is said line by line."""
    while True:
        os.write(4, b'"' * 65_536)


def flood_of_tiny_writes() -> NoReturn:
    while True:
        os.write(1, b"\xff")
        os.write(2, b"\x1b[2J")


def flood_by_children() -> NoReturn:
    for _ in range(8):
        if os.fork() == 0:
            break
    while True:
        os.write(2, b"x" * 65_536)


def sockets_in_flight() -> list[str]:
    """Descriptors that no process has open, only messages that nobody reads."""
    sent = 0
    with suppress(OSError):
        while sent < 5000:
            left, right = socket.socketpair()
            socket.send_fds(left, [b"x"], [right.fileno()] * 50)
            right.close()
            left.detach()
            sent += 50
    return [f"{sent} in flight"] if sent >= 5000 else []


def buffers_of_sockets() -> list[str]:
    held, kept = 0, []
    with suppress(OSError):
        for _ in range(1000):
            left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            kept += [left, right]
            left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024 * 1024)
            left.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    held += left.send(bytes(32_768))
    return [f"{held} bytes in sockets"] if held > 256 * 1024 * 1024 else []


def watches() -> list[str]:
    made = 0
    libc = ctypes.CDLL(None)
    while made < 1000 and libc.inotify_init1(0) >= 0:
        made += 1
    return [f"{made} watches"] if made > 256 else []


def timers() -> list[str]:
    libc, made, timer = ctypes.CDLL(None), 0, ctypes.c_void_p()
    while made < 300_000 and libc.timer_create(0, None, ctypes.byref(timer)) == 0:
        made += 1
    return [f"{made} timers"] if made >= 300_000 else []


def event_polls() -> list[str]:
    made: list[select.epoll] = []
    with suppress(OSError):
        while len(made) < 2000:
            made.append(select.epoll())
            for other in made[-5:-1]:
                with suppress(OSError):
                    made[-1].register(other.fileno())
    return [f"{len(made)} polls"] if len(made) > 256 else []


def maps() -> list[str]:
    """Many maps of one page each, alternating so that the kernel cannot join them."""
    kept: list[mmap.mmap] = []
    with suppress(OSError, ValueError):
        while len(kept) < 200_000:
            kept.append(mmap.mmap(-1, 4096, prot=mmap.PROT_READ | (mmap.PROT_WRITE if len(kept) % 2 else 0)))
    return [f"{len(kept)} maps"] if len(kept) >= 200_000 else []


def stack() -> NoReturn:
    sys.setrecursionlimit(10**9)
    deep: list[object] = []
    for _ in range(10**6):
        deep = [deep]
    repr(deep)
    raise SystemExit


def one_long_operation() -> NoReturn:
    """Nothing of Python's runs in between: no signal handler, no thread."""
    sys.set_int_max_str_digits(0)
    print(len(str(7 ** (10**8))))
    raise SystemExit


def memory_that_is_locked() -> list[str]:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    block = mmap.mmap(-1, 64 * 1024 * 1024)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    return ["locked"] if libc.mlock(ctypes.c_void_p(address), 64 * 1024 * 1024) == 0 or libc.mlockall(3) == 0 else []


def zombies() -> list[str]:
    made = 0
    with suppress(OSError):
        while made < 1000:
            if os.fork() == 0:
                os._exit(0)
            made += 1
    return [f"{made} zombies"] if made > 64 else []


def names_moved_around() -> list[str]:
    """Keep the file system busy until it is stopped."""
    os.mkdir("/w/a")
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        os.rename("/w/a", "/w/b")
        os.symlink("x" * 200, "/w/a")
        os.unlink("/w/a")
        os.rename("/w/b", "/w/a")
    return []


def one_enormous_file() -> list[str]:
    with open("/w/sparse", "wb") as file, suppress(OSError):
        os.truncate(file.fileno(), 1 << 40)
        return ["a file of 1 TiB"]
    return []
