"""Granted names: can a name that a tool was granted lead it to somewhere that nobody granted?"""

from __future__ import annotations

import ssl
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import EgressGate
from invocations.sandbox.egress import client_hello as egress_client_hello
from invocations.sandbox.egress.connection_handler import EgressCaps
from tests.egress.world import HOST, INTERNAL, PUBLIC, Client, asked, connect, get, opened, origin, plain, rules, tls

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor
    from tests.egress.world import Authority, Names, Origin

pytestmark = pytest.mark.attack

FORBIDDEN = {
    "this machine": ["127.0.0.2"],
    "a private network": ["10.0.0.1"],
    "metadata of a cloud": ["169.254.169.254"],
    "carrier-grade NAT": ["100.64.0.1"],
    "IPv4 inside IPv6": ["::ffff:10.0.0.1"],
    "NAT64": ["64:ff9b::a00:1"],
    "6to4": ["2002:a00:1::1"],
    "Teredo": ["2001:0:a00:1::1"],
    "unique local": ["fd00:ec2::254"],
    "link local": ["fe80::1%eth0"],
    "site local": ["fec0::1"],
    "this network": ["0.0.0.0"],
    "several listeners": ["224.0.0.1"],
    "IPv6 loopback": ["::1"],
    "one of two": ["127.0.0.1", "10.0.0.1"],
    "the other of two": ["10.0.0.1", "127.0.0.1"],
}


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize("addresses", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_name_that_leads_inside_is_refused_whole(
    addresses: list[str], door: EgressDoor, secure: Origin, names: Names
) -> None:
    names.say(HOST, addresses)
    door.begin(rules(net=[tls(HOST, secure.port)]))

    line = asked(door, connect(HOST, secure.port))

    assert "private_address" in line
    (record,) = door.end()
    assert (record.allowed, record.why, record.rule) == (False, "private_address", HOST)
    assert secure.heard == []


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_name_that_changes_its_mind_reaches_nothing_inside(
    door: EgressDoor, secure: Origin, names: Names, trust: ssl.SSLContext
) -> None:
    """Rebinding: the address that was looked at is the address that is connected to."""
    names.say(HOST, [PUBLIC], [INTERNAL])
    with origin(address=INTERNAL) as internal:
        door.begin(rules(net=[tls(HOST, secure.port), tls(HOST, internal.port), plain(HOST, internal.port)]))
        reached = 0
        for _ in range(10):
            try:
                reached += get(door, trust, HOST, secure.port).endswith(b"hello")
            except ConnectionRefusedError as error:
                assert "private_address" in str(error)
        assert internal.heard == []

    assert reached == 5
    assert len(names.asked) == 10
    assert [record.addresses for record in door.end() if record.allowed] == [(PUBLIC,)] * 5


@pytest.mark.req("TOOLS-16")
def test_a_name_that_does_not_exist_is_said_to_be_that(door: EgressDoor) -> None:
    door.begin(rules(net=[tls("*", 443)]))

    assert asked(door, connect("nowhere.example.org", 443)).startswith("HTTP/1.1 502")

    assert [(record.allowed, record.why) for record in door.end()] == [(True, "not_resolved")]


@pytest.mark.req("TOOLS-16")
def test_a_host_that_does_not_answer_is_said_to_be_that(door: EgressDoor) -> None:
    with origin() as gone:
        port = gone.port
    door.begin(rules(net=[tls(HOST, port)]))

    assert asked(door, connect(HOST, port)).startswith("HTTP/1.1 502")

    assert [(record.allowed, record.why) for record in door.end()] == [(True, "not_reachable")]


@pytest.mark.req("TOOLS-16")
def test_the_first_address_that_answers_is_taken(
    door: EgressDoor, secure: Origin, names: Names, trust: ssl.SSLContext
) -> None:
    gate = EgressGate(["127.0.0.0/8"], resolve=names)
    names.say(HOST, ["127.0.0.9", PUBLIC])
    with opened(gate) as both:
        both.begin(rules(net=[tls(HOST, secure.port)]))

        assert get(both, trust, HOST, secure.port).endswith(b"hello")
    gate.close()


@pytest.mark.req("SVC-6")
def test_slow_lookups_of_one_box_delay_nobody_else(authority: Authority, secure: Origin, names: Names) -> None:
    stuck, release = threading.Semaphore(0), threading.Event()

    def resolve(name: str) -> list[str]:
        if name != HOST:
            stuck.release()
            release.wait(60)
        return names(name)

    gate = EgressGate([f"{PUBLIC}/32"], resolve=resolve, caps=EgressCaps(lookup_s=60))
    with opened(gate) as slow, opened(gate) as other:
        slow.begin(rules(net=[tls("*", 443)]))
        other.begin(rules(net=[tls(HOST, secure.port)]))
        clients = [Client(slow).say(connect(f"slow-{number}.example.org", 443)) for number in range(10)]
        for _ in range(4):
            assert stuck.acquire(timeout=60)

        assert get(other, authority.client_context(), HOST, secure.port).endswith(b"hello")

        assert not stuck.acquire(blocking=False)  # no more than four of one box at once
        release.set()
        for client in clients:
            client.socket.close()
    gate.close()


@pytest.mark.req("SVC-6")
def test_slow_lookups_of_one_call_count_in_the_next_one_too() -> None:
    """A thread goes on until the resolver has given up, whether or not the call is over."""
    stuck, release = threading.Semaphore(0), threading.Event()

    def resolve(_: str) -> list[str]:
        stuck.release()
        release.wait(60)
        return [PUBLIC]

    gate = EgressGate([f"{PUBLIC}/32"], resolve=resolve, caps=EgressCaps(lookup_s=0.3))
    with opened(gate) as door:
        door.begin(rules(net=[tls("*", 443)]))
        clients = [Client(door).say(connect(f"a{number}.example.org", 443)) for number in range(4)]
        for _ in clients:
            assert stuck.acquire(timeout=60)
        door.end()
        door.begin(rules(net=[tls("*", 443)]))

        assert " 502 " in asked(door, connect("b.example.org", 443))

        assert not stuck.acquire(blocking=False)
        release.set()
        for client in clients:
            client.socket.close()
    gate.close()


@pytest.mark.req("SVC-6")
def test_slow_lookups_of_one_tenant_leave_names_to_the_others(
    authority: Authority, secure: Origin, names: Names
) -> None:
    stuck, release = threading.Semaphore(0), threading.Event()

    def resolve(name: str) -> list[str]:
        if name != HOST:
            stuck.release()
            release.wait(60)
        return names(name)

    gate = EgressGate([f"{PUBLIC}/32"], resolve=resolve, caps=EgressCaps(lookup_s=60))
    with ExitStack() as boxes:
        slow = [boxes.enter_context(opened(gate)) for _ in range(20)]
        other = boxes.enter_context(opened(gate))
        clients = []
        for box in slow:
            box.begin(rules(net=[tls("*", 443)]), tenant="one")
            clients += [Client(box).say(connect(f"slow-{number}.example.org", 443)) for number in range(4)]
        for _ in range(16):
            assert stuck.acquire(timeout=60)
        other.begin(rules(net=[tls(HOST, secure.port)]), tenant="other")

        assert get(other, authority.client_context(), HOST, secure.port).endswith(b"hello")

        assert not stuck.acquire(blocking=False)
        release.set()
        for client in clients:
            client.socket.close()
    gate.close()


# -- TLS


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("sni", ["front.example.org", "a.api.example.org"])
def test_tls_for_another_name_than_the_granted_one_is_stopped(
    sni: str, door: EgressDoor, secure: Origin, trust: ssl.SSLContext
) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))

    with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        get(door, trust, HOST, secure.port, sni=sni)

    (record,) = door.end()
    assert (record.allowed, record.why, record.bytes_out) == (False, "other_server_name", 0)
    assert secure.all() == [b""]


