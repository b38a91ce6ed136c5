"""Process runner: runs a program beside us, its lines heard as they come, its time and memory bounded, nothing left."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MAX_LINES = 50_000
BEAT_S = 1.0
NICENESS = 10  # calls go first
MAX_MEMORY = 4 * 2**30  # of addresses; what it reads was made by others


class TookTooLong(Exception):
    """The program was ended because its time was over."""


def run_program(
    command: Sequence[str],
    *,
    env: dict[str, str],
    cwd: Path,
    within_s: float,
    hear: Callable[[str], None],
    beat: Callable[[], None],
) -> tuple[int, list[str]]:
    """The exit status and what it said, on both streams. ``beat`` is called about once a second; what it raises ends the program."""
    process = subprocess.Popen(
        command,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            resource.prlimit(process.pid, resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
        lines = _listen(process, time.monotonic() + within_s, hear, beat)
        return process.wait(), lines
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def _listen(
    process: subprocess.Popen[bytes], until: float, hear: Callable[[str], None], beat: Callable[[], None]
) -> list[str]:
    assert process.stdout is not None
    said: deque[str] = deque(maxlen=MAX_LINES)
    rest, next_beat = b"", 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if now >= until:
                raise TookTooLong
            if now >= next_beat:
                beat()
                next_beat = now + BEAT_S
            if not selector.select(BEAT_S):
                continue
            chunk = os.read(process.stdout.fileno(), 65_536)
            *whole, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                whole, rest = [rest], b""
            for raw in whole:
                line = raw.decode("utf-8", "replace").rstrip()
                said.append(line)
                hear(line)
            if not chunk:
                return list(said)
