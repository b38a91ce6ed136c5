"""Sandbox hosts: what do they refuse, and in which words; and what becomes of a call when a host fails?

The host runs tools in the fake sandbox here, so that only what is between worker and host can fail.
"""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from invocations.sandbox.base import BoxKey, Profile, RunEvent, RunOutcome, RunStatus
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.remote.connection import HostAddress, HostConnection, HostUnavailable
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox, rank_hosts
from invocations.sandbox.wire import contract
from invocations.sandbox.wire.contract import compute_digest
from invocations.sandbox.wire.identities import Identity
from invocations.sandbox.wire.messages import (
    ANSWER,
    MAX_HEAD_BYTES,
    MAX_REQUEST_BYTES,
    REQUEST,
    MessageChannel,
    WireError,
)
from invocations.sandbox.wire.streams import PeerLost, PeerStream
from tests.support.sandbox_hosts import HOST, OTHER_WORKER, TLS, UNIX, WORKER, SandboxHost, open_host
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.base import Sandbox, SandboxCall

RETURNS = "def run(): return 1"
WAITS = "import time\nfrom unitools import runtime\ndef run():\n    runtime.progress(0.5, 'here')\n    time.sleep(60)"


@pytest.fixture
def tls_host() -> Iterator[SandboxHost]:
    with open_host(TLS, FakeSandbox()) as host:
        yield host


@pytest.fixture
def unix_host() -> Iterator[SandboxHost]:
    with open_host(UNIX, FakeSandbox()) as host:
        yield host


@pytest.fixture
def sandbox_on() -> Iterator[Callable[..., RemoteSandbox]]:
    made: list[RemoteSandbox] = []

    def make(*hosts: RemoteHost) -> RemoteSandbox:
        made.append(RemoteSandbox(hosts, load_s=60))
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.close()


def hold_call(sandbox: Sandbox, call: SandboxCall) -> tuple[threading.Thread, list[RunOutcome]]:
    """A call that is in its tool."""
    outcomes: list[RunOutcome] = []
    runs = threading.Event()

    def hear(_: RunEvent) -> None:
        runs.set()

    thread = threading.Thread(target=lambda: outcomes.append(sandbox.run(Profile(), call, hear)))
    thread.start()
    assert runs.wait(30)
    return thread, outcomes


# -- who is let in


@pytest.mark.req("OPS-1")
def test_a_worker_with_a_hosts_certificate_is_refused_in_words(tls_host: SandboxHost) -> None:
    files = tls_host.authority.issue_for_host("boxes-2")

    with pytest.raises(HostUnavailable, match="one of a host is no worker's"):
        RemoteHost(HostAddress(tls_host.url), Identity(files, serves=False)).ask(contract.HEALTH)


@pytest.mark.req("OPS-1")
def test_a_worker_that_is_not_on_the_list_is_refused_in_words(tls_host: SandboxHost) -> None:
    with pytest.raises(HostUnavailable, match="that of stranger, which is no worker of this host") as refused:
        tls_host.connect("stranger").ask(contract.HEALTH)

    assert refused.value.code == contract.FORBIDDEN


@pytest.mark.req("OPS-1")
def test_a_certificate_of_another_authority_is_refused_by_both_sides(tls_host: SandboxHost) -> None:
    with open_host(TLS, FakeSandbox()) as other:
        of_other = Identity(other.authority.issue_for_worker(WORKER), serves=False)

        with pytest.raises(HostUnavailable, match="not accepted"):
            RemoteHost(HostAddress(tls_host.url), of_other).ask(contract.HEALTH)

        trusting = replace(of_other.files, authority=tls_host.authority.folder / "ca.pem")
        with pytest.raises(HostUnavailable, match="authority that the other side does not know"):
            RemoteHost(HostAddress(tls_host.url), Identity(trusting, serves=False)).ask(contract.HEALTH)


