"""File trials: whether a model's file can be loaded and asked, tried in a process of its own.

Where llama.cpp finds something odd in a file it ends the whole process, and a hub must not end with it. The trial knows no secret of
the hub's, and where memory is short the system ends it first. What the trial has read of the file, the hub need not read again.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  see below
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock, Timer
from typing import TYPE_CHECKING, Any

from llm.providers.llama_servers import ServerPlan, open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 600  # a large file comes from a slow disk
PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from llm.providers.file_trials import main; main()"
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME")
LOADED, ANSWERED = "loaded", "answered"
KEPT = 4096  # bytes of what a trial writes at last
DISK = f"was not loaded within {PATIENCE_S // 60} minutes: take a smaller one, or a faster disk"
MEMORY = "needs more memory than the machine has: take a smaller one, or lower the provider's option `context_tokens`"
UNASKED = (
    "was loaded, but it could not be asked: it may be meant for something else, or converted wrongly. Convert it anew"
)
UNLOADED = (
    "cannot be loaded: it is damaged, or newer than the installed xllamacpp. Copy it again, or convert it for that"
)


@dataclass(frozen=True, slots=True)
class FileFault:
    """``ending``: of a sentence that begins with the file. ``may_pass``: it lies in the machine and not in the file."""

    ending: str
    may_pass: bool = False


class RunningTrials:
    """Those of a process. Where it ends, they end before its threads are waited for, and no more begin."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._lock = Lock()
        self.are_over = False

    @contextmanager
    def run(self, command: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        with self._lock:
            if self.are_over:
                raise OSError(errno.ESHUTDOWN, os.strerror(errno.ESHUTDOWN))
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._processes.add(process)
        try:
            with process:
                try:
                    yield process
                except BaseException:
                    process.kill()
                    raise
        finally:
            with self._lock:
                self._processes.discard(process)

    def end(self) -> None:
        with self._lock:
            self.are_over = True
            for process in self._processes:
                process.kill()


running_trials = RunningTrials()
# The threads of executors are joined before anything of `atexit` runs; Python has no public way to be told before that. What is
# registered later is called earlier, so before those of `concurrent.futures`, which is imported above for this.
getattr(threading, "_register_atexit", atexit.register)(running_trials.end)


def find_fault(plan: ServerPlan) -> FileFault | None:
    """What is wrong with the file; None where nothing is. Takes as long as to load it."""
    command = [sys.executable, "-I", "-c", PROGRAM, json.dumps(sys.path), json.dumps(asdict(plan))]
    # Its own way of saying where it ended would take a debugger, and seconds.
    env = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"GGML_NO_BACKTRACE": "1"}
    is_late = Event()

    def end_late(process: subprocess.Popen[bytes]) -> None:
        is_late.set()
        process.kill()

    try:
        with (
            tempfile.TemporaryDirectory(prefix="toolhub-trial-") as folder,  # what it cannot clear away itself
            running_trials.run(command, env | {"TMPDIR": folder}) as process,
        ):
            timer = Timer(PATIENCE_S, end_late, [process])
            timer.daemon = True
            timer.start()
            try:
                written = _read_end(process)
                status = process.wait()
            finally:
                timer.cancel()
    except OSError as error:
        ending = f"could not be tried, for no process could be started ({error.strerror}): look at the machine's limits"
        return FileFault(ending, may_pass=True)
    if written.endswith(ANSWERED):
        return None
    if is_late.is_set() or status == -signal.SIGALRM:
        return FileFault(DISK, may_pass=True)
    if status == -signal.SIGKILL:
        return FileFault(MEMORY, may_pass=True)
    return FileFault(UNASKED if LOADED in written else UNLOADED)


def _read_end(process: subprocess.Popen[bytes]) -> str:
    """What it wrote at last: the library may write anything, and as much as it likes."""
    assert process.stdout is not None
    written = b""
    while piece := process.stdout.read(KEPT):
        written = (written + piece)[-KEPT:]
    return written.decode(errors="replace")


def main() -> None:
    """In the process of the trial, which also ends where the hub was killed and nobody waits for it."""
    signal.alarm(PATIENCE_S)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    plan = ServerPlan(**json.loads(sys.argv[2]))
    server = open_server(plan)
    _say(LOADED)
    if _ask(server, plan.pooling):
        _say(ANSWERED)
    # Nothing of the library's ending can spoil what was found.
    os._exit(0)


def _say(word: str) -> None:
    sys.stdout.write(word)
    sys.stdout.flush()


def _ask(server: Any, pooling: str) -> bool:
    if pooling == "none":
        pieces: list[str] = []
        body: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "stream": True}
        server.handle_chat_completions(json.dumps(body), pieces.append)
        return any("choices" in json.loads(piece) for piece in pieces)
    if pooling == "rank":
        return "results" in json.loads(server.handle_rerank(json.dumps({"query": "a", "documents": ["b"]})))
    return "data" in json.loads(server.handle_embeddings(json.dumps({"input": ["a"]})))
