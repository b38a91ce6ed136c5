"""Host connections: which are kept, whose answer is taken for whose, and which daemon is at the other end?"""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Profile, RunOutcome, RunStatus
from invocations.sandbox.boxd import session
from invocations.sandbox.boxd.session import WorkerSession
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.remote.connection import HostAddress, HostConnection, HostUnavailable
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.stats import SandboxSnapshot
from invocations.sandbox.wire import contract, messages
from invocations.sandbox.wire.calls import encode_call, encode_outcome
from invocations.sandbox.wire.messages import (
    ANSWER,
    MAX_REQUEST_BYTES,
    MIB,
    REQUEST,
    MessageChannel,
    RequestMemory,
    WireError,
)
from invocations.sandbox.wire.streams import PeerLost, PeerStream
from tests.support.sandbox_hosts import UNIX, open_host
from tests.support.sandboxes import call_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import SandboxCall


class LateHost:
    """Answers the first ``have`` once the next request has come on that connection, and runs every call."""

    def __init__(self, place: Path) -> None:
        self.url, self.connections = f"unix://{place}/late", 0
        self._late = True
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{place}/late")
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._threads.append(threading.Thread(target=self._serve, args=[PeerStream(connection)]))
            self._threads[-1].start()

    def _serve(self, stream: PeerStream) -> None:
        channel = MessageChannel(stream, most=MAX_REQUEST_BYTES)
        answers: dict[str, dict[str, Any]] = {contract.HELLO: {"host": "late"}, contract.HAVE: {"known": True}}
        waiting: list[str] = []
        try:
            while True:
                op = channel.receive(60).head["op"]
                waiting.append(op)
                if op == contract.HAVE and self._late:
                    self._late = False
                    continue
                for each in waiting:
                    if each == contract.RUN:
                        head, parts = encode_outcome(RunOutcome(RunStatus.OK, value=1))
                        channel.send(ANSWER, head, *parts)
                    else:
                        channel.send(ANSWER, answers.get(each, {}) | {"op": each})
                waiting.clear()
        except (PeerLost, WireError):
            stream.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)


@pytest.fixture
def late(tmp_path: Path) -> Iterator[LateHost]:
    host = LateHost(tmp_path)
    yield host
    host.close()


