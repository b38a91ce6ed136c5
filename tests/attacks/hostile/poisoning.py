"""Change what the next call of the same box is made from, or read in memory what the one before was given."""

from __future__ import annotations

import array
import builtins
import ctypes
import fcntl
import gc
import json
import mmap
import os
import platform
import re
import resource
import signal
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from unitools import runtime

from .tricks import each_other

_TGKILL = {"x86_64": 234, "aarch64": 131}[platform.machine()]
_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[Any] = []


def leave_poisoned_modules() -> list[str]:
    from sandbox import call

    def forged(*_: object, **__: object) -> str:
        return '["forged"]'

    dumps = json.dumps
    builtins.sum = lambda *_: 666  # type: ignore[assignment]
    runtime.secret = forged
    call.answer_call = forged  # type: ignore[assignment]
    sys.modules["hashlib"] = sys.modules["os"]
    sys.path.insert(0, "/w")
    sys.meta_path.clear()
    sys.setrecursionlimit(60)
    sys.excepthook = forged
    os.environ["LEFT"] = "left"
    os.umask(0o777)
    json.JSONEncoder.encode = lambda self, value: dumps([])  # type: ignore[method-assign,assignment]
    gc.disable()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
    return []


def leave_poisoned_memory() -> list[str]:
    """Change what Python takes for constants: the number 7, and the code of a function."""
    ctypes.memmove(id(7) + object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t), b"\x09\0\0\0", 4)
    code = json.loads.__code__.co_code
    start = id(json.loads.__code__)
    block = ctypes.string_at(start, 4096)
    place = block.find(code[:8])
    if place > 0:
        ctypes.memmove(start + place, b"\x09\0" * 4, 8)
    os._exit(0)


def leave_rewritten_code() -> list[str]:
    """Sources, byte code beside them, byte code where only its header is looked at."""
    for folder in (
        "/opt/toolhub/sandbox",
        "/opt/toolhub/unitools",
        os.path.dirname(__file__),
        os.path.dirname(os.__file__),
        "/deps",
    ):
        for name in ("call.py", "runtime.py", "innocent.py", "os.py", "sitecustomize.py", "json.py"):
            for path in (f"{folder}/{name}", f"{folder}/__pycache__/{name[:-3]}.cpython-311.pyc"):
                with suppress(OSError):
                    os.chmod(os.path.dirname(path), 0o777)
                with suppress(OSError):
                    os.chmod(path, 0o777)
                with suppress(OSError):
                    os.unlink(path)
                with suppress(OSError), open(path, "wb") as file:
                    file.write(b"raise SystemExit('rewritten')")
    return []


def leave_a_package_that_cannot_be_read() -> list[str]:
    """Its files belong to the user that runs it: other rights, another age."""
    for folder, names, files in os.walk("/p"):
        for name in (*files, *names):
            with suppress(OSError):
                os.utime(f"{folder}/{name}", (1, 1))
            with suppress(OSError):
                os.chmod(f"{folder}/{name}", 0)
    for path in ("/p", "/w", "/data", "/c", "/deps"):
        with suppress(OSError):
            os.chmod(path, 0)
    return []


