"""Use up what others need."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import threading
import time
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
    for _ in range(8):
        if os.fork() == 0:
            block = bytearray(b"x") * (200 * 1024 * 1024)
            time.sleep(60)
            os._exit(len(block) and 0)
    deadline = time.monotonic() + 3
    ended = 0
    while ended < 7 and time.monotonic() < deadline:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        ended += 1 if pid else 0
        time.sleep(0.05)
    return [] if ended == 7 else [f"{8 - ended} children with 200 MiB each"]


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
    return "x" * (64 * 1024 * 1024)


def huge_result_past_the_runtime() -> NoReturn:
    while True:
        os.write(3, b"x" * 65_536)


def huge_exception() -> NoReturn:
    raise ValueError("x" * (32 * 1024 * 1024))
