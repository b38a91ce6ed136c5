"""The relay: does the relay pass on bytes, all of them, and nothing once a call is over?"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sandbox import relay
from tests.egress.world import WAIT_S, box_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB = 1024
MOST_OWN_KIB = 4 * KIB


class Gate:
    """Stands where the gate would, and does what a test says."""

    def __init__(self, path: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.listener.settimeout(WAIT_S)

    def accept(self) -> socket.socket:
        end, _ = self.listener.accept()
        end.settimeout(WAIT_S)
        return end

    def waiting(self) -> bool:
        return bool(select.select([self.listener], [], [], 0)[0])


class Running:
    """A relay in a thread of its own, stopped and cleared as the supervisor does it."""

    def __init__(self, path: Path) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.here, self.there = socket.socketpair()
        self.here.settimeout(WAIT_S)
        self.relay = relay.Relay(self.listener, str(path))
        self.relay.watch(self.there.fileno())
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while True:
            if self.relay.turn():
                if not self.there.recv(1):
                    return
                self.relay.clear()
                self.there.send(b"x")

    def connect(self) -> socket.socket:
        end = socket.create_connection(self.listener.getsockname())
        end.settimeout(WAIT_S)
        return end

    def clear(self) -> None:
        self.here.send(b"x")
        assert self.here.recv(1) == b"x"


@pytest.fixture
def path() -> Iterator[Path]:
    with box_folder() as folder:
        yield folder / "egress"


@pytest.fixture
def gate(path: Path) -> Iterator[Gate]:
    gate = Gate(path)
    yield gate
    gate.listener.close()


@pytest.fixture
def running(path: Path, gate: Gate) -> Iterator[Running]:
    running = Running(path)
    yield running
    running.clear()
    running.here.shutdown(socket.SHUT_WR)
    running.thread.join()
    for each in (running.here, running.there, running.listener):
        each.close()


def everything(end: socket.socket) -> bytes:
    data = b""
    while piece := end.recv(65536):
        data += piece
    return data


def say_all(end: socket.socket, data: bytes) -> None:
    end.sendall(data)
    end.shutdown(socket.SHUT_WR)


@contextmanager
def pair(running: Running, gate: Gate) -> Iterator[tuple[socket.socket, socket.socket]]:
    tool = running.connect()
    at_gate = gate.accept()
    with tool, at_gate:
        yield tool, at_gate


def test_large_amounts_pass_both_ways_at_once(running: Running, gate: Gate) -> None:
    out, back = os.urandom(3_000_000), os.urandom(3_000_000)
    with pair(running, gate) as (tool, at_gate):
        heard: dict[str, bytes] = {}
        work = [
            threading.Thread(target=say_all, args=(tool, out)),
            threading.Thread(target=say_all, args=(at_gate, back)),
            threading.Thread(target=lambda: heard.update(gate=everything(at_gate))),
            threading.Thread(target=lambda: heard.update(tool=everything(tool))),
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()

    assert heard == {"gate": out, "tool": back}


def test_each_side_may_end_before_the_other(running: Running, gate: Gate) -> None:
    with pair(running, gate) as (tool, at_gate):
        tool.sendall(b"question")
        tool.shutdown(socket.SHUT_WR)
        assert everything(at_gate) == b"question"
        at_gate.sendall(b"answer")
        at_gate.close()

        assert everything(tool) == b"answer"


def test_a_refusal_is_read_though_the_tool_is_still_speaking(running: Running, gate: Gate) -> None:
    with pair(running, gate) as (tool, at_gate):
        tool.sendall(b"POST ...")
        assert at_gate.recv(100) == b"POST ..."
        at_gate.sendall(b"HTTP/1.1 403 no")
        at_gate.close()
        tool.sendall(b"x" * 1_000_000)

        assert everything(tool) == b"HTTP/1.1 403 no"


def test_a_tool_that_is_gone_is_gone_for_the_gate(running: Running, gate: Gate) -> None:
    with pair(running, gate) as (tool, at_gate):
        tool.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # hang up at once, with a reset
        tool.close()

        assert everything(at_gate) == b""


def test_without_a_gate_connections_are_closed(path: Path, running: Running, gate: Gate) -> None:
    path.unlink()
    with running.connect() as tool:
        assert everything(tool) == b""


def test_when_a_call_is_over_nothing_of_it_is_left(running: Running, gate: Gate) -> None:
    with pair(running, gate) as (tool, at_gate):
        running.clear()

        assert everything(at_gate) == b""
        assert everything(tool) == b""
    assert not gate.waiting()
    with pair(running, gate) as (tool, at_gate):
        tool.sendall(b"the next call")
        assert at_gate.recv(100) == b"the next call"


def test_more_connections_than_the_relay_holds_are_closed_and_the_others_live(running: Running, gate: Gate) -> None:
    first = running.connect()
    at_gate = gate.accept()
    rest = []
    for _ in range(70):
        end = running.connect()
        end.setblocking(True)
        end.settimeout(WAIT_S)
        rest.append(end)
    assert everything(rest[-1]) == b""

    first.sendall(b"still here")

    assert at_gate.recv(100) == b"still here"
    for each in (first, at_gate, *rest):
        each.close()


def test_whoever_takes_nothing_and_whoever_has_hung_up_keep_nobody_awake(path: Path, gate: Gate) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    alone = relay.Relay(listener, str(path))
    tool = socket.create_connection(listener.getsockname())
    alone.turn()
    at_gate = gate.accept()
    at_gate.setblocking(False)
    tool.shutdown(socket.SHUT_WR)

    def comes_to_rest() -> None:
        for _ in range(100):
            if not alone._poll.poll(0):
                return
            alone.turn()
        raise AssertionError("The relay goes round and round.")

    comes_to_rest()  # the tool has said all that it wants to say
    for _ in range(1000):
        try:
            at_gate.send(b"x" * 65536)
        except BlockingIOError:
            break
        comes_to_rest()  # the tool takes nothing
    at_gate.close()
    comes_to_rest()  # and the gate has hung up
    alone.clear()
    for end in (tool, at_gate, listener):
        end.close()


def _own_memory_kib(pid: int) -> int:
    """What is this process's alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


SUPERVISOR = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
import select, signal, struct, time
from sandbox import confinement, protocol, run_monitor
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
pid = os.fork()
if pid == 0:
    here.close()
    from sandbox import relay
    relay.SOCKET, relay.PORT = sys.argv[2], int(sys.argv[3])
    relay.run_relay(there)
there.close()
assert here.recv(1) == b"x"
print(pid, flush=True)
while sys.stdin.readline():
    here.send(b"x")
    print(here.recv(1).decode(), flush=True)
"""


def test_it_is_small_answers_its_supervisor_and_ends_with_it(path: Path, gate: Gate) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    root = Path(relay.__file__).parents[1]
    command = [sys.executable, "-I", "-S", "-c", SUPERVISOR, str(root), str(path), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        ended = os.pidfd_open(pid)
        tool = socket.create_connection(("127.0.0.1", port))
        at_gate = gate.accept()
        tool.sendall(b"hello")
        assert at_gate.recv(100) == b"hello"

        assert _own_memory_kib(pid) < MOST_OWN_KIB
        supervisor.stdin.write("over\n")
        supervisor.stdin.flush()
        assert supervisor.stdout.readline() == "x\n"
        assert at_gate.recv(1) == b""
        supervisor.send_signal(signal.SIGKILL)
        assert select.select([ended], [], [], WAIT_S)[0] == [ended]

    for end in (tool, at_gate):
        end.close()
    os.close(ended)
