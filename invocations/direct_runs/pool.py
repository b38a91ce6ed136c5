"""Process pool: how a trusted call finds a process that is ready.

Each process makes one call and ends, so none finds anything of another; the next one is started when a call has ended, and waits
with the harness loaded. The first call of all starts its own, and a hub without trusted tools has none.
"""

from __future__ import annotations

import compileall
import math
import shutil
import sys
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.direct_runs.child import SECONDS
from invocations.direct_runs.processes import LOAD_S, ProcessSandbox, ToolProcess

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile

READY = 2  # processes that wait, some 9 MiB each
GRACE_S = 5  # a run that nobody watches any more ends so long after its time
_ROOT = Path(__file__).resolve().parents[2]
_HARNESS = ("sandbox", "unitools")


class DirectSandbox(ProcessSandbox):
    """Implements :class:`invocations.sandbox.base.Sandbox` for tools that an operator trusts."""

    image = level = "direct"

    def __init__(self, ready: int = READY, *, load_s: float = LOAD_S) -> None:
        super().__init__(load_s=load_s)
        self._most, self._ready = ready, deque[ToolProcess]()
        self._harness: Path | None = None
        self._tidier = ThreadPoolExecutor(1, "direct")

    def take(self) -> ToolProcess:
        while True:
            with self._lock:
                process = self._ready.popleft() if self._ready else None
            if process is None:
                return self._start()
            if process.process.poll() is None:
                return process
            process.discard()

    def pack(self, work: bytes, profile: Profile) -> bytes:
        seconds = math.ceil(self.load_s) + profile.limits.wall_ms // 1000 + GRACE_S
        return seconds.to_bytes(SECONDS, "big") + work

    def put_away(self, run: ToolProcess) -> None:
        """Nobody waits for that, nor for the next process."""
        try:
            self._tidier.submit(self._renew, run)
        except RuntimeError:  # closed meanwhile
            run.close()

    def _renew(self, run: ToolProcess) -> None:
        run.close()
        try:
            while len(self._ready) < self._most and not self._closed:
                self._ready.append(self._start())
        except OSError:
            return  # the next call starts its own

    @property
    def waiting(self) -> int:
        """Processes that are ready, once what is being done has been done."""
        self._tidier.submit(lambda: None).result()
        return len(self._ready)

    def check(self) -> str:
        return "Trusted tools run directly, without walls"

    def close(self) -> None:
        super().close()
        self._tidier.shutdown()
        with self._lock:
            left, harness = [*self._ready], self._harness
            self._ready.clear()
            self._harness = None
        for process in left:
            process.discard()
        if harness is not None:
            shutil.rmtree(harness, ignore_errors=True)

    def _start(self) -> ToolProcess:
        with self._lock:
            self._harness = harness = self._harness or _copied()
        place = Path(tempfile.mkdtemp(prefix="toolhub-direct-"))
        return ToolProcess([sys.executable, "-I", "-S", "-B", str(harness / "child.py"), str(place)], place)


def _copied() -> Path:
    """What a call needs and nothing else, so that a tool finds nothing of the hub beside it."""
    harness = Path(tempfile.mkdtemp(prefix="toolhub-harness-"))
    for name in _HARNESS:
        shutil.copytree(_ROOT / name, harness / name, ignore=shutil.ignore_patterns("__pycache__", "image"))
    shutil.copy(Path(__file__).with_name("child.py"), harness)
    compileall.compile_dir(harness, quiet=2)
    return harness
