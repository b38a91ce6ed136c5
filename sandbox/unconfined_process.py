"""Unconfined process: how a tool is called where there is no box.

The tool's process of the hub's fake sandbox: as :mod:`sandbox.call`, with a folder of its own, the kernel's limits
for one process, and an audit hook that refuses, but without any wall that would hold against native code.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from sandbox import call, confinement, protocol
from sandbox.access_attempts import READABLE, AccessAttempts
from sandbox.package import write_package
from unitools import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_OWN_MEMORY = 256 * 1024 * 1024  # address space of the interpreter itself


def serve(folder: str) -> NoReturn:
    """Load and run what is on stdin, inside ``folder``; the environment names two descriptors."""
    report_fd = int(os.environ.pop("TOOLHUB_REPORT_FD"))
    progress_fd = int(os.environ.pop("TOOLHUB_PROGRESS_FD"))
    runtime.mark_published()
    try:
        _, (load, called) = protocol.unpack(sys.stdin.buffer.read())
        loaded, contents = protocol.unpack(load)
        head, (arguments, settings) = protocol.unpack(called)
        empty = os.open("/dev/null", os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        place, work = Path(folder, "p"), Path(folder, "w")
        place.mkdir()
        work.mkdir()
        write_package(loaded["files"], contents, str(place))
        sys.path.append(str(place))
        os.chdir(work)
        os.environ.update(HOME=str(work), TMPDIR=str(work))
        head["limits"] = loaded["limits"]
        limits = loaded["limits"] | {
            "processes": resource.getrlimit(resource.RLIMIT_NPROC)[0]
        }  # of the whole user here
        loading = limits | {"cpu_s": limits["cpu_s"] + -(-loaded["import_ms"] // 1000)}
        confinement.limit_resources(confinement.resource_limits(loading))
        memory = limits["memory_bytes"] + _OWN_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        interpreter = {sys.prefix, sys.base_prefix, sys.exec_prefix, *(entry for entry in sys.path if entry)}
        hints = AccessAttempts(
            readable=(*READABLE, str(place), *interpreter), writable=(str(work), "/dev/null"), refuse=True
        )
        hints.watch()
        call.set_streams()

        def begin_run() -> None:
            confinement.limit_processor(limits["cpu_s"], first=False)
            call.write_all(report_fd, protocol.IMPORTED)

        report = call.answer_call(
            head,
            arguments,
            settings,
            hints,
            loaded=begin_run,
            progress=lambda line: call.write_all(progress_fd, line),
        )
        call.write_all(report_fd, report)
    finally:
        os._exit(0)