@pytest.mark.req("OPS-1")
def test_a_late_answer_is_taken_for_no_other_requests(late: LateHost, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = RemoteSandbox([RemoteHost(HostAddress(late.url))], load_s=60)
    with monkeypatch.context() as hasty:
        assert HostConnection.ask.__kwdefaults__ is not None
        hasty.setitem(HostConnection.ask.__kwdefaults__, "within_s", 0.2)
        unanswered = sandbox.run(Profile(), call_of(b"package"))

    outcome = sandbox.run(Profile(), call_of(b"package"))
    sandbox.close()

    assert unanswered.status is RunStatus.START_FAILED, unanswered
    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome
    assert late.connections == 2


@pytest.mark.req("OPS-1")
def test_an_answer_to_another_request_is_an_error_and_ends_the_connection(late: LateHost) -> None:
    host = RemoteHost(HostAddress(late.url))
    have = {"op": contract.HAVE, "kind": contract.PACKAGE, "digest": contract.compute_digest(b""), "size": 0}
    with pytest.raises(WireError, match="'have' came in place of one to 'health'"), host.connection() as found:
        with pytest.raises(PeerLost):
            found.ask(have, within_s=0.2)
        found.ask({"op": contract.HEALTH})

    host.ask(contract.HEALTH)
    host.close()

    assert late.connections == 2


@pytest.mark.req("OPS-1")
def test_a_connection_on_which_a_host_refused_is_kept(late: LateHost) -> None:
    host = RemoteHost(HostAddress(late.url))
    refused = pytest.raises(HostUnavailable)
    with refused, host.connection():
        raise HostUnavailable("Calls wait here.", code=contract.BUSY)

    host.ask(contract.HEALTH)
    host.close()

    assert late.connections == 1


class ShownSandbox(FakeSandbox):
    """A sandbox that shows what it has."""

    def snapshot(self) -> SandboxSnapshot:
        return SandboxSnapshot.from_json({})


class HeldSandbox(FakeSandbox):
    """Its calls end when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let_go = threading.Semaphore(0), threading.Event()

    def run(self, profile: Profile, call: SandboxCall, on_event: Any = None) -> RunOutcome:
        self.begun.release()
        assert self.let_go.wait(60)
        return RunOutcome(RunStatus.OK, value=len(call.arguments))


class WatchedMemory(RequestMemory):
    """``short`` is released each time that somebody has waited in vain."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.short = threading.Semaphore(0)

    def exchange(self, held: int, wanted: int, **more: Any) -> bool:
        fits = super().exchange(held, wanted, **more)
        if not fits:
            self.short.release()
        return fits


@pytest.mark.req("OPS-1")
def test_a_call_without_another_host_and_a_package_wait_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    held, memory, refusals = HeldSandbox(), WatchedMemory(3 * MIB), []
    monkeypatch.setattr(WorkerSession, "_refuse", lambda _, refusal: refusals.append(refusal))
    monkeypatch.setattr(messages, "ROOM_SLICE_S", 0.05)
    monkeypatch.setattr(session, "ROOM_WITHIN_S", 60.0)
    large = call_of(b"package", text="x" * 2 * MIB)
    calls = [large, replace(large, name="second"), replace(call_of(b"p" * 2 * MIB), name="third")]
    outcomes: list[RunOutcome] = []
    with open_host(UNIX, held) as host:
        host.boxd.host.memory = memory
        workers = [RemoteSandbox([host.connect()], load_s=60) for _ in calls]
        threads = [
            threading.Thread(target=lambda worker, call: outcomes.append(worker.run(Profile(), call)), args=each)
            for each in zip(workers, calls, strict=True)
        ]
        threads[0].start()
        assert held.begun.acquire(timeout=60)
        for thread in threads[1:]:
            thread.start()
            for _ in range(3):
                assert memory.short.acquire(timeout=60)
        held.let_go.set()
        for thread in threads:
            thread.join(60)
        for worker in workers:
            worker.close()

    assert refusals == []
    assert [outcome.status for outcome in outcomes] == [RunStatus.OK] * 3, outcomes


@pytest.mark.req("OPS-1")
def test_a_request_during_a_call_takes_nothing_of_its_memory() -> None:
    held, memory = HeldSandbox(), WatchedMemory(3 * MIB)
    with open_host(UNIX, held) as host:
        host.boxd.host.memory = memory
        call = call_of(b"package", text="x" * 2 * MIB)
        with host.connect().connection() as found:
            digest = contract.compute_digest(call.package)
            ticket = found.ask({"op": contract.HAVE, "kind": contract.PACKAGE, "digest": digest, "size": 7}).head[
                "ticket"
            ]
            found.channel.send(REQUEST, {"op": contract.PUT, "ticket": ticket})
            found.channel.send_chunks(call.package)
            found.take_answer(contract.PUT, 60)
            head, parts = encode_call(Profile(), call, package=digest, folder="", stream=False, patient=True)
            found.channel.send(REQUEST, head, *parts)
            assert held.begun.acquire(timeout=60)
            found.channel.send(REQUEST, {"op": contract.HEALTH}, b"x" * MIB)
            with pytest.raises(HostUnavailable, match="A request came while a call is on"):
                found.take_answer(contract.HEALTH, 60)
            assert not memory.exchange(0, 2 * MIB)  # the call is on, and has its own
        held.let_go.set()

    assert memory.exchange(0, 3 * MIB)  # and it is given back once
    assert not memory.exchange(0, 1)


@pytest.mark.req("OPS-1")
def test_what_calls_bring_with_them_fills_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ROOM_WITHIN_S", 0.1)
    held = HeldSandbox()
    with open_host(UNIX, held) as host:
        host.boxd.host.memory = RequestMemory(3 * MIB)
        worker = RemoteSandbox([host.connect()], load_s=60)
        large = call_of(b"package", text="x" * 2 * MIB)
        outcomes: list[RunOutcome] = []
        first = threading.Thread(target=lambda: outcomes.append(worker.run(Profile(), large)))
        first.start()
        assert held.begun.acquire(timeout=60)

        refused = worker.run(Profile(), replace(large, name="second"))
        fourth = call_of(b"p" * 2 * MIB)
        unsent = worker.run(Profile(), fourth)
        held.let_go.set()
        first.join(60)
        again = [worker.run(Profile(), replace(each, name=f"again-{each.name}")) for each in (large, large, fourth)]
        worker.close()

    assert (outcomes[0].status, outcomes[0].value) == (RunStatus.OK, len(large.arguments))
    for outcome in (refused, unsent):
        assert outcome.status is RunStatus.START_FAILED
        assert "fills the memory of this host" in outcome.error_message
    assert [outcome.status for outcome in again] == [RunStatus.OK] * 3  # it was given back, and the connections go on


@pytest.mark.req("OPS-1")
def test_a_connection_that_ends_gives_back_what_it_held() -> None:
    memory = RequestMemory(3 * MIB)
    with open_host(UNIX, FakeSandbox()) as host:
        host.boxd.host.memory = memory
        with host.connect().connection() as found:
            found.channel.send(REQUEST, {"op": contract.HEALTH}, b"x" * 2 * MIB)
            with pytest.raises(HostUnavailable, match="has no parts"):
                found.take_answer(contract.HEALTH, 60)

    assert memory.exchange(0, 3 * MIB)


@pytest.mark.req("OPS-1")
def test_hosts_at_the_same_address_of_two_machines_are_two(tmp_path: Path) -> None:
    with open_host(UNIX, ShownSandbox()) as one, open_host(UNIX, ShownSandbox()) as other:
        found = []
        for host in (one, other):  # what is at this path, on the machine of the one worker and of the other
            (tmp_path / "boxd.sock").unlink(missing_ok=True)
            (tmp_path / "boxd.sock").symlink_to(host.place / "boxd.sock")
            worker = RemoteSandbox([RemoteHost(HostAddress(f"unix://{tmp_path}/boxd.sock"))], load_s=60)
            found.append(list(worker.list_snapshots()))
            worker.close()

        both_ways = RemoteSandbox([RemoteHost(HostAddress(f"unix://{tmp_path}/boxd.sock")), other.connect()], load_s=60)
        assert list(both_ways.list_snapshots()) == [other.boxd.host.name]
        both_ways.close()

    assert found == [[one.boxd.host.name], [other.boxd.host.name]]
    assert found[0] != found[1]
    assert found[0][0].startswith(f"{socket.gethostname()}:")
