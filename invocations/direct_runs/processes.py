"""Tool processes: how a tool runs as a plain process of this machine.

A process of its own for each call, with the kernel's limits, killed when its time is over, and read as strictly as a box; what
the profile lacks is refused by the audit hook. There is no wall that would hold against native code.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from invocations.sandbox.base import Profile, RunEvent, RunOutcome, RunStatus, SandboxCall
from invocations.sandbox.boxes.payloads import UnusableCall, pack_call, pack_load
from invocations.sandbox.results import build_outcome
from invocations.sandbox.run_events import EventRelay
from sandbox import protocol, run_monitor

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.stats import SandboxSnapshot


LOAD_S = 60.0


class ToolProcess:
    """One process, which waits for its work, and a pipe that wakes whoever waits for it. Its folder is removed with it."""

    def __init__(self, command: list[str], place: Path) -> None:
        self.place = place
        self.report, report_end = os.pipe()
        self.progress, progress_end = os.pipe()
        self.cancelled, self._cancel_end = os.pipe()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(report_end, progress_end),
            env={
                "PATH": "/usr/bin",
                "LANG": "C.UTF-8",
                "TOOLHUB_REPORT_FD": str(report_end),
                "TOOLHUB_PROGRESS_FD": str(progress_end),
            },
            start_new_session=True,
        )
        os.close(report_end)
        os.close(progress_end)
        self.ended = os.pidfd_open(self.process.pid)

    def give(self, work: bytes) -> None:
        """To one that has ended already nothing can be given: it is seen to have ended."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as pipe:
            pipe.write(work)

    def cancel(self) -> None:
        os.write(self._cancel_end, b"x")

    def kill_all(self) -> None:
        """End the process and whatever it started in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        for fd in (self.cancelled, self._cancel_end, self.ended):
            os.close(fd)
        _delete(self.place)

    def discard(self) -> None:
        """End one that was never given anything."""
        self.kill_all()
        self.process.communicate()
        os.close(self.report)
        os.close(self.progress)
        self.close()


class ProcessSandbox(ABC):
    """Implements :class:`invocations.sandbox.base.Sandbox` with processes of this machine."""

    image = ""
    level = ""
    closing = False

    def __init__(self, *, load_s: float = LOAD_S) -> None:
        self.load_s = load_s
        self._runs: dict[str, ToolProcess] = {}
        self._lock = threading.Lock()
        self._closed = False

    @abstractmethod
    def take(self) -> ToolProcess:
        """A process that waits for work."""

    @abstractmethod
    def check(self) -> str: ...

    def put_away(self, run: ToolProcess) -> None:
        """After a run, whoever has called waits for it."""
        run.close()

    def pack(self, work: bytes, profile: Profile) -> bytes:
        return work

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        return profile.outside

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        lacking = self.missing(profile)
        if lacking:
            sentence = f"This sandbox cannot give a tool the capability {' or '.join(lacking)}."
            return RunOutcome(RunStatus.CAPABILITY_BLOCKED, blocked=lacking[0], error_message=sentence)
        if call.program or call.server or call.is_by_gate:
            return RunOutcome(
                RunStatus.START_FAILED, error_message="This sandbox has no images and no gate: it runs functions only."
            )
        if profile.untrusted:
            return RunOutcome(
                RunStatus.START_FAILED, error_message="This sandbox has no walls: nothing untrusted is run in it."
            )
        if self._closed:
            return RunOutcome(RunStatus.CANCELLED, error_message="This sandbox starts nothing any more.")
        moments = [time.monotonic()]
        try:
            load = pack_load(profile, call, level="cold", load_s=self.load_s)
            work = protocol.pack({}, load, pack_call(call, stream=False))
        except UnusableCall as error:
            return RunOutcome(RunStatus.START_FAILED, error_message=str(error))
        try:
            run = self.take()
        except OSError as error:
            return RunOutcome(RunStatus.START_FAILED, error_message=f"No process could be started: {error}")
        with self._lock:
            self._runs[call.name] = run
            if self._closed:
                run.cancel()
        try:
            return self._watch(run, self.pack(work, profile), profile, moments, on_event)
        finally:
            with self._lock:
                self._runs.pop(call.name, None)
            self.put_away(run)

    def _watch(
        self,
        run: ToolProcess,
        work: bytes,
        profile: Profile,
        moments: list[float],
        on_event: Callable[[RunEvent], None] | None,
    ) -> RunOutcome:
        limits, process = profile.limits, run.process
        started = time.monotonic()
        streams = [_fileno(process.stdout), _fileno(process.stderr), run.progress]
        watcher = run_monitor.RunMonitor(
            run.report,
            *streams,
            limits=asdict(limits),
            report_extra=protocol.MAX_REPORT_BYTES + 16,
            tell=EventRelay(on_event) if on_event is not None else None,
        )
        others: dict[int, Callable[[], str]] = {
            run.ended: lambda: run_monitor.EXITED,
            run.cancelled: lambda: run_monitor.CANCELLED,
        }
        run.give(work)
        ended = watcher.wait(others, load_until=started + self.load_s, run_s=limits.wall_ms / 1000)
        run.kill_all()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        finished = time.monotonic()
        ended = watcher.finish(ended)
        code = process.returncode
        head: dict[str, Any] = {
            "ended": ended,
            "started": True,
            "why_not": "",
            "exit": {"signal": -code} if code < 0 else {"code": code},
            "out_of_memory": False,
            "clean": ended == run_monitor.EXITED,
            "import_ms": self.load_s * 1000,
            "run_ms": (finished - started) * 1000,
            "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000,
            "cpu_exact": False,
            "max_rss_bytes": usage.ru_maxrss * 1024,
        }
        moments += [started, watcher.loaded_at or finished, finished]
        said = [watcher.report, *watcher.logs]
        outcome = build_outcome(head, said, limits, image=self.image, box=str(process.pid), level=self.level)
        moments.append(time.monotonic())
        return replace(outcome, steps=_steps(moments))

    def kill(self, name: str) -> None:
        with self._lock:
            if name in self._runs:
                self._runs[name].cancel()

    def snapshot(self) -> SandboxSnapshot | None:
        """There are no boxes."""
        return None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for run in self._runs.values():
                run.cancel()


def _steps(moments: list[float]) -> tuple[tuple[str, float, float], ...]:
    since = [(moment - moments[0]) * 1000 for moment in moments]
    return tuple(zip(("wait", "load", "run", "collect"), since, since[1:], strict=False))


def _fileno(stream: IO[bytes] | None) -> int:
    """A descriptor of our own for a stream of the process; the watcher closes it."""
    assert stream is not None
    with stream:
        return os.dup(stream.fileno())


def _delete(place: Path) -> None:
    """The tool's package is write-protected, so open it up first."""
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
