"""Owner process: whether the process that started a box is still alive.

A box carries its owner's name as a label. A process number alone would not do: it is reused, it means something else
after a restart of the machine, and something else again in another container.
"""

from __future__ import annotations

import os
from pathlib import Path

_STARTED_FIELD = 19  # of /proc/<pid>/stat, counted after the command's closing bracket


def _world() -> str:
    """What process numbers are relative to: this boot and this process namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_STARTED_FIELD]


def describe_this_process() -> str:
    return f"{_world()}/{os.getpid()}/{_started(os.getpid())}"


def is_alive(owner: str) -> bool:
    """True only when it is certain: it runs on this machine, and here its process number means the same."""
    try:
        boot, namespace, pid, started = owner.split("/")
        return f"{boot}/{namespace}" == _world() and _started(int(pid)) == started
    except (ValueError, OSError):
        return False


def is_gone(owner: str) -> bool:
    """True only when it is certain: of an owner elsewhere nothing is known here, its boxes go when they are too old."""
    try:
        boot, namespace, pid, started = owner.split("/")
        if f"{boot}/{namespace}" != _world():
            return False
        return _started(int(pid)) != started
    except FileNotFoundError:
        return True
    except (ValueError, OSError):
        return False