def test_a_host_with_the_certificate_of_another_is_not_believed(tls_host: SandboxHost) -> None:
    worker = Identity(tls_host.authority.issue_for_worker(WORKER), serves=False)
    by_address = tls_host.url.replace(HOST, "127.0.0.1")

    with pytest.raises(HostUnavailable, match="IP address mismatch"):
        RemoteHost(HostAddress(by_address), worker).ask(contract.HEALTH)


def test_without_a_certificate_nobody_is_asked(tls_host: SandboxHost) -> None:
    with pytest.raises(HostUnavailable, match="TOOLHUB_SANDBOX_TLS"):
        RemoteHost(HostAddress(tls_host.url)).ask(contract.HEALTH)


@pytest.mark.req("OPS-1")
def test_certificates_are_changed_without_a_restart(tls_host: SandboxHost) -> None:
    tls_host.authority.issue_for_worker(WORKER, holds=timedelta(minutes=-1))
    worker = RemoteHost(HostAddress(tls_host.url), Identity(_files(tls_host, f"worker-{WORKER}"), serves=False))

    with pytest.raises(HostUnavailable, match="has run out"):
        worker.ask(contract.HEALTH)
    tls_host.authority.issue_for_worker(WORKER)
    assert worker.ask(contract.HEALTH).head["certificate_days"] == 89

    tls_host.authority.issue_for_host(HOST, holds=timedelta(days=5, hours=1))
    worker.close()
    assert worker.ask(contract.HEALTH).head["certificate_days"] == 5
    worker.close()


def _files(host: SandboxHost, name: str) -> Any:
    folder = host.authority.folder
    return replace(
        host.authority.issue_for_host("unused"), certificate=folder / f"{name}.pem", key=folder / f"{name}.key"
    )


def test_a_worker_of_other_sources_is_refused_with_both_named(unix_host: SandboxHost) -> None:
    ours = contract.compute_sources_digest()
    other = f"sha256:{'0' * 64}"
    connection = HostConnection(HostAddress(unix_host.url).connect(None))

    with pytest.raises(HostUnavailable) as refused:
        connection.ask({"op": contract.HELLO, "contract": contract.CONTRACT_VERSION, "sources": other})

    assert refused.value.code == contract.UNFIT
    assert ours[7:19] in str(refused.value)
    assert other[7:19] in str(refused.value)
    connection.close()


# -- what may be asked


@pytest.fixture
def connection(tls_host: SandboxHost) -> Iterator[HostConnection]:
    with tls_host.connect().connection() as found:
        yield found


@pytest.mark.req("OPS-1")
def test_a_head_that_is_too_large_is_refused_in_words(tls_host: SandboxHost) -> None:
    refused = pytest.raises(HostUnavailable, match="head holds 262144 bytes at most")
    with refused as error, tls_host.connect().connection() as found:
        found.channel._send_frame(REQUEST, b" " * (MAX_HEAD_BYTES + 1), b"")
        found.take_answer(contract.HEALTH, 10)

    assert error.value.code == contract.MALFORMED


@pytest.mark.req("OPS-1")
def test_a_put_that_is_replayed_is_refused_in_words(tls_host: SandboxHost) -> None:
    refused = pytest.raises(HostUnavailable, match="ticket of this put was used already")
    with refused as error, tls_host.connect().connection() as found:
        have = {"op": contract.HAVE, "kind": contract.PACKAGE, "digest": compute_digest(b"data"), "size": 4}
        put = {"op": contract.PUT, "ticket": found.ask(have).head["ticket"]}
        for _ in range(2):
            found.channel.send(REQUEST, put)
            found.channel.send_chunks(b"data")
            found.take_answer(contract.PUT, 10)

    assert error.value.code == contract.REPLAYED


def test_bytes_of_another_digest_are_refused_in_words(tls_host: SandboxHost) -> None:
    with pytest.raises(HostUnavailable, match="not those of sha256"), tls_host.connect().connection() as found:
        have = {"op": contract.HAVE, "kind": contract.PACKAGE, "digest": compute_digest(b"other"), "size": 4}
        found.channel.send(REQUEST, {"op": contract.PUT, "ticket": found.ask(have).head["ticket"]})
        found.channel.send_chunks(b"data")
        found.take_answer(contract.PUT, 10)


