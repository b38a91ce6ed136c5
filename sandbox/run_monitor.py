"""Run monitor: when a run ends, and what it left in its pipes.

The tool's process has four pipes: its report, stdout, stderr, progress. They are read here as bytes with limits and
never interpreted. The caller says what else may end the run, and may be told what comes while it comes.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXITED, LOAD_TIMED_OUT, TIMED_OUT, SPENT, IDLED, CANCELLED, LOG_FLOOD, RESULT_TOO_LARGE, ZYGOTE_GONE, UNKNOWN = (
    "exited",
    "load_timed_out",  # before the tool was called
    "timed_out",
    "spent",
    "idled",
    "cancelled",
    "log_flood",
    "result_too_large",
    "zygote_gone",
    "unknown",  # its own process says that nothing ran, and may not be believed
)
STDOUT, STDERR, PROGRESS = "stdout", "stderr", "progress"
_TELL_EVERY_S = 0.05
_LOOK_EVERY_S = 0.25  # at what has been spent
_TELL_BYTES = 32 * 1024


class _Pipe:
    """One pipe: the first ``keep`` bytes of it, and an end to everybody's patience at ``limit``."""

    def __init__(self, fd: int, *, keep: int, limit: int) -> None:
        self.fd, self.kept, self.total, self.first_at, self.closed = fd, bytearray(), 0, 0.0, False
        self._keep, self._limit, self._told = keep, limit, 0
        os.set_blocking(fd, False)

    def take(self) -> bool:
        """A piece of what is there. False when the other side has closed."""
        try:
            chunk = os.read(self.fd, 65536)
        except BlockingIOError:
            return True
        self.closed = not chunk
        if chunk:
            self.first_at = self.first_at or time.monotonic()
            self.total += len(chunk)
            self.kept += chunk[: max(0, self._keep - len(self.kept))]
        return bool(chunk)

    def drain(self) -> None:
        """All that is there, to the limit: whoever wrote may have asked for it to be read in the pieces that he wrote."""
        before = -1
        while not self.closed and before < self.total <= self._limit:
            before = self.total
            self.take()

    def news(self) -> bytes:
        """What was kept since this was asked last."""
        new = bytes(self.kept[self._told : self._told + _TELL_BYTES])
        self._told += len(new)
        return new

    @property
    def overflowed(self) -> bool:
        return self.total > self._limit


class RunMonitor:
    """Watch one run.

    ``tell`` gets the stream's name and its new bytes, a few times a second, when ``may_tell``: a hub that does not listen
    must not keep anybody from watching. ``is_spent`` says that the run has taken more processor time than it may: its own
    time begins with ``on_loaded``, when the tool's modules are imported, and until then it is that of importing. ``more_s``
    is asked when the time of importing is over: how much longer it may take, of all that it was given.
    """

    def __init__(
        self,
        report: int,
        stdout: int,
        stderr: int,
        progress: int,
        *,
        limits: dict[str, int],
        report_extra: int,
        tell: Callable[[str, bytes], None] | None = None,
        may_tell: Callable[[], bool] = lambda: True,
        on_loaded: Callable[[], None] = lambda: None,
        is_spent: Callable[[], bool] = lambda: False,
        more_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        most = limits["result_bytes"] + limits["artifact_bytes"] + report_extra
        self._report = _Pipe(report, keep=most, limit=most)
        self._streams = {
            name: _Pipe(fd, keep=limits["log_bytes"], limit=limits["log_flood_bytes"])
            for name, fd in ((STDOUT, stdout), (STDERR, stderr), (PROGRESS, progress))
        }
        self._pipes = {pipe.fd: pipe for pipe in (self._report, *self._streams.values())}
        self._idle_s = limits["idle_ms"] / 1000
        self._tell, self._may_tell = tell, may_tell
        self._tell_at = 0.0  # when something waits to be told
        self._on_loaded, self._is_spent, self._more_s = on_loaded, is_spent, more_s

    def wait(self, others: dict[int, Callable[[], str]], *, load_until: float, run_s: float) -> str:
        """Block until something ends the run. ``others``: what to call when a descriptor has news; a word ends it.

        ``load_until``: when the tool's modules must be imported, if no more is given; ``run_s``: how long it may run from then on.
        """
        poll = select.poll()
        for fd in (*self._pipes, *others):
            poll.register(fd, select.POLLIN)
        heard_at = now = time.monotonic()
        look_at = now + _LOOK_EVERY_S
        deadline, loaded = load_until, False
        while True:
            if not loaded and self.loaded_at:
                loaded, heard_at, deadline = True, self.loaded_at, self.loaded_at + run_s
                self._on_loaded()
            if now >= deadline and not loaded:
                deadline = load_until + self._more_s()
            if now >= deadline:
                return TIMED_OUT if loaded else LOAD_TIMED_OUT
            if now >= look_at:
                if self._is_spent():
                    return SPENT if loaded else LOAD_TIMED_OUT
                look_at = now + _LOOK_EVERY_S
            until = min(deadline, look_at)
            if self._idle_s and loaded:
                if now >= heard_at + self._idle_s:
                    return IDLED
                until = min(until, heard_at + self._idle_s)
            if self._tell_at:
                until = min(until, self._tell_at)
            for fd, _ in poll.poll(max(0.0, until - now) * 1000 + 1):
                if fd in others:
                    ended = others[fd]()
                    if ended:
                        return ended
                    continue
                if not self._pipes[fd].take():
                    poll.unregister(fd)
                elif fd != self._report.fd:
                    heard_at = time.monotonic()
                    if self._tell is not None:
                        self._tell_at = self._tell_at or heard_at + _TELL_EVERY_S
            now = time.monotonic()
            if self._tell_at and now >= self._tell_at:
                more = not self._may_tell() or self._tell_news()
                self._tell_at = now + _TELL_EVERY_S if more else 0.0
            if self._overflow():
                return self._overflow()

    def _tell_news(self) -> bool:
        """True when there may be more."""
        told = False
        for name, pipe in self._streams.items() if self._tell is not None else ():
            new = pipe.news()
            if new and self._tell is not None:
                self._tell(name, new)
                told = True
        return told

    def finish(self, ended: str) -> str:
        """After every process of the run is gone: take the rest of the pipes, close them, and say the final word."""
        for pipe in self._pipes.values():
            pipe.drain()
            os.close(pipe.fd)
        while self._tell_news():
            pass
        return self._overflow() or ended if ended == EXITED else ended

    def _overflow(self) -> str:
        if self._report.overflowed:
            return RESULT_TOO_LARGE
        return LOG_FLOOD if any(stream.overflowed for stream in self._streams.values()) else ""

    @property
    def was_heard(self) -> bool:
        """Whether anything came through any pipe."""
        return any(pipe.total for pipe in self._pipes.values())

    @property
    def loaded_at(self) -> float:
        return self._report.first_at

    @property
    def report(self) -> bytes:
        return bytes(self._report.kept)

    @property
    def logs(self) -> tuple[bytes, bytes]:
        return bytes(self._streams[STDOUT].kept), bytes(self._streams[STDERR].kept)
