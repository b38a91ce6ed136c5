"""How can the hub be tested without an engine?

A sandbox without walls that keeps the contract otherwise: a process of its own for each call, killed at its limits,
read as strictly as the real one, with what the profile lacks refused by the audit hook. Good for tests and for
writing tools; never for code that is not trusted.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from invocations.sandbox.base import Event, Outcome, Profile, SandboxCall, Status
from invocations.sandbox.events import Telling
from invocations.sandbox.results import outcome_of
from invocations.sandbox.work import UnusableCall, pack_call, pack_load
from sandbox import protocol, watch

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = Path(__file__).resolve().parents[2]
_COMMAND = "import sys; sys.path.insert(0, sys.argv[1]); from sandbox import unwalled; unwalled.serve(sys.argv[2])"
_IMAGE = "fake"


class _Run:
    """One process, and a pipe that wakes whoever waits for it."""

    def __init__(self, command: list[str], work: bytes) -> None:
        self.report, report_end = os.pipe()
        self.progress, progress_end = os.pipe()
        self.cancelled, self._cancel_end = os.pipe()
        with tempfile.TemporaryFile() as file:
            file.write(work)
            file.seek(0)
            self.process = subprocess.Popen(
                command,
                stdin=file,
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

    def cancel(self) -> None:
        os.write(self._cancel_end, b"x")

    def kill_all(self) -> None:
        """End the process and whatever it started in its session."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        for fd in (self.cancelled, self._cancel_end, self.ended):
            os.close(fd)


class FakeSandbox:
    """Implements :class:`invocations.sandbox.base.Sandbox` with processes of this machine."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._lock = threading.Lock()
        self._closed = False

    def missing(self, profile: Profile) -> tuple[str, ...]:
        return profile.outside

    def run(self, profile: Profile, call: SandboxCall, on_event: Callable[[Event], None] | None = None) -> Outcome:
        lacking = self.missing(profile)
        if lacking:
            sentence = f"This sandbox cannot give a tool the capability {' or '.join(lacking)}."
            return Outcome(Status.CAPABILITY_BLOCKED, blocked=lacking[0], error_message=sentence)
        if call.program:
            return Outcome(Status.START_FAILED, error_message="This sandbox has no images: it runs functions only.")
        if profile.untrusted:
            return Outcome(
                Status.START_FAILED, error_message="This sandbox has no walls: nothing untrusted is run in it."
            )
        moments = [time.monotonic()]
        place = Path(tempfile.mkdtemp(prefix="toolhub-fake-"))
        try:
            work = protocol.pack({}, pack_load(profile, call, level="cold"), pack_call(call, stream=False))
            run = _Run([sys.executable, "-I", "-B", "-c", _COMMAND, str(_ROOT), str(place)], work)
            with self._lock:
                self._runs[call.name] = run
                if self._closed:
                    run.cancel()
            try:
                return self._watch(run, profile, moments, Telling(on_event) if on_event is not None else None)
            finally:
                with self._lock:
                    self._runs.pop(call.name, None)
                run.close()
        except UnusableCall as error:
            return Outcome(Status.START_FAILED, error_message=str(error))
        finally:
            _delete(place)

    def _watch(self, run: _Run, profile: Profile, moments: list[float], telling: Telling | None) -> Outcome:
        limits, process = profile.limits, run.process
        started = time.monotonic()
        streams = [_fileno(process.stdout), _fileno(process.stderr)]
        streams.append(run.progress)
        report_extra = protocol.MAX_REPORT_BYTES + 16
        watcher = watch.Watch(run.report, *streams, limits=asdict(limits), report_extra=report_extra, tell=telling)
        others: dict[int, Callable[[], str]] = {run.ended: lambda: watch.EXITED, run.cancelled: lambda: watch.CANCELLED}
        ended = watcher.wait(started + limits.wall_ms / 1000, others)
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
            "clean": ended == watch.EXITED,
            "run_ms": (finished - started) * 1000,
            "cpu_ms": (usage.ru_utime + usage.ru_stime) * 1000,
            "cpu_exact": False,
            "max_rss_bytes": usage.ru_maxrss * 1024,
        }
        moments += [started, watcher.loaded_at or finished, finished]
        outcome = outcome_of(head, [watcher.report, *watcher.logs], limits, image=_IMAGE, box=str(process.pid))
        moments.append(time.monotonic())
        return replace(outcome, steps=_steps(moments))

    closing = False

    def kill(self, name: str) -> None:
        with self._lock:
            if name in self._runs:
                self._runs[name].cancel()

    def snapshot(self) -> None:
        """There are no boxes."""

    def check(self) -> str:
        return "Fake sandbox: tools run as plain processes of this machine, WITHOUT walls"

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
