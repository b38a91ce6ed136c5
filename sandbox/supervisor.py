"""Supervisor: who watches a call. The first process of a box: it is loaded once, has each call run by a process of its own, and
reports.

Order matters. The zygote, from which the tool's processes are forked, is itself forked before the keys of the channel
arrive, so no process that runs a tool has ever had them in memory. This process cannot be traced or opened through
/proc, never runs or parses what a tool made, and ends when the hub goes away: a box does not outlive the process that
asked for it, because the engine removes it then.

A process for the next call is always ready, with its walls up: it is made after a result is sent, so nobody waits for
it, and only after nothing is left of the call before, so there are never two.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import time
from _socket import AF_UNIX, SO_PASSCRED, SOCK_SEQPACKET, SOL_SOCKET, socketpair
from contextlib import suppress
from functools import partial

if __name__ == "__main__":  # Python was started isolated and does not know this folder
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from sandbox import confinement, files, protocol, run_monitor
from sandbox import relay as relays
from sandbox import zygote as zygotes
from sandbox.file_exchange import FileExchange
from sandbox.hub_connection import HubConnection
from sandbox.ipc import clean_message, fork_process, receive_message, send_message, send_work
from sandbox.isolation import REUSED
from sandbox.meter import ProcessorMeter
from sandbox.package import DEPENDENCIES
from sandbox.processes import BoxProcesses
from sandbox.scratch import Scratch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Any, NoReturn

_PREPARE_S = 15.0
_RELAY_S = 1.0


class Signals:
    """News by signal: a process ended, or whoever owns the engine wants the call to end."""

    def __init__(self) -> None:
        self.fd, inlet = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.cancelled = False
        signal.set_wakeup_fd(inlet, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.end_when_asked()

    def end_when_asked(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing runs

    def cancel_when_asked(self) -> None:
        self.cancelled = False
        signal.signal(signal.SIGTERM, self._cancel)

    def _cancel(self, *_: object) -> None:
        self.cancelled = True

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.fd, 512)


class BoxUnusable(Exception):
    """This box can do no more calls."""


class BoxTimedOut(BoxUnusable):
    """It took longer than it may."""


class Supervisor:
    """One box, from its first frame to its last."""

    def __init__(
        self,
        hub: HubConnection,
        channel: protocol.FrameChannel,
        processes: BoxProcesses,
        zygote: socket,
        relay: socket | None,
    ) -> None:
        self._hub, self._channel, self._processes, self._zygote, self._relay = hub, channel, processes, zygote, relay
        self._signals = Signals()
        self._scratch = Scratch()
        self._meter = ProcessorMeter()
        self._head: dict[str, Any] = {}
        self._imports_of_others = False
        self._limits: dict[str, int] = {}
        self._child: socket | None = None
        self._pipes: list[int] = []  # the reading ends of the next call's report, stdout, stderr and progress
        self._files: FileExchange | None = None

    # -- once

    def load(self, body: bytes) -> None:
        """Have the zygote take the tool's package, and a process made ready; says whether that went well."""
        begun = time.monotonic()
        self._head = protocol.unpack_head(body)
        self._limits = self._head["limits"]
        self._scratch.expect(self._limits["tmp_bytes"], with_files=bool(self._head["fs"]))
        self._imports_of_others = _holds_any(DEPENDENCIES)
        preloaded: list[str] = []
        why, late, loaded = "", False, False
        try:
            preloaded = self._have_loaded(body)
            loaded = True
            self._prepare()
        except BoxUnusable as broken:
            why, late = str(broken), isinstance(broken, BoxTimedOut)
        said = {"ok": not why, "why": why, "load_ms": _ms_since(begun), "preloaded": preloaded}
        # Late is what the zygote was to load. Who is slow to make a process has said nothing, so it has not said no.
        said |= {"late": late and not loaded, "said_no": bool(why) and not late}
        self._channel.send(protocol.LOADED, protocol.pack(said))
        if why:
            os._exit(0)

    def _have_loaded(self, body: bytes) -> list[str]:
        """The zygote takes the package. Returns the names of what it has imported beforehand."""
        self._zygote.send(b"load")
        send_work(self._zygote, body)
        said, _, _ = self._answer_of(self._zygote, self._head["load_ms"] / 1000)
        verdict, *lines = said.decode("utf-8", "replace").split("\n")
        if verdict != "ok":
            raise BoxUnusable(clean_message(" ".join(lines).encode()))
        if not self._processes.come_to_rest():
            raise BoxUnusable("A module that was imported beforehand has left a process behind.")
        self._scratch.watch_package()
        return lines

    def _prepare(self) -> None:
        """Have a process made that has its walls up and waits for a call."""
        child, other = socketpair(AF_UNIX, SOCK_SEQPACKET)
        child.setsockopt(SOL_SOCKET, SO_PASSCRED, 1)  # the kernel says who speaks
        self._give_pipes(child)
        send_message(self._zygote, b"prepare", (other.fileno(),))
        other.close()
        said, pid, folders = self._answer_of(child, _PREPARE_S)
        if said != protocol.WALLS_ARE_UP or pid in (0, 1, self._processes.zygote):
            raise BoxUnusable(clean_message(said))
        if self._answer_of(self._zygote, _PREPARE_S)[0] != b"prepared":
            raise BoxUnusable("The zygote does not do what it is told.")
        self._processes.expect(pid)
        self._child = child
        if self._head["fs"]:
            if len(folders) != 1:
                raise BoxUnusable("The folder for files is missing.")
            self._files = FileExchange(folders[0], self._head["fs"], self._limits)

    def _give_pipes(self, child: socket) -> None:
        """Before there is a process: it finds them where it looks first, and need not be woken for them."""
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(4)]
        self._pipes = [read for read, _ in pipes]
        send_message(child, protocol.PIPES, [write for _, write in pipes])
        for _, write in pipes:
            os.close(write)

    def _answer_of(self, end: socket, patience: float) -> tuple[bytes, int, list[int]]:
        """The next message of another process, its number, and the descriptors that it sent."""
        poll = select.poll()
        poll.register(end, select.POLLIN)
        poll.register(self._hub.fd, 0)
        deadline = time.monotonic() + patience
        while True:
            ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            if not ready:
                raise BoxTimedOut("The box did not get ready in time.")
            if any(fd == self._hub.fd for fd, _ in ready):
                os._exit(0)
            message, pid, descriptors = receive_message(end)
            if message:
                return message, pid, descriptors
            raise BoxUnusable("A process of the box ended before it was ready.")

    # -- for each call

    def call(self, body: bytes) -> None:
        """Have the waiting process do one call, and report."""
        begun = time.monotonic()
        self._signals.cancel_when_asked()
        kills_before = self._processes.out_of_memory_kills()
        called = protocol.unpack_head(body)
        why_not, body = self._lay_out(called, body)
        self._meter.begin(self._processes.tool)
        load_s, import_s = self._head["load_ms"] / 1000, self._head["import_ms"] / 1000
        run = run_monitor.RunMonitor(
            *self._hand_over(body, begin=not why_not),
            limits=self._limits,
            report_extra=protocol.MAX_REPORT_BYTES + 16,
            tell=self._tell if called["stream"] else None,
            may_tell=self._hub.listens,
            on_loaded=self._meter.begin_run,
            is_spent=lambda: self._meter.is_spent(self._head["import_ms"], self._limits["cpu_s"] * 1000),
            more_s=lambda: min(self._meter.waited_s(), load_s - import_s),
        )
        del body
        others = {
            self._signals.fd: self._on_signal,
            self._hub.fd: self._on_hub,
            self._zygote.fileno(): lambda: run_monitor.ZYGOTE_GONE,
        }
        ended = run.wait(others, load_until=begun + import_s, run_s=self._limits["wall_ms"] / 1000)
        at_rest = ended == run_monitor.EXITED and self._processes.at_rest()
        all_dead = at_rest or self._processes.kill_all()
        finished = time.monotonic()
        how, cpu_ms, max_rss_bytes = self._processes.end_of_tool()
        if self._meter.exact:
            cpu_ms = self._meter.taken_ms()
        ended = run.finish(ended)
        if not why_not and (why_not := self._why_not()) and ended == run_monitor.EXITED:
            ended = run_monitor.UNKNOWN if run.was_heard or self._imports_of_others else ended
        found = self._collect(all_dead) if ended == run_monitor.EXITED else files.CollectedFiles()
        clean = at_rest and ended == run_monitor.EXITED and not why_not and self._tidy()
        out_of_memory = self._processes.out_of_memory_kills() > kills_before
        # The first process of a namespace can be killed from outside only, and here nobody else does it.
        out_of_time = (
            self._head["level"] == "fresh" and ended == run_monitor.EXITED and how == {"signal": signal.SIGKILL}
        )
        head: dict[str, Any] = {
            "ended": ended,
            "started": not why_not,
            "why_not": why_not,
            "exit": how,
            "out_of_memory": out_of_memory,
            "out_of_processor_time": out_of_time and not out_of_memory and not why_not,
            "clean": clean,
            "import_ms": self._head["import_ms"],
            "load_ms": ((run.loaded_at or finished) - begun) * 1000,
            "run_ms": (finished - begun) * 1000,
            "cpu_ms": cpu_ms,
            "cpu_exact": self._meter.exact,  # else of the tool's first process, and of those that it has waited for
            "max_rss_bytes": max_rss_bytes,  # of the tool's first process, and of those that it has waited for
            "files": [{"path": path, "size": len(content)} for path, content in found.files],
            "gone": found.gone,
            "skipped": [{"path": path, "why": why} for path, why in found.skipped],
        }
        contents = (content for _, content in found.files)
        self._channel.send(protocol.RESULT, protocol.pack(head, run.report, *run.logs, *contents))
        self._signals.end_when_asked()
        if not clean or self._head["level"] not in REUSED:
            os._exit(0)
        self._prepare()

    def _lay_out(self, called: dict[str, Any], body: bytes) -> tuple[str, bytes]:
        """The call's files, if it brings any. Returns why that was not possible, and the body without them."""
        if not called["inputs"]:
            return "", body
        if self._files is None:
            return "The call brings files, and its profile has no place for them.", b""
        head, (arguments, settings, *contents) = protocol.unpack(body)
        count = len(called["inputs"])
        try:
            self._files.lay_out(called["inputs"], contents[:count])
        except (OSError, ValueError) as error:
            return f"A file of the call could not be laid out: {error}", b""
        return "", protocol.pack(head, arguments, settings, *contents[count:])

    def _collect(self, all_dead: bool) -> files.CollectedFiles:
        if self._files is None:
            return files.CollectedFiles()
        if all_dead:
            return self._files.collect()
        found = files.CollectedFiles()
        for rule in self._head["fs"]:
            found.skip(rule["path"], "A process of the call did not end, so nothing was taken.")
        return found

    def _why_not(self) -> str:
        """What the tool's process said after "up": it says that the call's own walls could not be raised, or nothing.

        It is ours until it loads the tool, but what others wrote and was imported beforehand is in it from the start.
        """
        assert self._child is not None
        self._child.setblocking(False)
        try:
            return clean_message(receive_message(self._child)[0])
        except BlockingIOError:
            return ""
        finally:
            self._child.close()

    def _tidy(self) -> bool:
        """After a call, when nobody of it is alive: is nothing left of it?"""
        if self._files is not None:
            self._files.close()
            self._files = None
        if self._head["level"] not in REUSED:
            return True
        return self._scratch.clear() and self._relay_is_clear()

    def _relay_is_clear(self) -> bool:
        """Nothing of the call is on its way any more."""
        if self._relay is None:
            return True
        try:
            self._relay.send(b"x")
            return bool(self._relay.recv(1))
        except OSError:
            return False

    def _hand_over(self, body: bytes, *, begin: bool) -> list[int]:
        """Give the work to the waiting process; returns the reading ends of report, stdout, stderr and progress."""
        assert self._child is not None
        if begin:
            with suppress(ConnectionError):  # it has ended: then its end is the news
                send_work(self._child, body)
        else:
            os.kill(self._processes.tool, signal.SIGKILL)
        return self._pipes

    def _tell(self, stream: str, data: bytes) -> None:
        self._channel.send(protocol.EVENT, protocol.pack({"stream": stream}, data))

    def _on_signal(self) -> str:
        self._signals.clear()
        self._processes.reap()
        if self._processes.tool_has_ended:
            return run_monitor.EXITED
        return run_monitor.CANCELLED if self._signals.cancelled else ""

    def _on_hub(self) -> str:
        self._channel.receive(protocol.CANCEL)
        return run_monitor.CANCELLED

    # -- in between

    def wait_for_frame(self) -> None:
        """Until the hub says something. Ends the box when the zygote or the waiting process has ended."""
        poll = select.poll()
        for fd in (self._hub.fd, self._signals.fd):
            poll.register(fd, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._signals.fd in ready:
                self._signals.clear()
                self._processes.reap()
                if self._processes.tool_has_ended or self._processes.zygote_gone:
                    raise BoxUnusable("A process of the box has ended while it waited.")
            if self._hub.fd in ready:
                return


def _holds_any(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:
        return True  # who knows


def _ms_since(moment: float) -> float:
    return (time.monotonic() - moment) * 1000


def main() -> NoReturn:
    if os.getpid() != 1:  # killing "everybody" is this program's normal work
        raise SystemExit("The supervisor is the first process of a sandbox container and starts nowhere else.")
    started = time.monotonic()
    os.umask(0o077)
    confinement.scrub_environment()
    confinement.set_dumpable(False)
    gc.freeze()  # what is in memory now is shared by all processes of the box, as long as no collector touches it
    processes = BoxProcesses()
    relay = None
    if os.path.exists(relays.SOCKET):
        processes.relay, relay = fork_process(relays.run_relay)
        relay.settimeout(_RELAY_S)
        relay.recv(1)
    processes.zygote, zygote = fork_process(partial(zygotes.run_zygote, others=[1, *filter(None, [processes.relay])]))
    hub = HubConnection()
    channel = protocol.FrameChannel(hub.read, hub.write)
    box = Supervisor(hub, channel, processes, zygote, relay)
    channel.accept()
    ready = {
        "landlock": confinement.landlock_version(),
        "python": sys.version.split()[0],
        "boot_ms": _ms_since(started),
    }
    channel.send(protocol.READY, protocol.pack(ready))
    box.load(channel.receive(protocol.LOAD))
    while True:
        box.wait_for_frame()
        kind, body = channel.receive_one_of(protocol.CALL, protocol.CANCEL)
        if kind == protocol.CALL:  # to cancel what has just ended is no mistake
            box.call(body)


if __name__ == "__main__":
    try:
        main()
    except protocol.ProtocolError as error:
        raise SystemExit(
            f"{error} Are the image and the hub of the same sources? This is {protocol.VERSION}."
        ) from None
    except BoxUnusable as error:
        raise SystemExit(str(error)) from None
