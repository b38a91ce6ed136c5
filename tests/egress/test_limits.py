"""Limits of the gate: how much may a call ask of the gate, how long, and what is left when it is over?"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import EgressGate
from invocations.sandbox.egress import gate as gates
from tests.egress.world import (
    HOST,
    PUBLIC,
    WAIT_S,
    Client,
    asked,
    box_folder,
    connect,
    get,
    opened,
    origin,
    plain,
    rules,
    tls,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.egress import EgressDoor
    from tests.egress.world import Authority, Names, Origin

pytestmark = pytest.mark.attack


@pytest.mark.req("TOOLS-16")
def test_of_sixty_connections_sixteen_are_served(narrow: Callable[..., EgressDoor], secure: Origin) -> None:
    door = narrow(place_s=0.05)
    door.begin(rules(net=[tls(HOST, secure.port)]))
    clients = [Client(door).say(connect(HOST, secure.port)) for _ in range(60)]

    lines = [client.line() for client in clients]

    assert sum(" 200 " in line for line in lines) == 16
    assert sum(" 429 " in line for line in lines) == 44
    for client in clients:
        client.socket.close()
    assert len(door.end()) == 60


@pytest.mark.req("TOOLS-16")
def test_a_connection_that_has_ended_makes_room_for_another(
    narrow: Callable[..., EgressDoor], secure: Origin, trust: ssl.SSLContext
) -> None:
    door = narrow(connections=1)
    door.begin(rules(net=[tls(HOST, secure.port)]))

    assert all(get(door, trust, HOST, secure.port).endswith(b"hello") for _ in range(5))

    assert [record.allowed for record in door.end()] == [True] * 5


@pytest.mark.req("TOOLS-16")
def test_who_asks_without_end_is_not_heard_any_more(narrow: Callable[..., EgressDoor]) -> None:
    door = narrow(attempts=20)
    door.begin(rules())
    lines = [asked(door, connect("x.example.org", 443)) for _ in range(21)]
    with Client(door) as client:
        client.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)

        records = door.end()

        assert client.rest() == b""  # who still waited is turned away with the end
    assert "too_many_attempts" not in lines[19]
    assert " 429 " in lines[20]
    assert len(records) == 21
    door.begin(rules())
    assert " 403 " in asked(door, connect("x.example.org", 443))


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("said", [b"", b"CONN", b"CONNECT api.example.org:443 HTTP/1.1\r\nX: y\r\n"])
def test_a_slow_head_is_not_waited_for(said: bytes, narrow: Callable[..., EgressDoor]) -> None:
    door = narrow(head_s=0.1)
    door.begin(rules(net=[tls(HOST, 443)]))

    assert asked(door, said).startswith("HTTP/1.1 408")

    assert [(record.allowed, record.why) for record in door.end()] == [(False, "too_slow")]


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01"])
def test_a_slow_hello_is_not_waited_for(said: bytes, narrow: Callable[..., EgressDoor], secure: Origin) -> None:
    door = narrow(head_s=0.1)
    door.begin(rules(net=[tls(HOST, secure.port)]))
    with Client(door) as client:
        assert " 200 " in client.say(connect(HOST, secure.port)).line()

        assert client.say(said).rest() == b""

    (record,) = door.end()
    assert (record.allowed, record.why, record.bytes_out) == (False, "too_slow", 0)


@pytest.mark.req("TOOLS-16")
def test_what_comes_in_is_counted_over_the_whole_call(narrow: Callable[..., EgressDoor]) -> None:
    door = narrow(bytes=100_000)
    with origin(answer=b"x" * 60_000) as large:
        door.begin(rules(net=[plain(HOST, large.port)]))
        request = f"GET http://{HOST}:{large.port}/ HTTP/1.1\r\n\r\n".encode()
        got = []
        for _ in range(2):
            with Client(door) as client:
                got.append(len(client.say(request).rest()))

    assert got[0] == 60_000
    assert got[1] < 40_000
    first, second = door.end()
    assert (first.why, second.why, second.allowed) == ("", "too_many_bytes", True)
    assert first.bytes_in + first.bytes_out + second.bytes_in + second.bytes_out <= 100_000


@pytest.mark.req("TOOLS-16")
def test_what_goes_out_is_counted_too(narrow: Callable[..., EgressDoor]) -> None:
    door = narrow(bytes=100_000)
    with origin(until=b"never") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        with Client(door) as client:
            client.say(f"POST http://{HOST}:{patient.port}/ HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n".encode())
            client.say(b"x" * 1_000_000)
            client.rest()
        heard = patient.all()[0]

    assert len(heard) <= 100_000
    assert [record.why for record in door.end()] == ["too_many_bytes"]


# -- the end of a call


@pytest.mark.req("TOOLS-16")
def test_nothing_of_a_call_goes_on_after_it(door: EgressDoor) -> None:
    with origin(until=b"never") as patient:
        door.begin(rules(cidr=[{"cidr": "127.0.0.1/32", "ports": [patient.port]}]))
        with Client(door) as client:
            client.say(connect(PUBLIC, patient.port)).line()
            client.say(b"before")

            records = door.end()

            assert client.rest() == b""
        heard = patient.all()

    assert len(heard) == 1
    assert b"before".startswith(heard[0])
    assert [(record.allowed, record.why) for record in records] == [(True, "")]


@pytest.mark.req("TOOLS-16")
def test_outside_of_a_call_nobody_is_heard(door: EgressDoor, secure: Origin) -> None:
    before = Client(door)
    assert before.rest() == b""
    door.begin(rules(net=[tls(HOST, secure.port)]))
    door.end()

    with Client(door) as after:
        after.say(connect(HOST, secure.port))
        assert after.rest() == b""

    before.socket.close()
    assert door.end() == ()


@pytest.mark.req("TOOLS-16")
def test_who_asks_without_end_between_calls_is_not_heard_until_the_next(door: EgressDoor) -> None:
    for _ in range(65):
        with Client(door) as client:
            assert client.rest() == b""
    with Client(door) as unheard:
        unheard.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            unheard.socket.recv(1)

        door.begin(rules())

        assert unheard.rest() == b""
    assert " 403 " in asked(door, connect("x.example.org", 443))


@pytest.mark.req("TOOLS-16")
def test_a_door_is_closed_even_when_the_gate_does_not_answer(gate: EgressGate, monkeypatch: pytest.MonkeyPatch) -> None:
    held, free = threading.Event(), threading.Event()

    async def hold() -> None:
        held.set()
        free.wait(WAIT_S)

    def ask() -> None:
        with suppress(TimeoutError):
            gate.ask(hold())

    with box_folder() as folder:
        door = gate.open(folder)
        holder = threading.Thread(target=ask)
        holder.start()
        assert held.wait(WAIT_S)
        with monkeypatch.context() as patched:
            patched.setattr(gates, "_ANSWER_S", 0.05)
            with pytest.raises(TimeoutError):
                door.end()
            door.close()

        assert list(folder.iterdir()) == []
        free.set()
        holder.join()


@pytest.mark.req("TOOLS-16")
def test_who_waited_since_before_the_call_is_not_served_in_it(door: EgressDoor, secure: Origin) -> None:
    """A connection of the call before, not yet accepted, must not get the rules of the next one."""
    door.begin(rules())
    early = Client(door)
    door.begin(rules(net=[tls(HOST, secure.port)]))
    early.say(connect(HOST, secure.port))

    assert early.rest() == b""
    early.socket.close()
    assert door.end() == ()


@pytest.mark.req("TOOLS-16")
def test_two_boxes_have_two_ways_out(gate: EgressGate, door: EgressDoor, secure: Origin, trust: ssl.SSLContext) -> None:
    with opened(gate) as other:
        door.begin(rules(net=[tls(HOST, secure.port)]))
        other.begin(rules())

        assert get(door, trust, HOST, secure.port).endswith(b"hello")
        with pytest.raises(ConnectionRefusedError, match="not_granted"):
            get(other, trust, HOST, secure.port)

        assert [record.allowed for record in other.end()] == [False]
        assert get(door, trust, HOST, secure.port).endswith(b"hello")
        assert [record.allowed for record in door.end()] == [True, True]


@pytest.mark.req("TOOLS-16")
def test_a_closed_door_is_gone(gate: EgressGate) -> None:
    with box_folder() as folder:
        door = gate.open(folder)
        with Client(door) as client:
            door.close()
            door.close()

            assert client.rest() == b""
        assert list(folder.iterdir()) == []
        with socket.socket(socket.AF_UNIX) as late, pytest.raises(FileNotFoundError):
            late.connect(str(door.path))


@pytest.mark.req("TOOLS-16")
def test_a_gate_closes_its_doors_and_can_begin_again(names: Names, secure: Origin, trust: ssl.SSLContext) -> None:
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names)
    for _ in range(2):
        with box_folder() as folder:
            door = gate.open(folder)
            door.begin(rules(net=[tls(HOST, secure.port)]))
            assert get(door, trust, HOST, secure.port).endswith(b"hello")
            gate.close()
            assert list(folder.iterdir()) == []


@pytest.mark.req("TOOLS-16")
def test_the_roots_that_a_box_is_to_trust_lie_beside_its_way_out(names: Names, authority: Authority) -> None:
    gate = EgressGate(resolve=names, ca_file=authority.roots)
    with box_folder() as folder:
        gate.open(folder)

        found = (folder / "ca.pem").read_bytes()
        assert found.startswith(authority.roots.read_bytes().rstrip())
        assert len(ssl.create_default_context(cadata=found.decode()).get_ca_certs()) > 50  # and the public ones
        assert (folder / "ca.pem").stat().st_mode & 0o777 == 0o444
    gate.close()


@pytest.mark.req("TOOLS-16")
def test_roots_that_cannot_be_read_open_no_door(names: Names, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    for file, why in ((tmp_path / "none.pem", "cannot be read"), (tmp_path / "empty.pem", "no certificate")):
        with box_folder() as folder, pytest.raises(OSError, match=f"TOOLHUB_SANDBOX_CA_FILE.*{why}"):
            EgressGate(resolve=names, ca_file=file).open(folder)


@pytest.mark.req("TOOLS-16")
def test_a_tool_that_takes_nothing_holds_nobody_up(
    gate: EgressGate, door: EgressDoor, secure: Origin, trust: ssl.SSLContext
) -> None:
    with origin(answer=b"x" * 10_000_000) as large, opened(gate) as other:
        door.begin(rules(net=[plain(HOST, large.port)]))
        other.begin(rules(net=[tls(HOST, secure.port)]))
        with Client(door) as deaf:
            deaf.say(f"GET http://{HOST}:{large.port}/ HTTP/1.1\r\n\r\n".encode())
            deaf.socket.settimeout(WAIT_S)
            assert deaf.socket.recv(1) == b"x"

            assert get(other, trust, HOST, secure.port).endswith(b"hello")

            (record,) = door.end()
    assert record.bytes_in < 10_000_000
