"""Tool walls: those that stand around a tool in its box.

Called as a tool is called; says for each wall whether it holds.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from . import file_system as probe_file_system
from . import system_calls
from .container import check_no_new_privileges, check_writable, expect_nothing, run_check

if TYPE_CHECKING:
    from collections.abc import Callable

Found = tuple["bool | None", str]

_ENVIRONMENT = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
_PROXIES = {"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"}
_SUPERVISOR = tuple(f"/proc/1/{name}" for name in ("environ", "mem", "maps", "fd", "cwd", "root", "exe", "auxv"))
_LAST_DESCRIPTOR = 4
_KILL, _FCNTL, _IOCTL, _EXECVE, _PRLIMIT = (62, 129), (72, 25), (16, 29), (59, 221), (302, 261)
SECOND_FILTER: dict[str, system_calls.Call] = {
    # What the container lets through, because the runner needs it, and a tool does not.
    "execve": (_EXECVE, (1, 0, 0)),
    "fcntl(F_SETOWN)": (_FCNTL, (0, 8, 0)),
    "fcntl(F_SETSIG)": (_FCNTL, (0, 10, 0)),
    "ioctl(TIOCSTI)": (_IOCTL, (0, 0x5412, 1)),
    "setpriority": ((141, 140), (99, 0, 0)),
    "prlimit of another": (_PRLIMIT, (0x3FFFFFFF, 0, 0, 0)),
}
SIGNALS: dict[str, system_calls.Call] = {
    "a signal to everybody": (_KILL, (-1, 0)),
    "a signal to the first": (_KILL, (1, 0)),
}
_INET = {"tcp": (2, 1, 0), "udp": (2, 2, 0), "tcp6": (10, 1, 0)}


def check_second_filter() -> Found:
    got = [*system_calls.find_let_through(SECOND_FILTER), *system_calls.find_open_sockets(_INET)]
    return expect_nothing(got, "programs, network sockets and the rest that only the runner needs are refused")


def check_file_system() -> Found:
    """Landlock: what everybody could read is closed all the same."""
    found = probe_file_system.find_readable(("/", "/etc", "/etc/passwd", "/proc/version", "/proc/meminfo", "/sys/fs"))
    return expect_nothing(found, "closed but for what a tool needs")


def check_supervisor() -> Found:
    """Where a call has process numbers of its own, it is the first one itself and there is nobody else."""
    found = probe_file_system.find_readable(_SUPERVISOR)
    if os.getpid() != 1:
        found += system_calls.find_let_through(SIGNALS)
    return expect_nothing(found, "its memory, files and environment are out of reach, and it gets no signal")


def check_environment() -> Found:
    found = sorted(set(os.environ) - _ENVIRONMENT - _PROXIES)
    with open("/proc/self/environ", "rb") as file:
        if file.read().strip(b"\0"):
            found.append("/proc/self/environ")
    return expect_nothing(found, "empty but for what libraries look up")


def check_descriptors() -> Found:
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
    return expect_nothing(found, "nothing but an empty input and pipes")


def check_ended_first() -> Found:
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    return score == 1000, f"when memory is short, its score is {score}"


LOOKS: dict[str, Callable[[], Found]] = {
    "tool: capabilities": lambda: expect_nothing(system_calls.find_capabilities(), "none, and none can be got"),
    "tool: no new privileges": check_no_new_privileges,
    "tool: system calls": lambda: expect_nothing(
        system_calls.find_let_through(system_calls.SYSTEM_CALLS | system_calls.NAMESPACES),
        f"{len(system_calls.SYSTEM_CALLS) + len(system_calls.NAMESPACES)} are refused",
    ),
    "tool: rare sockets": lambda: expect_nothing(
        system_calls.find_open_sockets(system_calls.RARE_SOCKETS), "none can be had"
    ),
    "tool: second filter": check_second_filter,
    "tool: file system": check_file_system,
    "tool: writable places": lambda: check_writable({"/w"}),
    "tool: supervisor": check_supervisor,
    "tool: environment": check_environment,
    "tool: descriptors": check_descriptors,
    "tool: order of ending": check_ended_first,
}


def run() -> dict[str, Found]:
    return {name: run_check(look) for name, look in LOOKS.items()}
