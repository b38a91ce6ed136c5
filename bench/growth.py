"""Growth: whether anything grows while the pool works, be it containers, descriptors, folders, threads or memory."""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import closing, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.docker import DockerSandbox

_SETTLE_S = 10
_MAY_STAY = 3  # descriptors that a library keeps
_ENGINES_MAY_STAY = 20  # the engine keeps connections for a while, and others use it
_RSS_MIB = 50


@dataclass(frozen=True)
class ResourceSample:
    """What there is at one moment."""

    containers: int
    others: int  # containers of somebody else
    folders: int
    descriptors: int
    threads: int
    rss_mib: float
    engine_descriptors: int
    shims: int


class GrowthLog:
    HEAD = (
        "after calls",
        "containers",
        "of others",
        "folders",
        "descriptors",
        "threads",
        "RSS, MiB",
        "of the engine",
        "shims",
    )

    def __init__(self) -> None:
        self._instance, self._run_dir = "none", Path("/nonexistent")
        self._own: set[bytes] = set()  # every container of the pool that was ever seen
        self._looks: list[tuple[str, ResourceSample]] = []
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
        of_the_engine = last.engine_descriptors - first.engine_descriptors
        return [
            _verdict("containers left: 0", last.containers, 0),
            _verdict("shims left: 0", last.shims, 0),
            _verdict("folders left: 0", last.folders, 0),
            _verdict("descriptors more than before", last.descriptors - first.descriptors, _MAY_STAY),
            _verdict("threads more than before", last.threads - first.threads, 0),
            _verdict("MiB more than after the first 500 calls", hot.rss_mib - warm.rss_mib, _RSS_MIB),
            _verdict("descriptors of the engine more than before", of_the_engine, _ENGINES_MAY_STAY)
            if first.others == last.others
            else ["descriptors of the engine more than before", f"{of_the_engine}; it has other users", "not judged"],
        ]

    def _look(self, when: str) -> None:
        self._looks.append((when, self._now()))

    def _now(self) -> ResourceSample:
        gc.collect()
        with closing(Engine()) as engine:
            every = {found["Id"]: (found.get("Labels") or {}).get(INSTANCE) for found in engine.find({})}
        self._own |= {box.encode() for box, instance in every.items() if instance == self._instance}
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return ResourceSample(
            containers=sum(instance == self._instance for instance in every.values()),
            others=sum(instance != self._instance for instance in every.values()),
            folders=sum(1 for _ in self._run_dir.rglob("*")),
            descriptors=_entries(Path("/proc/self/fd")),
            threads=threading.active_count(),
            rss_mib=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            engine_descriptors=sum(
                _entries(Path("/proc", pid, "fd")) for pid, words in _programs() if _is_engine(words)
            ),
            shims=sum(b"shim" in words[0] and bool(self._own & set(words)) for _, words in _programs()),
        )


def _programs() -> Iterator[tuple[str, list[bytes]]]:
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                yield place.name, (place / "cmdline").read_bytes().split(b"\0")


def _is_engine(words: list[bytes]) -> bool:
    return words[0].rpartition(b"/")[2] in (b"dockerd", b"containerd")


def _entries(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


def _verdict(what: str, measured: float, most: float) -> list[str]:
    return [
        f"{what} (at most {most})" if most else what,
        f"{measured:.0f}",
        "reached" if measured <= most else "NOT reached",
    ]
