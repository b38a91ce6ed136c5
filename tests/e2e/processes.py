"""Processes: how does a test start whole processes, wait for what they do, and end exactly those?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 2.0  # after which who waits looks less often
PATIENCE_S = 60.0  # for a loaded machine; nothing is concluded from how long something took
T = TypeVar("T")


def until(condition: Callable[[], T], what: str, *, within_s: float = PATIENCE_S) -> T:
    """Ask until the answer is true, and return it; fails with ``what`` when that takes too long."""
    begun = time.monotonic()
    deadline = begun + within_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {within_s:.0f} s in vain: {what}")
        # Each look takes of the processors that what is waited for needs, as at the start of a hub.
        time.sleep(0.05 if time.monotonic() - begun < SOON_S else 0.2)


def clean_environment(**settings: str) -> dict[str, str]:
    """The environment without what a test run or a shell has put there for its own hub."""
    foreign = ("TOOLHUB_", "DJANGO_", "PYTEST_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    if image := os.environ.get("TOOLHUB_SANDBOX_IMAGE"):
        env["TOOLHUB_SANDBOX_IMAGE"] = image
    return env | {"PYTHONUNBUFFERED": "1", "TOOLHUB_ENV_FILE": ""} | settings


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def run(command: Sequence[str], env: Mapping[str, str], *, within_s: float = 2 * PATIENCE_S) -> str:
    """Run a command to its end; returns what it printed, and fails with all of it when it failed."""
    done = subprocess.run(
        command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=within_s, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Process:
    """A started process whose output goes to a file."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._from = output.tell()
            self._popen = subprocess.Popen(
                command, env=env, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def runs(self) -> bool:
        return self._popen.poll() is None

    def said(self) -> str:
        return self.log.read_bytes()[self._from :].decode(errors="replace")

    def wait_for(self, condition: Callable[[], T], what: str, *, within_s: float = PATIENCE_S) -> T:
        """As :func:`until`, but gives up at once, with the output, when the process ends."""

        def look() -> T:
            assert self.runs, f"{what}: the process ended with {self._popen.returncode}\n{self.said()}"
            return condition()

        try:
            return until(look, what, within_s=within_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said()}") from None

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def ended(self, *, within_s: float = PATIENCE_S) -> int:
        """Wait for the end; returns the exit status."""
        try:
            return self._popen.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"Process {self.pid} has not ended within {within_s:.0f} s\n{self.said()}") from None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it as its owner would; if it does not listen, end it anyhow and fail."""
        if self.runs:
            self.send(number)
        try:
            return self.ended()
        finally:
            self.kill()

    def kill(self) -> None:
        if self.runs:
            self._popen.kill()
        self._popen.wait()
