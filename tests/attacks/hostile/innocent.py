"""No attack: answer rightly, and tell everything about this process that an earlier call could have changed."""

from __future__ import annotations

import builtins
import ctypes
import hashlib
import json
import os
import resource
import signal
import sys
import threading
from typing import Any

from unitools import runtime

_LIMITS = sorted(name for name in vars(resource) if name.startswith("RLIMIT_"))
_STATUS = {
    "Threads", "SigQ", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
    "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Umask", "TracerPid", "Cpus_allowed_list",
}  # fmt: skip


def run(number: int) -> dict[str, Any]:
    """``answer`` is what was asked for, ``left`` must be empty, and ``world`` the same for every call of a kind of box."""
    with open("/w/room", "wb") as file:
        room = file.write(bytes(8 * 1024 * 1024))
    os.unlink("/w/room")
    return {
        "answer": sum(range(number)),
        "left": [
            os.fsdecode(name) for folder in (b"/w", b"/dev/shm", b"/dev/mqueue", b"/tmp") for name in _list(folder)
        ],
        "world": {"room": room, **_process(), **_interpreter()},
    }


def _list(folder: bytes) -> list[bytes]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _process() -> dict[str, Any]:
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/self/oom_score_adj") as file:
        oom = file.read().strip()
    work = os.stat("/w")
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    status["SigQ"] = status["SigQ"].partition("/")[2]
    return {
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS},
        "status": {name: status[name] for name in sorted(_STATUS) if name in status},
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": [os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
        "out of memory": oom,
        "place": [os.getcwd(), oct(work.st_mode), work.st_uid == os.getuid()],
        "environment": dict(os.environ),
        "descriptors": sorted(fd for fd in os.listdir("/proc/self/fd") if fd.isdigit())[:-1],
        "domain": [ctypes.CDLL(None).personality(0xFFFFFFFF), os.uname().nodename],
        "signals": [signal.getitimer(signal.ITIMER_REAL), sorted(signal.sigpending()), sorted(blocked)],
    }


def _interpreter() -> dict[str, Any]:
    hooks = [str(each) for each in (sys.gettrace(), sys.getprofile(), sys.excepthook, sys.displayhook)]
    functions = (json.dumps, json.loads, json.JSONEncoder.encode, runtime.secret, os.listdir, open, sum)
    return {
        "path": sys.path,
        "hooks": [len(sys.meta_path), len(sys.path_hooks), *hooks],
        "settings": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.flags.isolated, sys.dont_write_bytecode],
        "threads": threading.active_count(),
        "builtins": hashlib.sha256(" ".join(sorted(vars(builtins))).encode()).hexdigest(),
        "functions": [_code(each) for each in functions],
        "small numbers": [7 + 1, len("four"), hash("") == 0],
    }


def _code(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return hashlib.sha256(code.co_code).hexdigest() if code is not None else repr(type(function))