def test_a_package_larger_than_any_is_refused_before_it_is_sent(connection: HostConnection) -> None:
    have = {"op": contract.HAVE, "kind": contract.PACKAGE, "digest": compute_digest(b""), "size": 17 * 1024 * 1024}

    with pytest.raises(HostUnavailable, match="16777216 bytes at most"):
        connection.ask(have)


@pytest.mark.req("OPS-1")
def test_the_call_of_another_worker_is_not_ended(
    tls_host: SandboxHost, sandbox_on: Callable[..., RemoteSandbox], tmp_path: Path
) -> None:
    mine = sandbox_on(tls_host.connect())
    call = call_of(package_of(tmp_path, main=WAITS))
    thread, outcomes = hold_call(mine, call)

    with pytest.raises(
        HostUnavailable, match=f"{call.name} is another worker's, and {OTHER_WORKER} may not"
    ) as refused:
        tls_host.connect(OTHER_WORKER).ask(contract.KILL, name=call.name)
    assert outcomes == []
    mine.kill(call.name)
    thread.join(30)

    assert refused.value.code == contract.FORBIDDEN
    assert outcomes[0].status is RunStatus.CANCELLED


@pytest.mark.req("OPS-1")
@given(
    head=st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.lists(st.text())),
    name=st.sampled_from([*contract.OPERATIONS, ""]),
    parts=st.lists(st.binary(max_size=50), max_size=3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_is_answered_or_refused(
    unix_host: SandboxHost, head: dict[str, Any], name: str, parts: list[bytes]
) -> None:
    asked = {key: value for key, value in head.items() if key != "parts"} | ({"op": name} if name else {})
    connection = HostConnection(HostAddress(unix_host.url).connect(None))
    try:
        connection.greet()
        connection.channel.send(REQUEST, asked, *parts)
        answer = connection.channel.receive(10)
    finally:
        connection.close()

    assert answer.head["op"] == contract.REFUSED or (
        answer.head["op"] == name and name in (contract.SNAPSHOT, contract.HEALTH)
    )
    if answer.head["op"] == contract.REFUSED:
        assert answer.head["code"] in contract.CODES
        assert answer.head["message"]


# -- what becomes of calls


@pytest.mark.req("OPS-1")
def test_a_worker_that_goes_takes_its_call_along(unix_host: SandboxHost, tmp_path: Path) -> None:
    worker = unix_host.connect()
    call = call_of(package_of(tmp_path, main=WAITS))
    sandbox = RemoteSandbox([worker], load_s=60)
    found: list[HostConnection] = []
    taken = worker._take
    worker._take = lambda: found.append(taken() or worker._open()) or found[-1]  # type: ignore[method-assign, func-returns-value]
    thread, outcomes = hold_call(sandbox, call)

    found[0].channel.stream.break_off()
    thread.join(30)

    assert outcomes[0].status is RunStatus.LOST
    assert unix_host.boxd.host.calls.drain(30)


@pytest.mark.req("OPS-1")
def test_a_host_that_says_nothing_any_more_is_lost_and_nobody_else_is_asked(
    unix_host: SandboxHost,
    sandbox_on: Callable[..., RemoteSandbox],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mute = MuteHost(tmp_path)
    monkeypatch.setattr("invocations.sandbox.remote.connection.SILENCE_S", 0.2)
    monkeypatch.setattr("invocations.sandbox.wire.messages.PING_EVERY_S", 0.05)
    hosts = [RemoteHost(HostAddress(mute.url)), unix_host.connect()]
    call = replace(call_of(package_of(tmp_path, main=RETURNS)), key=key_for(hosts, hosts[0]))

    outcome = sandbox_on(*hosts).run(Profile(), call)

    assert outcome.status is RunStatus.LOST, outcome
    assert "has said nothing for" in outcome.error_message
    assert not outcome.nothing_ran
    assert mute.runs == 1
    mute.close()


@pytest.mark.req("OPS-1")
def test_a_host_that_cannot_be_asked_is_passed_over(
    unix_host: SandboxHost, sandbox_on: Callable[..., RemoteSandbox], tmp_path: Path
) -> None:
    hosts = [RemoteHost(HostAddress(f"unix://{tmp_path}/nobody")), unix_host.connect()]
    call = replace(call_of(package_of(tmp_path, main=RETURNS)), key=key_for(hosts, hosts[0]))

    outcome = sandbox_on(*hosts).run(Profile(), call)

    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome
    assert hosts[0].rests


@pytest.mark.req("OPS-1")
def test_where_nothing_could_start_the_next_host_is_asked(
    sandbox_on: Callable[..., RemoteSandbox], unix_host: SandboxHost, tmp_path: Path
) -> None:
    with open_host(UNIX, NeverStarts()) as broken:
        hosts = [broken.connect(), unix_host.connect()]
        call = replace(call_of(package_of(tmp_path, main=RETURNS)), key=key_for(hosts, hosts[0]))

        outcome = sandbox_on(*hosts).run(Profile(), call)
        alone = sandbox_on(broken.connect()).run(Profile(), call)

    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome
    assert (alone.status, alone.error_message) == (RunStatus.START_FAILED, "There is no engine.")


def test_without_a_host_that_answers_nothing_ran(sandbox_on: Callable[..., RemoteSandbox], tmp_path: Path) -> None:
    sandbox = sandbox_on(RemoteHost(HostAddress(f"unix://{tmp_path}/nobody")))

    outcome = sandbox.run(Profile(), call_of(package_of(tmp_path, main=RETURNS)))

    assert outcome.status is RunStatus.START_FAILED
    assert outcome.nothing_ran
    assert f"unix://{tmp_path}/nobody cannot be asked" in outcome.error_message


@pytest.mark.req("OPS-1")
def test_a_host_that_drains_ends_what_it_has_and_takes_nothing_more(
    sandbox_on: Callable[..., RemoteSandbox], unix_host: SandboxHost, tmp_path: Path
) -> None:
    with open_host(UNIX, FakeSandbox()) as draining:
        hosts = [draining.connect(), unix_host.connect()]
        sandbox = sandbox_on(*hosts)
        key = key_for(hosts, hosts[0])
        held = replace(call_of(package_of(tmp_path, main=WAITS)), key=key)
        thread, outcomes = hold_call(sandbox, held)

        assert not draining.boxd.host.calls.drain(0)
        outcome = sandbox.run(Profile(), replace(call_of(package_of(tmp_path, main=RETURNS)), key=key))
        assert draining.connect().ask(contract.HEALTH).head["draining"] is True
        assert outcomes == []
        sandbox.kill(held.name)
        thread.join(30)

    assert outcome.value == 1, outcome
    assert outcomes[0].status is RunStatus.CANCELLED


@pytest.mark.req("OPS-1")
def test_a_daemon_that_ends_waits_until_an_outcome_has_left(
    unix_host: SandboxHost,
    sandbox_on: Callable[..., RemoteSandbox],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drained: list[bool] = []
    send = MessageChannel.send

    def drain_before(channel: MessageChannel, kind: int, head: dict[str, Any], *parts: bytes) -> None:
        if head.get("op") == contract.OUTCOME:
            drained.append(unix_host.boxd.host.calls.drain(0))
        send(channel, kind, head, *parts)

    monkeypatch.setattr(MessageChannel, "send", drain_before)
    outcome = sandbox_on(unix_host.connect()).run(Profile(), call_of(package_of(tmp_path, main=RETURNS)))

    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome
    assert drained == [False]
    assert unix_host.boxd.host.calls.drain(30)


def test_a_package_that_a_host_has_dropped_is_sent_again(
    unix_host: SandboxHost, sandbox_on: Callable[..., RemoteSandbox], tmp_path: Path
) -> None:
    sandbox = sandbox_on(unix_host.connect())
    package = package_of(tmp_path, main=RETURNS)
    assert sandbox.run(Profile(), call_of(package)).value == 1

    unix_host.boxd.host.packages._packages.clear()

    assert sandbox.run(Profile(), call_of(package)).value == 1


@pytest.mark.req("OPS-1")
def test_a_call_waits_at_a_full_host_when_the_other_is_dead(
    sandbox_on: Callable[..., RemoteSandbox], tmp_path: Path
) -> None:
    with open_host(UNIX, FullSandbox()) as full:
        hosts = [full.connect(), RemoteHost(HostAddress(f"unix://{tmp_path}/nobody"))]
        call = replace(call_of(package_of(tmp_path, main=RETURNS)), key=key_for(hosts, hosts[0]))

        outcome = sandbox_on(*hosts).run(Profile(), call)

    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome
    assert hosts[1].rests  # it was asked


@pytest.mark.req("OPS-1")
def test_a_package_that_all_hosts_have_dropped_is_sent_again(
    sandbox_on: Callable[..., RemoteSandbox], unix_host: SandboxHost, tmp_path: Path
) -> None:
    package = package_of(tmp_path, main=RETURNS)
    with open_host(UNIX, FakeSandbox()) as other:
        hosts = [unix_host.connect(), other.connect()]
        sandbox = sandbox_on(*hosts)
        for first in hosts:
            assert sandbox.run(Profile(), replace(call_of(package), key=key_for(hosts, first))).value == 1
        for each in (unix_host, other):
            each.boxd.host.packages._packages.clear()

        outcome = sandbox.run(Profile(), replace(call_of(package), key=key_for(hosts, hosts[0])))

    assert (outcome.status, outcome.value) == (RunStatus.OK, 1), outcome


def test_what_hosts_look_like_is_told_for_each_and_together(
    unix_host: SandboxHost, sandbox_on: Callable[..., RemoteSandbox]
) -> None:
    sandbox = sandbox_on(unix_host.connect())

    assert sandbox.check() == f"{unix_host.url}: {FakeSandbox().check()}"
    assert list(sandbox.list_check_lines(every=False)) == []
    assert sandbox.snapshot() is None  # the fake one shows none


def key_for(hosts: list[RemoteHost], first: RemoteHost) -> BoxKey:
    """Whose first choice is this host."""
    call = call_of(b"")
    keys = (BoxKey("acme", f"sha256:{number}") for number in range(1000))
    return next(key for key in keys if rank_hosts(hosts, replace(call, key=key))[0] is first)


class NeverStarts(FakeSandbox):
    """A sandbox whose engine is down."""

    def run(self, profile: Profile, call: SandboxCall, on_event: Any = None) -> RunOutcome:
        return RunOutcome(RunStatus.START_FAILED, error_message="There is no engine.")


class FullSandbox(FakeSandbox):
    """A sandbox where each call would wait for another."""

    def is_full(self) -> bool:
        return True


class MuteHost:
    """Takes what is put and what is run, and then says nothing: as a machine whose cable was pulled."""

    def __init__(self, place: Path) -> None:
        self.url, self.runs = f"unix://{place}/mute", 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{place}/mute")
        self._listener.listen()

        def serve() -> None:
            stream = PeerStream(self._listener.accept()[0])
            channel = MessageChannel(stream, most=MAX_REQUEST_BYTES)
            answers: dict[str, dict[str, Any]] = {contract.HELLO: {"host": "mute"}, contract.HAVE: {"known": True}}
            try:
                while True:
                    head = channel.receive(60).head
                    if head["op"] == contract.RUN:
                        self.runs += 1
                    else:
                        channel.send(ANSWER, answers[head["op"]] | {"op": head["op"]})
            except (PeerLost, WireError):
                stream.close()

        self._thread = threading.Thread(target=serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(30)