@pytest.mark.req("TOOLS-16")
def test_tls_without_a_name_is_stopped(door: EgressDoor, secure: Origin) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Client(door) as client:
        client.say(connect(HOST, secure.port)).line()
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(client.socket)

    assert [(record.allowed, record.why) for record in door.end()] == [(False, "other_server_name")]


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x80\x2e\x01\x03\x01\x00\x15",
        b"\x16\x02\x01\x00\x05\x01\x00\x00\x01\x00",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x17\x03\x03\x00\x05hello",
        b"\0" * 64,
    ],
    ids=["http", "ssh", "SSL 2", "version 2", "an empty record", "another message", "data at once", "zeros"],
)
def test_what_is_not_tls_is_stopped_before_a_byte_leaves(first: bytes, door: EgressDoor, secure: Origin) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))
    with Client(door) as client:
        assert " 200 " in client.say(connect(HOST, secure.port)).line()

        assert client.say(first).rest() == b""

    (record,) = door.end()
    assert (record.allowed, record.why, record.bytes_out) == (False, "not_tls", 0)


def client_hello(name: str) -> bytes:
    context = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@pytest.mark.req("TOOLS-16")
def test_a_hello_in_many_pieces_and_records_is_read_as_one() -> None:
    whole = client_hello("a.example.org")
    body = whole[5:]
    pieces = [body[start : start + 50] for start in range(0, len(body), 50)]
    records = b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece for piece in pieces)

    assert egress_client_hello.read_server_name(whole) == "a.example.org"
    assert egress_client_hello.read_server_name(records) == "a.example.org"
    assert [egress_client_hello.read_server_name(records[:size]) for size in range(len(records))] == [None] * len(
        records
    )
    assert egress_client_hello.read_server_name(whole + b"\x17\x03\x03\x00\x05early") == "a.example.org"


