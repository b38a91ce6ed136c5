"""Zygote: what all calls of a box have in common.

The process that every tool's process is forked from. It holds what is worth having in memory before a call comes: what the
tool's package imports from others, never the package's own modules, and never anything of a call. What it imports is code
that others wrote, so the first process of the box does not trust it either.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from contextlib import suppress
from functools import partial

from sandbox import browser, call, namespaces, protocol
from sandbox.access_attempts import PACKAGE
from sandbox.ipc import WORD_BYTES, receive_message, receive_work
from sandbox.isolation import BoxIsolation
from sandbox.package import (
    DEPENDENCIES,
    PackageFinder,
    compile_package,
    find_top_levels,
    preload_imports,
    select_preloading,
    write_package,
)
from sandbox.rehearsal import rehearse_calls
from sandbox.siblings import Siblings
from unitools import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable
    from typing import Any, NoReturn

_MAX_WHY_CHARS = 2000
LISTING = "/listing.json"  # in the package of a tool of a server of others


def run_zygote(end: socket, others: list[int]) -> NoReturn:
    """Do what the supervisor says: ``load`` a package, once; ``prepare`` a process, for each call.

    ``others`` are the processes of the box beside this one that no tool may touch.
    """
    runtime.mark_published()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    call.set_streams()
    os.setsid()  # looked up, as all of the C library, when it is first called: else again in each child
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("950")  # before the supervisor, after a tool
    os.chdir("/")
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # threads do not survive a fork
    sys.path += [DEPENDENCIES, browser.PACKAGES]
    rooms: BoxIsolation | None = None
    siblings: Siblings | None = None
    while True:
        message, _, descriptors = receive_message(end, WORD_BYTES)
        match message:
            case b"load":
                try:
                    rooms, preloaded = _load(receive_work(end)[0], [*others, os.getpid()])
                    siblings = Siblings.of_this_process(namespaces.NAMESPACES if rooms.fresh else 0)
                    _settle()
                    end.send("\n".join(["ok", *preloaded]).encode())
                except BaseException as error:
                    end.send(f"no\n{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_WHY_CHARS])
            case b"prepare" if rooms is not None:
                serve = partial(call.serve_one, rooms, descriptors[0])
                _prepare(serve, siblings, descriptors[0], fresh=rooms.fresh)
                end.send(b"prepared")
            case _:
                os._exit(0)


def _load(body: bytes, others: list[int]) -> tuple[BoxIsolation, list[str]]:
    loaded, contents = protocol.unpack(body)
    del body
    rooms = BoxIsolation(loaded, others)
    names, own = loaded["files"], find_top_levels(loaded["files"])
    write_package(names, contents, PACKAGE)
    # In a box for one call nothing is worth more here than in the call; nor where it has failed here before.
    codes = compile_package(names, contents, PACKAGE) if rooms.reused and loaded["ahead"] else {}
    if rooms.begins_ahead:
        rooms.listing = next((each for name, each in zip(names, contents, strict=True) if name.endswith(LISTING)), b"")
    del contents
    preloaded = preload_imports(select_preloading(codes, names, PACKAGE), own)
    if rooms.server is not None and rooms.reused and loaded["ahead"]:
        preloaded += _import_server(rooms.server)
    if rooms.is_on_node:
        importlib.import_module("sandbox.node_server")  # ours, and nothing of the server's
    if rooms.operation is not None and rooms.reused:
        preloaded.append(importlib.import_module("sandbox.service_call").__name__)  # ours: it asks nobody for anything
    if rooms.remote is not None and rooms.reused:
        preloaded.append(importlib.import_module("sandbox.remote_call").__name__)
    if (
        not rooms.programs.replaces_tool and rooms.server is None and rooms.remote is None
    ):  # of a listing nothing is imported
        sys.path.insert(sys.path.index(DEPENDENCIES), PACKAGE)
        finder = PackageFinder(PACKAGE, own, codes)
        sys.meta_path.insert(0, finder)
        rooms.modules = finder.make_modules()
    rooms.make_ready()
    if rooms.reused:
        rehearse_calls(rooms)
    return rooms, preloaded


def _import_server(start: dict[str, Any]) -> list[str]:
    server = importlib.import_module("sandbox.mcp_server")  # in boxes of no other tool
    try:
        server.McpServer(start).import_ahead()
    except LookupError:
        return []  # the call will say so
    return [server.__name__, importlib.import_module("sandbox.next_server").__name__]


def _settle() -> None:
    """Let everything that is in memory now be shared with the tools' processes, untouched by the collector."""
    gc.collect()
    gc.freeze()


def _prepare(serve: Callable[[], NoReturn], siblings: Siblings | None, descriptor: int, *, fresh: bool) -> None:
    """Make a process whose parent is the supervisor, so that it learns the end from the kernel."""
    try:
        if siblings is None or not siblings.make(serve):
            _fork_twice(serve, descriptor, fresh=fresh)
    except BaseException as error:
        _say(descriptor, error)
    os.close(descriptor)


def _fork_twice(serve: Callable[[], NoReturn], descriptor: int, *, fresh: bool) -> None:
    """The one in the middle ends, and the supervisor becomes the parent."""
    middle = os.fork()
    if middle == 0:
        try:
            if fresh:
                namespaces.unshare_namespaces()
            if os.fork() == 0:
                serve()
        except BaseException as error:
            _say(descriptor, error)
        finally:
            os._exit(0)
    os.waitpid(middle, 0)  # it must not be counted with what a call leaves behind


def _say(descriptor: int, error: BaseException) -> None:
    os.write(descriptor, f"{type(error).__name__}: {error}".encode(errors="replace")[:_MAX_WHY_CHARS])
