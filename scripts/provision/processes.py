"""Processes: which process this is, whether it is still the same one, and how it is ended by its id.

Process ids are used again. A process is therefore named by its id and the time at which it started.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import tempfile
import time
from pathlib import Path
from random import randrange
from typing import TYPE_CHECKING

from scripts.provision.console import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def take_turn(at: str) -> Iterator[None]:
    """Nobody else of this checkout does the same inside the block: a second one waits, and finds what the first has made."""
    (ROOT / "var").mkdir(exist_ok=True)
    with (ROOT / "var" / f"{at}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def started_at(pid: int) -> str | None:
    """The start time of a process in clock ticks since boot; None if it is gone or dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # from the third field on
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def identify_process(pid: int) -> str:
    """A name that no other process of this boot will have."""
    return f"{pid} {started_at(pid)}"


def find_pid(identity: str) -> int | None:
    """The id of the process of this name if it still lives."""
    number, _, started = identity.strip().partition(" ")
    if not number.isdigit() or started_at(int(number)) != started:
        return None
    return int(number)


def end_process(name: str, *signals: signal.Signals, patience_s: float = 10.0) -> None:
    """End a process with the first signal; with the next if that takes too long; SIGKILL comes last."""
    for number in (*signals, signal.SIGKILL):
        pid = find_pid(name)
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience_s
        while find_pid(name) is not None and time.monotonic() < deadline:
            _reap(pid)
            time.sleep(0.02)


@contextlib.contextmanager
def only_one(what: str) -> Iterator[None]:
    """Let one process of this machine at a time do this; who comes second waits here and then finds it done."""
    path = Path(tempfile.gettempdir(), f"toolhub-{what}.lock")
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        path.chmod(0o666)  # whatever the umask: the next one may be another user
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # not ours, or somebody was faster
        os.waitpid(pid, os.WNOHANG)


def free_port() -> int:
    """A port of loopback that stays free until its user binds it.

    It is not one that the kernel gives to whoever asks for any (32768 and above): those are soon taken by other connections, and
    what answers there may then be somebody else.
    """
    while True:
        port = randrange(20_000, 32_768)
        if is_free("127.0.0.1", port):
            return port


def is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def find_listener(port: int) -> str:
    """Who listens on a TCP port: ``process 123 (python)``, as far as this user may know."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if any(str(file.readlink()) in inodes for file in (entry / "fd").iterdir()):
                    return f"process {entry.name} ({(entry / 'comm').read_text().strip()})"
    return "a process of another user"
