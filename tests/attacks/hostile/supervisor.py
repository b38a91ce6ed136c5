"""Attack the process that watches."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)


def kill() -> list[str]:
    got = []
    for target in {1, -1, os.getppid()} - {0, os.getpid()}:  # with a world of its own it may be the first itself
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGINT, signal.SIGUSR1, 34):
            try:
                os.kill(target, number)
            except OSError:
                continue
            got.append(f"signal {number} to {target}")
    return got


def trace() -> list[str]:
    got = []
    for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
        if _libc.ptrace(request, 1, 0, 0) == 0:
            got.append("ptrace")
    buffer = ctypes.create_string_buffer(64)
    local = struct.pack("QQ", ctypes.addressof(buffer), 64)
    remote = struct.pack("QQ", 0x400000, 64)
    if _libc.process_vm_readv(1, local, 1, remote, 1, 0) > 0:
        got.append("process_vm_readv")
    return got


def signals_by_descriptor() -> list[str]:
    got = []
    left, right = socket.socketpair()
    for command in (8, 15):  # F_SETOWN, F_SETOWN_EX
        try:
            fcntl.fcntl(left, command, 1 if command == 8 else struct.pack("ii", 1, 1))
            got.append(f"fcntl {command}")
        except OSError:
            pass
    try:
        fcntl.fcntl(left, 10, signal.SIGKILL)  # F_SETSIG
        got.append("F_SETSIG")
    except OSError:
        pass
    for command in (0x8901, 0x8902):  # FIOSETOWN, SIOCSPGRP
        try:
            fcntl.ioctl(left, command, struct.pack("i", 1))
            got.append(f"ioctl {command:#x}")
        except OSError:
            pass
    right.close()
    return got


def its_limits() -> list[str]:
    got = []
    if _libc.prlimit(1, 7, struct.pack("QQ", 0, 0), None) == 0:
        got.append("prlimit")
    acts: dict[str, Callable[[], object]] = {
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
        "scheduler": lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
        "affinity": lambda: os.sched_setaffinity(1, {0}),
        "memory": lambda: open("/proc/1/oom_score_adj", "w").write("1000"),
        "own memory": lambda: open("/proc/self/oom_score_adj", "w").write("-1000"),
        "descriptor": lambda: os.pidfd_open(1),
    }
    for name, act in acts.items():
        try:
            act()
        except OSError:
            continue
        got.append(name)
    return got


def keys_typed_into_its_terminal() -> list[str]:
    got = []
    for fd in (0, 1, 2):
        try:
            fcntl.ioctl(fd, 0x5412, b"x")
        except OSError:
            continue
        got.append(f"TIOCSTI on {fd}")
    return got


def everybody_it_can() -> NoReturn:
    """Kill each process there may be, itself last."""
    for pid in range(2, 400):
        if pid != os.getpid():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit


def stop_itself() -> NoReturn:
    os.kill(os.getpid(), signal.SIGSTOP)
    raise SystemExit


def ignore_being_asked_to_end() -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    while True:
        time.sleep(1)


def sleep_past_the_limit() -> NoReturn:
    time.sleep(3600)
    raise SystemExit


def hang_when_the_interpreter_ends() -> list[str]:
    import atexit

    atexit.register(time.sleep, 3600)
    os._exit = lambda *_: time.sleep(3600)  # type: ignore[assignment]
    return []


def die_as_if_memory_had_run_out() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    os._exit(137)


def say_it_was_a_forbidden_call() -> NoReturn:
    os.kill(os.getpid(), signal.SIGSYS)
    os._exit(0)


def its_memory_through_a_group() -> list[str]:
    """Be in the group and session of the one who watches, then of the one it is forked from."""
    got = []
    acts: tuple[Callable[[], object], ...] = (
        lambda: os.setpgid(0, 1),
        lambda: os.setpgid(1, 0),
        lambda: os.tcsetpgrp(0, 1),
        lambda: os.setpgid(0, os.getsid(1)),
    )
    for act in acts:
        try:
            act()
        except OSError:
            continue
        got.append("joined")
    return got
