"""Container walls: those that the engine's container puts around its first process.

Looked at from that process, before any wall of the runner, and compared with what was asked of the engine.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from . import file_system, network, resource_limits, system_calls

if TYPE_CHECKING:
    from collections.abc import Callable

Found = tuple["bool | None", str]

ENVIRONMENT = {"PATH", "HOSTNAME", "HOME", "LANG", "LC_CTYPE"}


def expect_nothing(found: list[str], good: str) -> Found:
    return not found, file_system.join_names(found) if found else good


def check_no_new_privileges() -> Found:
    holds = system_calls.may_install_a_filter()
    return holds, "a process can only lose rights" if holds else "a setuid program would get its owner's rights"


def check_read_only_root() -> Found:
    """Who may not write here anyway is told so; on a read-only file system everybody is told that it is."""
    others = [place for place in ("/", "/usr", "/etc") if file_system.try_creating(f"{place}/.probe") != errno.EROFS]
    return expect_nothing(others, "nobody can write to it")


def open_work_folder(look: Callable[[], Found]) -> Callable[[], Found]:
    """Engines give a mounted folder the mode of the folder below it; its owner is the box's user all the same."""

    def looked() -> Found:
        os.chmod("/w", 0o700)
        return look()

    return looked


def check_writable(known: set[str]) -> Found:
    found = [path for path in file_system.find_writable() if path not in known]
    return expect_nothing(found, f"only {', '.join(sorted(known))} and devices that keep nothing")


def check_not_creatable(*paths: str) -> Found:
    return expect_nothing([path for path in paths if file_system.can_create(path)], "nothing can be left there")


def check_own_user(uid: int) -> Found:
    ids = {*os.getresuid(), *os.getresgid(), *os.getgroups()}
    return ids == {uid}, f"user and group {', '.join(map(str, sorted(ids)))}"


def check_host_name(asked: str) -> Found:
    name = os.uname().nodename
    return name == asked, name


def check_ended_first(asked: int) -> Found:
    with open("/proc/self/oom_score_adj") as file:
        score = int(file.read())
    return score == asked, f"when memory is short, its score is {score}"


def list_checks(asked: dict[str, Any]) -> dict[str, Callable[[], Found]]:
    """What is looked at, the loud ones last."""
    return {
        "capabilities": lambda: expect_nothing(system_calls.find_capabilities(), "none, and none can be got"),
        "no new privileges": check_no_new_privileges,
        "system calls": lambda: expect_nothing(
            system_calls.find_let_through(system_calls.SYSTEM_CALLS),
            f"{len(system_calls.SYSTEM_CALLS)} that no tool needs are refused",
        ),
        "namespaces": lambda: expect_nothing(
            system_calls.find_let_through(system_calls.NAMESPACES), "none can be made, nothing mounted"
        ),
        "rare sockets": lambda: expect_nothing(
            system_calls.find_open_sockets(system_calls.RARE_SOCKETS),
            f"{len(system_calls.RARE_SOCKETS)} kinds cannot be had",
        ),
        "read-only root": check_read_only_root,
        "writable places": open_work_folder(lambda: check_writable(set(asked["writable"]))),
        "foreign mounts": lambda: expect_nothing(
            file_system.find_foreign_mounts(), "nothing else of the host is mounted"
        ),
        "message queues": lambda: check_not_creatable("/dev/mqueue/.probe"),
        "shared memory": lambda: check_not_creatable("/dev/shm/.probe"),
        "masked paths": lambda: expect_nothing(
            file_system.find_readable(asked["masked"]), f"{len(asked['masked'])} say nothing"
        ),
        "kernel settings": lambda: expect_nothing(
            file_system.find_not_read_only(asked["read_only"]), "cannot be changed by anybody"
        ),
        "own user": lambda: check_own_user(asked["uid"]),
        "host name": lambda: check_host_name(asked["host_name"]),
        "box environment": lambda: expect_nothing(
            sorted(set(os.environ) - ENVIRONMENT), "only what says where programs are"
        ),
        "network": network.check_network,
        "name server": network.check_resolver,
        "order of ending": lambda: check_ended_first(asked["oom_score"]),
        "scratch space": open_work_folder(
            lambda: resource_limits.check_storage("/w", asked["tmp_bytes"], asked["files"])
        ),
        "open files": lambda: resource_limits.check_open_files(asked["open_files"]),
        "core dumps": open_work_folder(lambda: resource_limits.check_core_dump("/w")),
        "processes": lambda: resource_limits.check_processes(asked["processes"]),
        "processor": lambda: resource_limits.check_processors(asked["processors"]),
        "memory": lambda: resource_limits.check_memory(asked["memory"]),
    }


def run_check(look: Callable[[], Found]) -> Found:
    try:
        return look()
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