def sized(size: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return len(content).to_bytes(size, "big") + content


def hello_with(*extensions: bytes, after: bytes = b"") -> bytes:
    """A ClientHello with these extensions, as one record."""
    body = b"\x03\x03" + bytes(32) + sized(1) + sized(2, b"\x13\x01") + sized(1, b"\0") + sized(2, *extensions) + after
    return b"\x16\x03\x01" + sized(2, b"\x01" + sized(3, body))


def entry(name: bytes, kind: bytes = b"\0") -> bytes:
    return kind + sized(2, name)


def server_names(*entries: bytes) -> bytes:
    return b"\0\0" + sized(2, sized(2, *entries))


ONE = server_names(entry(b"a.example.org"))


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "broken",
    [
        hello_with(server_names(entry(b"a.example.org"), entry(b"b.example.org"))),
        hello_with(ONE, server_names(entry(b"b.example.org"))),
        hello_with(server_names(entry(b"a.example.org", b"\1"))),
        hello_with(server_names()),
        hello_with(server_names(entry(b"\xff.example.org"))),
        hello_with(b"\0\0" + sized(2, sized(2, entry(b"a.example.org")), b"more")),
        hello_with(ONE, after=b"more"),
        hello_with(ONE)[:3] + sized(2, hello_with(ONE)[5:], b"\x01\0\0\0"),
        hello_with(ONE, *[b"\x00\x2b\0\0"] * 128),
        b"".join(b"\x16\x03\x01\0\1" + hello_with(ONE)[at : at + 1] for at in range(5, 70)),
    ],
    ids=[
        "two names", "two lists", "another kind", "no name in the list", "not ascii", "more in the extension",
        "more after the extensions", "a second message", "very many extensions", "very many records",
    ],
)  # fmt: skip
def test_a_hello_that_could_be_read_in_two_ways_names_nothing(broken: bytes) -> None:
    with pytest.raises(egress_client_hello.NotTls):
        egress_client_hello.read_server_name(broken)


@pytest.mark.req("TOOLS-16")
def test_a_hello_that_is_cut_short_is_waited_for_and_one_without_a_name_names_none() -> None:
    assert egress_client_hello.read_server_name(hello_with(ONE)) == "a.example.org"
    assert egress_client_hello.read_server_name(hello_with(ONE)[:-1]) is None
    assert egress_client_hello.read_server_name(hello_with()) == ""
