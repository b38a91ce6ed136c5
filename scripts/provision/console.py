"""Console: how a person is told what happens, what failed, and what to type.

Each piece of work is a :func:`announce_step`: one line while it goes on, one line with its duration when it is done. What the
programs it starts say goes to a log file, and the end of that is shown only if one of them fails.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "var" / "log" / "setup.log"
HEARTBEAT_S = 20.0
TAIL_LINES = 15


class SetupError(Exception):
    """What went wrong, as a sentence, and what a person can do about it."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}\n{self.remedy}" if self.remedy else self.what


def print_line(text: str = "") -> None:
    print(text, flush=True)


@contextlib.contextmanager
def announce_step(doing: str, done: str) -> Iterator[None]:
    """Announce a piece of work; say how long it took; on a terminal count the seconds meanwhile."""
    begun = time.monotonic()
    over = threading.Event()
    live = sys.stdout.isatty()
    if not live:
        print_line(f"           {doing} …")

    def beat() -> None:
        while not over.wait(0.2 if live else HEARTBEAT_S):
            seconds = time.monotonic() - begun
            if live:
                print(f"\r  {seconds:6.1f} s  {doing} …", end="", flush=True)
            else:
                print_line(f"           still {doing} ({seconds:.0f} s so far)")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        over.set()
        thread.join()
        print_line(f"\r[{time.monotonic() - begun:6.1f} s] FAILED: {doing}")
        raise
    over.set()
    thread.join()
    clear = "\r\033[K" if live else ""
    print_line(f"{clear}[{time.monotonic() - begun:6.1f} s] {done}")


def run_program(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    remedy: str = "",
    timeout_s: float | None = None,
) -> None:
    """Run a program with its output in the log; raise Trouble with the end of that output if it fails."""
    words = [os.fspath(word) for word in command]
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("ab") as log:
        log.write(f"\n$ {shlex.join(words)}\n".encode())
        log.flush()
        start = log.tell()
        try:
            code = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                timeout=timeout_s,
            ).returncode
        except FileNotFoundError as error:
            raise SetupError(f"The program {words[0]!r} is not there.", remedy) from error
        except subprocess.TimeoutExpired as error:
            raise SetupError(f"{shlex.join(words)} did not end within {timeout_s:.0f} s. See {LOG}.", remedy) from error
    if code:
        with LOG.open("rb") as log:
            log.seek(start)
            tail = log.read().decode(errors="replace").strip().splitlines()[-TAIL_LINES:]
        said = "\n".join(f"    {line}" for line in tail)
        raise SetupError(f"{shlex.join(words)} failed with exit status {code}:\n{said}\n(all of it: {LOG})", remedy)


def query_program(
    command: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None, timeout_s: float = 20.0
) -> str | None:
    """What a program prints, or None if it fails, is missing, or does not answer in time. ``env`` is added to ours."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=os.environ | (env or {}),
            timeout=timeout_s,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def as_root(command: Sequence[str], *, purpose: str, by_hand: str = "") -> list[str]:
    """The command as this user can run it with root's rights, or Trouble that says what to type (``by_hand``)."""
    if os.geteuid() == 0:
        return list(command)
    if shutil.which("sudo") and query_program(["sudo", "-n", "true"]) is not None:
        return ["sudo", "-n", *command]
    why = "sudo asks for a password here" if shutil.which("sudo") else "there is no sudo here"
    raise SetupError(
        f"{purpose} needs root, and {why}.", f"Type (as root):  {by_hand or shlex.join(command)}\nand run this again."
    )
