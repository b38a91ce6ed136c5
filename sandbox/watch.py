"""When does a run end, and what did it leave in its pipes?

The tool's process has three pipes: its report, stdout, stderr. They are read here as bytes with limits and never
interpreted. The caller says what else may end the run.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EXITED, TIMED_OUT, CANCELLED, LOG_FLOOD, RESULT_TOO_LARGE = (
    "exited",
    "timed_out",
    "cancelled",
    "log_flood",
    "result_too_large",
)


class _Pipe:
    """One pipe: the first ``keep`` bytes of it, and an end to everybody's patience at ``limit``."""

    def __init__(self, fd: int, *, keep: int, limit: int) -> None:
        self.fd, self.kept, self.total, self.first_at = fd, bytearray(), 0, 0.0
        self._keep, self._limit = keep, limit
        os.set_blocking(fd, False)

    def drain(self) -> bool:
        """Take what is there. False when the other side has closed."""
        while self.total <= self._limit:
            try:
                chunk = os.read(self.fd, 65536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.first_at = self.first_at or time.monotonic()
            self.total += len(chunk)
            self.kept += chunk[: max(0, self._keep - len(self.kept))]
        return True

    @property
    def overflowed(self) -> bool:
        return self.total > self._limit


class Watch:
    """Watch one run. ``loaded_at`` is when the first byte of its report came, 0 if none did."""

    def __init__(self, report: int, stdout: int, stderr: int, *, limits: dict[str, int], report_extra: int) -> None:
        most = limits["result_bytes"] + report_extra
        self._report = _Pipe(report, keep=most, limit=most)
        self._logs = [_Pipe(fd, keep=limits["log_bytes"], limit=limits["log_flood_bytes"]) for fd in (stdout, stderr)]
        self._pipes = {pipe.fd: pipe for pipe in (self._report, *self._logs)}

    def wait(self, deadline: float, others: dict[int, Callable[[], str]]) -> str:
        """Block until something ends the run. ``others``: what to call when a descriptor has news; a word ends it."""
        poll = select.poll()
        for fd in (*self._pipes, *others):
            poll.register(fd, select.POLLIN if fd in self._pipes or fd != 0 else 0)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return TIMED_OUT
            for fd, _ in poll.poll(left * 1000 + 1):
                if fd in others:
                    ended = others[fd]()
                    if ended:
                        return ended
                elif not self._pipes[fd].drain():
                    poll.unregister(fd)
            if self._overflow():
                return self._overflow()

    def finish(self, ended: str) -> str:
        """After every process of the run is gone: take the rest of the pipes, close them, and say the final word."""
        for pipe in self._pipes.values():
            pipe.drain()
            os.close(pipe.fd)
        return self._overflow() or ended if ended == EXITED else ended

    def _overflow(self) -> str:
        if self._report.overflowed:
            return RESULT_TOO_LARGE
        return LOG_FLOOD if any(log.overflowed for log in self._logs) else ""

    @property
    def loaded_at(self) -> float:
        return self._report.first_at

    @property
    def report(self) -> bytes:
        return bytes(self._report.kept)

    @property
    def logs(self) -> tuple[bytes, bytes]:
        return bytes(self._logs[0].kept), bytes(self._logs[1].kept)
