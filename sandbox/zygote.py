"""What do all calls of a box have in common?

The process that every tool's process is forked from. It holds what is worth having in memory before a call comes: what the
tool's package imports from others, never the package's own modules, and never anything of a call. What it imports is code
that others wrote, so the first process of the box does not trust it either.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

from sandbox import browsing, call, namespaces, protocol, syscalls, walls
from sandbox.hints import PACKAGE
from sandbox.package import DEPENDENCIES, preload, write_package
from sandbox.programs import Programs

_MAX_WHY_CHARS = 2000
_REUSED = ("shared", "fresh")


def serve(end: socket.socket, others: list[int]) -> NoReturn:
    """Do what the supervisor says: ``load`` a package, once; ``prepare`` a process, for each call.

    ``others`` are the processes of the box beside this one that no tool may touch.
    """
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("950")  # before the supervisor, after a tool
    os.chdir("/")
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # threads do not survive a fork
    sys.path += [DEPENDENCIES, browsing.PACKAGES]
    loaded: dict[str, Any] = {}
    _settle()
    while True:
        message, descriptors, _, _ = socket.recv_fds(end, 16, 1)
        match message:
            case b"load":
                try:
                    loaded, preloaded = _load(descriptors[0], others)
                    end.send("\n".join(["ok", *preloaded]).encode())
                except BaseException as error:
                    end.send(f"no\n{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_WHY_CHARS])
            case b"prepare":
                _prepare(loaded, descriptors[0])
            case _:
                os._exit(0)


def _load(descriptor: int, others: list[int]) -> tuple[dict[str, Any], list[str]]:
    with os.fdopen(descriptor, "rb") as file:
        loaded, contents = protocol.unpack(file.read())
    reused = loaded["level"] in _REUSED  # else what is imported and compiled here is not worth more than in the call
    codes = write_package(loaded["files"], contents, PACKAGE, bytecode=reused)
    del contents
    preloaded = preload(codes, loaded["files"])
    if loaded["browser"] and reused:
        raise ValueError(f"A box with a browser is used once, so it cannot have the level {loaded['level']}.")
    allowed = [*loaded["proc"], *(browsing.RUNNABLE if loaded["browser"] else ())]
    loaded["programs"] = Programs(allowed, loaded["program"], loaded["files"])
    fresh = loaded["level"] == "fresh"
    loaded["others"] = 0 if fresh else len(others) + 1
    loaded["filter"] = syscalls.build_filter(
        os.uname().machine,
        net=loaded["net"],
        proc=bool(loaded["programs"].runnable),
        keep_modes=loaded["level"] == "shared" or not walls.landlock_version(),
        untouchable=() if fresh else (*others, os.getpid()),
    )
    _settle()
    return loaded, preloaded


def _settle() -> None:
    """Let everything that is in memory now be shared with the tools' processes, untouched by the collector."""
    gc.collect()
    gc.freeze()


def _prepare(loaded: dict[str, Any], descriptor: int) -> None:
    """Fork twice: the one in the middle ends, so the supervisor becomes the parent and learns the end from the kernel."""
    middle = os.fork()
    if middle == 0:
        try:
            if loaded["level"] == "fresh":
                walls.set_dumpable(True)  # else its own /proc entries belong to root
                namespaces.unshare()
            if os.fork() == 0:
                call.serve_one(loaded, descriptor)
        except BaseException as error:
            os.write(descriptor, f"{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_WHY_CHARS])
        finally:
            os._exit(0)
    os.close(descriptor)
    os.waitpid(middle, 0)
