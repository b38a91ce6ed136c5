"""Which walls does the engine's container put around its first process?

Looked at from that process, before any wall of the runner, and compared with what was asked of the engine.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from . import amounts, kernel, outside, places

if TYPE_CHECKING:
    from collections.abc import Callable

Found = tuple["bool | None", str]

ENVIRONMENT = {"PATH", "HOSTNAME", "HOME", "LANG", "LC_CTYPE"}


def nothing_of(found: list[str], good: str) -> Found:
    return not found, places.named(found) if found else good


def no_new_privileges() -> Found:
    holds = kernel.may_install_a_filter()
    return holds, "a process can only lose rights" if holds else "a setuid program would get its owner's rights"


def read_only_root() -> Found:
    """Who may not write here anyway is told so; on a read-only file system everybody is told that it is."""
    others = [place for place in ("/", "/usr", "/etc") if places.error_of_creating(f"{place}/.probe") != errno.EROFS]
    return nothing_of(others, "nobody can write to it")


def opened(look: Callable[[], Found]) -> Callable[[], Found]:
    """Engines give a mounted folder the mode of the folder below it; its owner is the box's user all the same."""

    def looked() -> Found:
        os.chmod("/w", 0o700)
        return look()

    return looked


def writable(known: set[str]) -> Found:
    found = [path for path in places.writable() if path not in known]
    return nothing_of(found, f"only {', '.join(sorted(known))} and devices that keep nothing")


def not_made(*paths: str) -> Found:
    return nothing_of([path for path in paths if places.can_create(path)], "nothing can be left there")


def own_user(uid: int) -> Found:
    ids = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
    return ids == {uid}, f"user and group {', '.join(map(str, sorted(ids)))}"


def host_name(asked: str) -> Found:
    name = os.uname().nodename
    return name == asked, name


def ended_first(asked: int) -> Found:
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    return score == asked, f"when memory is short, its score is {score}"


def looks(asked: dict[str, Any]) -> dict[str, Callable[[], Found]]:
    """What is looked at, the loud ones last."""
    return {
        "capabilities": lambda: nothing_of(kernel.capabilities(), "none, and none can be got"),
        "no new privileges": no_new_privileges,
        "system calls": lambda: nothing_of(
            kernel.let_through(kernel.SYSTEM_CALLS), f"{len(kernel.SYSTEM_CALLS)} that no tool needs are refused"
        ),
        "namespaces": lambda: nothing_of(kernel.let_through(kernel.NAMESPACES), "none can be made, nothing mounted"),
        "rare sockets": lambda: nothing_of(
            kernel.opened(kernel.RARE_SOCKETS), f"{len(kernel.RARE_SOCKETS)} kinds cannot be had"
        ),
        "read-only root": read_only_root,
        "writable places": opened(lambda: writable(set(asked["writable"]))),
        "foreign mounts": lambda: nothing_of(places.foreign_mounts(), "nothing else of the host is mounted"),
        "message queues": lambda: not_made("/dev/mqueue/.probe"),
        "shared memory": lambda: not_made("/dev/shm/.probe"),
        "masked paths": lambda: nothing_of(places.readable(asked["masked"]), f"{len(asked['masked'])} say nothing"),
        "kernel settings": lambda: nothing_of(places.not_read_only(asked["read_only"]), "cannot be changed by anybody"),
        "own user": lambda: own_user(asked["uid"]),
        "host name": lambda: host_name(asked["host_name"]),
        "box environment": lambda: nothing_of(
            sorted(set(os.environ) - ENVIRONMENT), "only what says where programs are"
        ),
        "network": outside.network,
        "name server": outside.resolver,
        "order of ending": lambda: ended_first(asked["oom_score"]),
        "scratch space": opened(lambda: amounts.room("/w", asked["tmp_bytes"], asked["files"])),
        "open files": lambda: amounts.open_files(asked["open_files"]),
        "core dumps": opened(lambda: amounts.core_dump("/w")),
        "processes": lambda: amounts.processes(asked["processes"]),
        "processor": lambda: amounts.processors(asked["processors"]),
        "memory": lambda: amounts.memory(asked["memory"]),
    }


def seen(look: Callable[[], Found]) -> Found:
    try:
        return look()
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
