"""Does anything grow while the pool works: containers, descriptors, folders, threads, memory?"""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.engine import Engine

if TYPE_CHECKING:
    from invocations.sandbox.docker import DockerSandbox

_SETTLE_S = 10
_MAY_STAY = 3  # descriptors that a library keeps
_ENGINES_MAY_STAY = 20  # the engine keeps connections for a while, and others use it
_RSS_MIB = 50


@dataclass(frozen=True)
class Look:
    """What there is at one moment. -1: this user may not look."""

    containers: int
    folders: int
    descriptors: int
    threads: int
    rss_mib: float
    engine_descriptors: int
    shims: int


class Growth:
    HEAD = ("after calls", "containers", "folders", "descriptors", "threads", "RSS, MiB", "of the engine", "shims")

    def __init__(self) -> None:
        self._instance, self._run_dir = "", Path("/nonexistent")
        self._looks: list[tuple[str, Look]] = []
        with closing(Engine()) as engine:
            engine.version()
        self._look("before")

    def watch(self, where: DockerSandbox, run_dir: Path) -> None:
        self._instance, self._run_dir = where._instance, run_dir

    def look(self, calls: int) -> None:
        if calls % 2_000 == 0 or calls == 500:
            self._look(str(calls))

    def end(self) -> None:
        """After the pool was closed: wait until what it ended is gone, but not for ever."""
        until = time.monotonic() + _SETTLE_S
        while self._now().containers and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(1)
        self._look("at the end")

    def rows(self) -> list[list[str]]:
        return [[when, *(f"{value:.0f}" for value in astuple(look))] for when, look in self._looks]

    def verdicts(self) -> list[list[str]]:
        (_, first), (_, last) = self._looks[0], self._looks[-1]
        warm, hot = self._looks[1][1], self._looks[-2][1]
        return [
            _verdict("containers left: 0", last.containers, 0),
            _verdict("folders left: 0", last.folders, 0),
            _verdict("descriptors more than before", last.descriptors - first.descriptors, _MAY_STAY),
            _verdict("threads more than before", last.threads - first.threads, 0),
            _verdict("MiB more than after the first 500 calls", hot.rss_mib - warm.rss_mib, _RSS_MIB),
            _verdict(
                "descriptors of the engine more than before",
                last.engine_descriptors - first.engine_descriptors,
                _ENGINES_MAY_STAY,
            ),
            _verdict("shims more than before", last.shims - first.shims, 0),
        ]

    def _look(self, when: str) -> None:
        self._looks.append((when, self._now()))

    def _now(self) -> Look:
        gc.collect()
        with closing(Engine()) as engine:
            containers = len(engine.find({INSTANCE: self._instance})) if self._instance else 0
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Look(
            containers=containers,
            folders=sum(1 for _ in self._run_dir.rglob("*")),
            descriptors=_entries(Path("/proc/self/fd")),
            threads=threading.active_count(),
            rss_mib=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            engine_descriptors=sum(
                _entries(Path("/proc", pid, "fd")) for name in (b"dockerd", b"containerd") for pid in _named(name)
            ),
            shims=len(_named(b"containerd-shim")),
        )


def _named(program: bytes) -> list[str]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                words = (place / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            name = words[0].rpartition(b"/")[2]
            if name == program or (program == b"containerd-shim" and name.startswith(program)):
                found.append(place.name)
    return found


def _entries(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except FileNotFoundError:
        return 0
    except PermissionError:
        return -1


def _verdict(what: str, measured: float, most: float) -> list[str]:
    return [
        f"{what} (at most {most})" if most else what,
        f"{measured:.0f}",
        "reached" if measured <= most else "NOT reached",
    ]
