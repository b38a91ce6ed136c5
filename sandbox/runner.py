"""Who watches a call? The first process of a box: it takes one call, has it run by a child, and reports.

Order matters. The child is forked before the keys of the channel arrive, so the process that will run the tool has
never had them in memory. This process cannot be traced or opened through /proc, never runs or parses what a tool
made, and ends when the hub goes away: a box does not outlive the process that asked for it, because the engine
removes it then.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

if __name__ == "__main__":  # Python was started isolated and does not know this folder
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sandbox import protocol, walls, watch

_FROM_HUB, _TO_HUB = 0, 1
_REAP_S = 2.0


class Child:
    """The tool's process, and everything that it may leave behind."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        self.cpu_ms = 0.0
        self.max_rss_bytes = 0

    def reap(self) -> bool:
        """Bury the dead. False when nobody is left, dead or alive."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.status = status
                self.cpu_ms = (usage.ru_utime + usage.ru_stime) * 1000
                self.max_rss_bytes = usage.ru_maxrss * 1024

    def kill_all(self) -> bool:
        """End every process of the box but this one, at once. True when there was one."""
        if not self.reap():
            return False
        deadline = time.monotonic() + _REAP_S
        while self.reap() and time.monotonic() < deadline:
            os.kill(-1, signal.SIGKILL)  # atomic against a tool that forks: the kernel walks the whole namespace
            time.sleep(0.001)
        return True

    def how_it_ended(self) -> dict[str, int]:
        if self.status is None:
            return {}
        return (
            {"signal": os.WTERMSIG(self.status)}
            if os.WIFSIGNALED(self.status)
            else {"code": os.WEXITSTATUS(self.status)}
        )


class Signals:
    """News by signal: a child ended, or the hub wants the call to end."""

    def __init__(self) -> None:
        self.fd, inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.cancelled = False
        signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing runs yet

    def expect_cancel(self) -> None:
        signal.signal(signal.SIGTERM, self._cancel)

    def _cancel(self, *_: object) -> None:
        self.cancelled = True

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.fd, 512)


def _read_from_hub(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(_FROM_HUB, min(size - len(data), 1 << 20))
        if not chunk:
            os._exit(0)  # the hub went away
        data += chunk
    return bytes(data)


def _write_to_hub(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(_TO_HUB, view) :]


def _out_of_memory_kills() -> int:
    """How often the kernel has killed in this box for lack of memory."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as file:
                return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
        except OSError:
            continue
    return 0


def _fork_child() -> tuple[int, socket.socket]:
    end, childs_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        end.close()
        empty = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(empty, fd)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from sandbox import call  # noqa: PLC0415 - only here: the supervisor stays small and never holds the tool's side

        call.serve_one(childs_end)
    childs_end.close()
    return pid, end


def _hand_over(end: socket.socket, body: bytes) -> tuple[int, int, int]:
    """Give the work to the child; returns the reading ends of its report, stdout and stderr."""
    work = os.memfd_create("work")
    view = memoryview(body)
    while view:
        view = view[os.write(work, view) :]
    os.lseek(work, 0, os.SEEK_SET)
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
    socket.send_fds(end, [b"work"], [work, *(write for _, write in pipes)])
    for fd in (work, *(write for _, write in pipes)):
        os.close(fd)
    report, stdout, stderr = (read for read, _ in pipes)
    return report, stdout, stderr


def _last_message(end: socket.socket) -> bytes:
    end.setblocking(False)
    try:
        return end.recv(4096)
    except OSError:
        return b""


def _gone() -> str:
    os._exit(0)


def main() -> NoReturn:
    if os.getpid() != 1:  # killing "everybody" is this program's normal work
        raise SystemExit("The runner is the first process of a sandbox container and starts nowhere else.")
    started = time.monotonic()
    os.umask(0o077)
    walls.scrub_environment()
    walls.set_dumpable(False)
    signals = Signals()
    pid, end = _fork_child()
    child = Child(pid)
    channel = protocol.Channel(_read_from_hub, _write_to_hub)
    channel.accept()
    ready = {
        "landlock": walls.landlock_version(),
        "python": sys.version.split()[0],
        "boot_ms": (time.monotonic() - started) * 1000,
    }
    channel.send(protocol.READY, protocol.pack(ready))
    body = channel.receive(protocol.CALL)
    begun = time.monotonic()
    signals.expect_cancel()
    head = protocol.head_of(body)
    channel.send(protocol.RESULT, _run(head["limits"], body, begun, child, end, signals))
    os._exit(0)


def _run(
    limits: dict[str, int], body: bytes, begun: float, child: Child, end: socket.socket, signals: Signals
) -> bytes:
    def on_signal() -> str:
        signals.clear()
        child.reap()
        if child.status is not None:
            return watch.EXITED
        return watch.CANCELLED if signals.cancelled else ""

    kills_before = _out_of_memory_kills()
    run = watch.Watch(*_hand_over(end, body), limits=limits, report_extra=protocol.MAX_REPORT_BYTES + 16)
    del body
    ended = run.wait(begun + limits["wall_ms"] / 1000, {signals.fd: on_signal, _FROM_HUB: _gone})
    left_behind = child.kill_all()
    finished = time.monotonic()
    ended = run.finish(ended)
    said = _last_message(end)
    head: dict[str, Any] = {
        "ended": ended,
        "started": said == protocol.WALLS_ARE_UP,
        "why_not": "" if said == protocol.WALLS_ARE_UP else said.decode("utf-8", "replace"),
        "exit": child.how_it_ended(),
        "out_of_memory": _out_of_memory_kills() > kills_before,
        "clean": ended == watch.EXITED and not left_behind,
        "load_ms": ((run.loaded_at or finished) - begun) * 1000,
        "run_ms": (finished - begun) * 1000,
        "cpu_ms": child.cpu_ms,
        "max_rss_bytes": child.max_rss_bytes,
    }
    return protocol.pack(head, run.report, *run.logs)


if __name__ == "__main__":
    try:
        main()
    except protocol.ProtocolError as error:
        raise SystemExit(
            f"{error} Are the image and the hub of the same sources? This is {protocol.VERSION}."
        ) from None
