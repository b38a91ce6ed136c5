"""Which walls stand around a tool in its box?

Called as a tool is called; says for each wall whether it holds.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from . import kernel, places
from .box import no_new_privileges, nothing_of, seen, writable

if TYPE_CHECKING:
    from collections.abc import Callable

Found = tuple["bool | None", str]

_ENVIRONMENT = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
_PROXIES = {"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"}
_SUPERVISOR = tuple(f"/proc/1/{name}" for name in ("environ", "mem", "maps", "fd", "cwd", "root", "exe", "auxv"))
_LAST_DESCRIPTOR = 4
_KILL, _FCNTL, _IOCTL, _EXECVE, _PRLIMIT = (62, 129), (72, 25), (16, 29), (59, 221), (302, 261)
SECOND_FILTER: dict[str, kernel.Call] = {
    # What the container lets through, because the runner needs it, and a tool does not.
    "execve": (_EXECVE, (1, 0, 0)),
    "fcntl(F_SETOWN)": (_FCNTL, (0, 8, 0)),
    "fcntl(F_SETSIG)": (_FCNTL, (0, 10, 0)),
    "ioctl(TIOCSTI)": (_IOCTL, (0, 0x5412, 1)),
    "setpriority": ((141, 140), (99, 0, 0)),
    "prlimit of another": (_PRLIMIT, (0x3FFFFFFF, 0, 0, 0)),
}
SIGNALS: dict[str, kernel.Call] = {"a signal to everybody": (_KILL, (-1, 0)), "a signal to the first": (_KILL, (1, 0))}
_INET = {"tcp": (2, 1, 0), "udp": (2, 2, 0), "tcp6": (10, 1, 0)}


def second_filter() -> Found:
    got = [*kernel.let_through(SECOND_FILTER), *kernel.opened(_INET)]
    return nothing_of(got, "programs, network sockets and the rest that only the runner needs are refused")


def file_system() -> Found:
    """Landlock: what everybody could read is closed all the same."""
    found = places.readable(("/", "/etc", "/etc/passwd", "/proc/version", "/proc/meminfo", "/sys/fs"))
    return nothing_of(found, "closed but for what a tool needs")


def supervisor() -> Found:
    """Where a call has process numbers of its own, it is the first one itself and there is nobody else."""
    found = places.readable(_SUPERVISOR)
    if os.getpid() != 1:
        found += kernel.let_through(SIGNALS)
    return nothing_of(found, "its memory, files and environment are out of reach, and it gets no signal")


def environment() -> Found:
    found = sorted(set(os.environ) - _ENVIRONMENT - _PROXIES)
    with open("/proc/self/environ", "rb") as file:
        if file.read().strip(b"\0"):
            found.append("/proc/self/environ")
    return nothing_of(found, "empty but for what libraries look up")


def descriptors() -> Found:
    """Pipes to say things on, and nothing to reach anybody with."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            mode = os.fstat(int(name)).st_mode
        except OSError as error:
            if error.errno == errno.EBADF:  # the folder itself, closed by now
                continue
            raise
        if int(name) > _LAST_DESCRIPTOR or not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
            found.append(f"{name} ({os.readlink(f'/proc/self/fd/{name}')})")
    return nothing_of(found, "nothing but an empty input and pipes")


def ended_first() -> Found:
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    return score == 1000, f"when memory is short, its score is {score}"


LOOKS: dict[str, Callable[[], Found]] = {
    "tool: capabilities": lambda: nothing_of(kernel.capabilities(), "none, and none can be got"),
    "tool: no new privileges": no_new_privileges,
    "tool: system calls": lambda: nothing_of(
        kernel.let_through(kernel.SYSTEM_CALLS | kernel.NAMESPACES),
        f"{len(kernel.SYSTEM_CALLS) + len(kernel.NAMESPACES)} are refused",
    ),
    "tool: rare sockets": lambda: nothing_of(kernel.opened(kernel.RARE_SOCKETS), "none can be had"),
    "tool: second filter": second_filter,
    "tool: file system": file_system,
    "tool: writable places": lambda: writable({"/w"}),
    "tool: supervisor": supervisor,
    "tool: environment": environment,
    "tool: descriptors": descriptors,
    "tool: order of ending": ended_first,
}


def run() -> dict[str, Found]:
    return {name: seen(look) for name, look in LOOKS.items()}