def leave_a_secret(canary: str = "") -> list[str]:
    """In as many places of memory as there are: the heap, maps, a file without a name, a pipe, the stack of a thread."""
    text = canary.encode()
    _kept.append([text + bytes([number % 256]) for number in range(10_000)])
    block = mmap.mmap(-1, 16 * 1024 * 1024)
    block.write(text * (16 * 1024 * 1024 // len(text)))
    _kept.append(block)
    with suppress(OSError):
        os.write(os.memfd_create("left"), text * 1000)
    _, inlet = os.pipe()
    os.write(inlet, text * 100)
    threading.Thread(target=lambda kept: time.sleep(60), args=(text * 100,), daemon=True).start()
    os.environ["CANARY"] = canary
    print(canary)
    return []


def find_a_secret() -> list[str]:
    """Search all memory that this process can read, used, freed, and newly given to it, for what is not its own."""
    fresh = mmap.mmap(-1, 32 * 1024 * 1024)
    heap = [ctypes.create_string_buffer(size) for size in (64, 512, 4096, 65_536) for _ in range(200)]
    pattern = re.compile(b"cana" + b"ry-[0-9a-f]{32}")
    found = {match.decode() for match in pattern.findall(fresh)}
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in list(maps):
            place, rights = line.split()[:2]
            begin, end = (int(part, 16) for part in place.split("-"))
            if "r" in rights:
                with suppress(OSError, ValueError, OverflowError):
                    memory.seek(begin)
                    found |= {match.decode() for match in pattern.findall(memory.read(end - begin))}
    return sorted(found - {runtime.secret("CANARY")}) if heap else []


def leave_word_in_attributes() -> list[str]:
    """What a file is marked with, what it is said to be for, when it was read last."""
    for path in _places():
        fd = os.open(path, os.O_RDONLY)
        for size, name, mark in (("l", 0x40086602, 0x40), ("i", 0x40046602, 0x40), ("l", 0x40087602, 7)):
            with suppress(OSError):
                fcntl.ioctl(fd, name, array.array(size, [mark, 0]), True)
        with suppress(OSError):
            fcntl.ioctl(fd, 0x401C5820, struct.pack("=IIIII8x", 0x80, 0, 0, 7, 0))
        for name in (1036, 1038):  # F_SET_RW_HINT, F_SET_FILE_RW_HINT
            with suppress(OSError):
                fcntl.fcntl(fd, name, struct.pack("Q", 3))
        for change in (lambda path=path: os.setxattr(path, "user.word", b"word"), lambda fd=fd: os.read(fd, 1)):
            with suppress(OSError):
                change()
        os.close(fd)
    return []


def find_word_in_attributes() -> list[str]:
    found = []
    for path in _places():
        status = os.stat(path)
        if status.st_atime_ns > status.st_mtime_ns:
            found.append(f"{path} was read")
        fd = os.open(path, os.O_RDONLY)
        with suppress(OSError):
            marks = array.array("l", [0])
            fcntl.ioctl(fd, 0x80086601, marks, True)
            found += [f"{path} is marked {marks[0]}"] if marks[0] else []
        with suppress(OSError):
            purpose = fcntl.fcntl(fd, 1035, bytes(8))  # F_GET_RW_HINT
            found += [f"{path} is for {purpose!r}"] if any(purpose) else []
        with suppress(OSError):
            found += os.listxattr(path)
        os.close(fd)
    return found


def _places() -> list[str]:
    return ["/w", "/p", *(f"{folder}/{name}" for folder, names, files in os.walk("/p") for name in (*names, *files))]


def leave_other_limits() -> list[str]:
    """Of every process whose number can be guessed: the one that the next call is forked from has one of them."""

    def act(pid: int) -> None:
        limit = (ctypes.c_uint64 * 2)(3, 3)
        _libc.prlimit(pid, resource.RLIMIT_NOFILE, limit, None)
        _libc.prlimit(pid, resource.RLIMIT_CPU, limit, None)
        for change in (
            lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
            lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
            lambda: os.sched_setaffinity(pid, {0}),
            lambda: os.setpgid(pid, 0),
            lambda: Path(f"/proc/{pid}/oom_score_adj").write_text("1000"),
            lambda: Path(f"/proc/{pid}/autogroup").write_text("19"),
        ):
            with suppress(OSError, ValueError):
                change()

    each_other(act)
    return []


def leave_the_zygote_stopped() -> list[str]:
    each_other(lambda pid: os.kill(pid, signal.SIGSTOP))
    return []


def leave_the_zygote_signalled() -> list[str]:
    def act(pid: int) -> None:
        for name in (
            "SIGCHLD",
            "SIGURG",
            "SIGWINCH",
            "SIGCONT",
            "SIGTSTP",
            "SIGTTIN",
            "SIGPROF",
            "SIGRTMIN",
            "SIGRTMAX",
        ):
            for send in (os.kill, os.killpg):
                with suppress(OSError):
                    send(pid, getattr(signal, name))

    each_other(act)
    return []


def leave_the_zygote_killed() -> list[str]:
    """By its group, by its number, by the number of a thread."""

    def act(pid: int) -> None:
        for send in (os.killpg, os.kill, lambda pid, number: _libc.syscall(_TGKILL, pid, pid, number)):
            if pid != os.getpgrp():
                with suppress(OSError):
                    send(pid, signal.SIGKILL)

    each_other(act)
    return []


def find_nothing() -> list[str]:
    return []
