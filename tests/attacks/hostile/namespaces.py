"""Climb out of, or fall back behind, the namespaces that a call may have been given."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_ARM = platform.machine() == "aarch64"
_KINDS = ("user", "pid", "mnt", "ipc", "net", "uts", "cgroup", "time", "pid_for_children")
_FLAGS = {
    "user": 0x10000000, "pid": 0x20000000, "mnt": 0x00020000, "ipc": 0x08000000, "net": 0x40000000, "uts": 0x04000000,
    "cgroup": 0x02000000, "time": 0x00000080,
}  # fmt: skip


def enter_others() -> list[str]:
    """``setns`` into any that a path leads to, and into what a namespace says is above it."""
    got = []
    for pid in ("self", "1", "2", "3", "thread-self", str(os.getppid())):
        for kind in _KINDS:
            try:
                fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
            except OSError:
                continue
            above = [fd]
            for request in (0xB701, 0xB702):  # NS_GET_USERNS, NS_GET_PARENT
                with suppress(OSError):
                    above.append(fcntl.ioctl(fd, request))
            got += [f"{pid} {kind}" for each in above if _libc.setns(each, 0) == 0]
    return got


def make_new_ones() -> list[str]:
    got = [f"unshare {kind}" for kind, flag in _FLAGS.items() if _libc.unshare(flag) == 0]
    for kind, flag in _FLAGS.items():
        if kind == "time":
            continue  # clone takes this bit for another thing
        pid = _libc.syscall(220 if _ARM else 56, flag | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
            got.append(f"clone {kind}")
    return got


def map_users() -> list[str]:
    got = []
    for name, text in (
        ("uid_map", "0 0 1"),
        ("uid_map", f"0 {os.getuid()} 1"),
        ("gid_map", "0 0 1"),
        ("setgroups", "allow"),
        ("projid_map", "0 0 1"),
    ):
        for pid in ("self", "1", str(os.getppid())):
            try:
                Path(f"/proc/{pid}/{name}").write_text(text)
            except OSError:
                continue
            got.append(f"{pid} {name} {text}")
    if os.getuid() == 0 or os.geteuid() == 0:
        got.append("root")
    return got


def capabilities() -> list[str]:
    """None is held; none can be taken back: not by asking, not by the ambient set, not by keeping them over a change of user."""
    status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    got = [name for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(status[name], 16)]
    header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    if _libc.syscall(91 if _ARM else 126, header, data) == 0:
        got.append("capset")
    got += [f"ambient {number}" for number in range(41) if _libc.prctl(47, 2, number, 0, 0) == 0]
    if _libc.prctl(28, 0x3F, 0, 0, 0) == 0:  # PR_SET_SECUREBITS
        got.append("securebits")
    if _libc.prctl(38, 0, 0, 0, 0) == 0 or status["NoNewPrivs"] != "1":
        got.append("new privileges")
    return got


def mounts() -> list[str]:
    """Put something over the runner, take the scratch space away to see what is below it, make it executable."""
    got = []
    bind, remount, move, private = 4096, 32, 8192, 1 << 18
    for name, arguments in {
        "tmpfs": (b"none", b"/w", b"tmpfs", 0, None),
        "proc": (b"proc", b"/w", b"proc", 0, None),
        "mqueue": (b"mqueue", b"/w", b"mqueue", 0, None),
        "sysfs": (b"sysfs", b"/w", b"sysfs", 0, None),
        "overlay": (b"overlay", b"/w", b"overlay", 0, b"lowerdir=/,upperdir=/w,workdir=/w"),
        "bind the root": (b"/", b"/w", None, bind, None),
        "bind over the runner": (b"/w", b"/opt/toolhub", None, bind, None),
        "remount executable": (b"none", b"/w", None, remount | bind, None),
        "remount the root writable": (b"none", b"/", None, remount, None),
        "move": (b"/w", b"/p", None, move, None),
        "private": (b"none", b"/", None, private | 16384, None),
    }.items():
        if _libc.mount(*arguments) == 0:
            got.append(name)
    for path in (b"/w", b"/p", b"/c", b"/deps", b"/data", b"/proc", b"/dev/mqueue", b"/"):
        got += [f"umount {path.decode()}" for flags in (0, 1, 2) if _libc.umount2(path, flags) == 0]
    newer: list[tuple[str, int, tuple[Any, ...]]] = [
        ("open_tree", 428, (-100, b"/", 1)),
        ("move_mount", 429, (-100, b"/w", -100, b"/p", 0)),
        ("fsopen", 430, (b"tmpfs", 0)),
        ("fspick", 433, (-100, b"/", 0)),
        ("mount_setattr", 442, (-100, b"/", 0x8000, bytes(32), 32)),
        ("pivot_root", 41 if _ARM else 155, (b"/w", b"/w")),
        ("chroot", 51 if _ARM else 161, (b"/w",)),
    ]
    for name, number, given in newer:
        if _libc.syscall(number, *given) >= 0:
            got.append(name)
    return got


def signals() -> list[str]:
    """The first process of its own namespace, everybody, and its own group with what else may be in it."""
    got = []
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for target in (1, -1):
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGUSR1):
            try:
                os.kill(target, number)
            except OSError:
                continue
            if not (target == 1 and os.getpid() == 1):
                got.append(f"signal {number} to {target}")
    with suppress(OSError):
        os.kill(0, signal.SIGUSR1)
    siginfo = ctypes.create_string_buffer(128)
    for call, arguments in (
        (138 if _ARM else 129, (1, 9, siginfo)),
        (240 if _ARM else 297, (1, 1, 9, siginfo)),
        (130 if _ARM else 200, (1, 9)),
        (424, (3, 9, None, 0)),
    ):
        if _libc.syscall(call, *arguments) == 0:
            got.append(f"system call {call}")
    return got


def processes_of_others() -> list[str]:
    """What /proc shows of anybody else."""
    got = []
    mine = {str(os.getpid()), os.readlink("/proc/self")}
    with suppress(OSError):
        got += [name for name in os.listdir("/proc") if name.isdigit() and name not in mine]
    for pid in range(1, 100):
        if str(pid) in mine:
            continue
        for name in ("cmdline", "environ", "status", "maps", "mem", "stat", "root/etc/passwd", "fd/0", "cwd"):
            try:
                with open(f"/proc/{pid}/{name}", "rb", 0) as file:
                    file.read(1)
            except OSError:
                continue
            got.append(f"{pid}/{name}")
    return got
