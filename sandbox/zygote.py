"""What do all calls of a box have in common?

The process that every tool's process is forked from. It holds the tool's package and whatever is worth having in
memory before a call comes: never the tool's own modules, and never anything of a call. What it imports for the tool is
code that others wrote, so the first process of the box does not trust it either.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from contextlib import suppress
from typing import Any, NoReturn

from sandbox import call, protocol, syscalls, walls
from sandbox.hints import PACKAGE

_MAX_WHY_CHARS = 2000


def serve(end: socket.socket) -> NoReturn:
    """Do what the supervisor says: ``load`` a package, once; ``prepare`` a process, for each call."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("950")  # before the supervisor, after a tool
    head: dict[str, Any] = {}
    gc.collect()
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(end, 16, 1)
        match message:
            case b"load":
                try:
                    head = _load(descriptors[0])
                    end.send(b"ok")
                except BaseException as error:
                    end.send(f"no\n{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_WHY_CHARS])
            case b"prepare":
                _prepare(head, descriptors[0])
            case _:
                os._exit(0)


def _load(descriptor: int) -> dict[str, Any]:
    with os.fdopen(descriptor, "rb") as file:
        head, contents = protocol.unpack(file.read())
    call.write_package(head["files"], contents, PACKAGE)
    head["filter"] = syscalls.build_filter(
        os.uname().machine,
        net=head["net"],
        proc=bool(head["proc"]),
        keep_modes=not walls.landlock_version(),
        zygote=os.getpid(),
    )
    return head


def _prepare(head: dict[str, Any], descriptor: int) -> None:
    """Fork twice: the one in the middle ends, so the supervisor becomes the parent and learns the end from the kernel."""
    middle = os.fork()
    if middle == 0:
        try:
            if os.fork() == 0:
                call.serve_one(head, descriptor)
        finally:
            os._exit(0)
    os.close(descriptor)
    os.waitpid(middle, 0)
