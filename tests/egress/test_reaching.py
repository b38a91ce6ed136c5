"""Granted hosts: does a tool get to the host that it was granted, and to no other?"""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from sandbox.relay import REFUSED
from tests.egress.world import HOST, INTERNAL, PUBLIC, Client, asked, connect, get, origin, plain, relayed, rules, tls

if TYPE_CHECKING:
    import ssl

    from invocations.sandbox.egress import EgressDoor
    from tests.egress.world import Names, Origin

pytestmark = pytest.mark.attack


def opener(proxy: str, trust: ssl.SSLContext) -> urllib.request.OpenerDirector:
    proxies = urllib.request.ProxyHandler({"https": proxy, "http": proxy})
    return urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=trust))


@pytest.mark.req("TOOLS-16")
def test_the_granted_host_by_a_socket_of_the_tools_own(door: EgressDoor, secure: Origin, trust: ssl.SSLContext) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))

    answer = get(door, trust, HOST, secure.port)

    assert answer.endswith(b"hello")
    (record,) = door.end()
    assert (record.host, record.port, record.allowed, record.why) == (HOST, secure.port, True, "")
    assert (record.rule, record.addresses) == (HOST, (PUBLIC,))
    assert record.bytes_out > 100
    assert record.bytes_in > 100


@pytest.mark.req("TOOLS-16")
def test_the_granted_host_by_a_client_that_knows_proxies(
    door: EgressDoor, secure: Origin, trust: ssl.SSLContext
) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))

    with relayed(door) as proxy, opener(proxy, trust).open(f"https://{HOST}:{secure.port}/x") as answer:
        assert answer.read() == b"hello"

    assert [record.allowed for record in door.end()] == [True]
    assert b"GET /x HTTP/1.1" in secure.all()[0]


@pytest.mark.req("TOOLS-16")
def test_the_granted_host_by_plain_http(door: EgressDoor, open_server: Origin, trust: ssl.SSLContext) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port)]))

    with relayed(door) as proxy, opener(proxy, trust).open(f"http://{HOST}:{open_server.port}/x?y=1") as answer:
        assert answer.read() == b"hello"

    assert [record.allowed for record in door.end()] == [True]
    heard = open_server.all()[0]
    assert heard.startswith(f"GET /x?y=1 HTTP/1.1\r\nHost: {HOST}:{open_server.port}\r\n".encode())
    assert b"\r\nConnection: close\r\n" in heard


@pytest.mark.req("TOOLS-16")
def test_a_pattern_grants_names_below_it_and_evidence_names_the_pattern(
    door: EgressDoor, secure: Origin, names: Names, trust: ssl.SSLContext
) -> None:
    names.say("a.example.org", [PUBLIC])
    door.begin(rules(net=[tls("*.example.org", secure.port)]))

    assert get(door, trust, "a.example.org", secure.port).endswith(b"hello")

    assert [(record.host, record.rule) for record in door.end()] == [("a.example.org", "*.example.org")]


@pytest.mark.req("TOOLS-16")
def test_capital_letters_are_the_same_host(door: EgressDoor, secure: Origin, trust: ssl.SSLContext) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))

    assert get(door, trust, HOST.upper(), secure.port).endswith(b"hello")

    assert [record.host for record in door.end()] == [HOST]


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "target",
    [
        "other.example.org:{port}",
        "a.api.example.org:{port}",
        "example.org:{port}",
        "api.example.org.evil.org:{port}",
        "xapi.example.org:{port}",
        "api.example.org:443",
        "api.example.org:1{port}",
    ],
    ids=["other host", "subdomain", "parent", "as a prefix", "as a suffix", "wrong port", "port out of range"],
)
def test_what_is_not_granted_is_refused_before_it_is_looked_up(
    target: str, door: EgressDoor, secure: Origin, names: Names
) -> None:
    door.begin(rules(net=[tls(HOST, secure.port)]))

    line = asked(door, f"CONNECT {target.format(port=secure.port)} HTTP/1.1\r\n\r\n".encode())

    assert line.startswith(f"HTTP/1.1 403 {REFUSED}"), line
    assert names.asked == []
    (record,) = door.end()
    assert (record.allowed, record.rule, record.addresses) == (False, "", ())


@pytest.mark.req("TOOLS-16")
def test_https_is_no_grant_of_http_and_http_none_of_https(
    door: EgressDoor, secure: Origin, open_server: Origin
) -> None:
    door.begin(rules(net=[tls(HOST, secure.port), plain(HOST, open_server.port)]))

    by_http = asked(door, f"GET http://{HOST}:{secure.port}/ HTTP/1.1\r\n\r\n".encode())
    by_connect = asked(door, connect(HOST, open_server.port))

    assert " 403 " in by_http
    assert " 403 " in by_connect
    assert {record.why for record in door.end()} == {"not_granted"}


@pytest.mark.req("TOOLS-16")
def test_single_methods_of_https_cannot_be_seen_and_are_not_let_through(door: EgressDoor, secure: Origin) -> None:
    door.begin(rules(net=[tls(HOST, secure.port) | {"methods": ["GET"]}]))

    line = asked(door, connect(HOST, secure.port))

    assert "methods_unseen" in line
    assert [(record.allowed, record.why) for record in door.end()] == [(False, "methods_unseen")]


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
def test_methods_of_plain_http_are_enforced(method: str, door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port, "GET", "HEAD")]))

    line = asked(door, f"{method} http://{HOST}:{open_server.port}/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode())

    assert "method_not_granted" in line
    assert [record.why for record in door.end()] == ["method_not_granted"]
    assert open_server.heard == []


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "where", ["http://169.254.169.254/latest/meta-data/", "http://other.example.org/", "http://localhost/"]
)
def test_a_redirect_leads_nowhere_that_is_not_granted(
    where: str, door: EgressDoor, names: Names, trust: ssl.SSLContext
) -> None:
    names.say("other.example.org", [PUBLIC])
    answer = f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()
    with origin(answer=answer) as moved, relayed(door) as proxy:
        door.begin(rules(net=[plain(HOST, moved.port)]))

        with pytest.raises(urllib.error.HTTPError, match=REFUSED) as raised:
            opener(proxy, trust).open(f"http://{HOST}:{moved.port}/")
        raised.value.close()

    assert [record.allowed for record in door.end()] == [True, False]
    assert names.asked == [HOST]


@pytest.mark.req("TOOLS-16")
def test_a_client_that_knows_proxies_says_that_it_was_refused(door: EgressDoor, trust: ssl.SSLContext) -> None:
    door.begin(rules())

    with relayed(door) as proxy, pytest.raises(urllib.error.URLError, match=REFUSED):
        opener(proxy, trust).open("https://other.example.org/")

    assert [record.allowed for record in door.end()] == [False]


# -- addresses


@pytest.mark.req("TOOLS-16")
def test_an_address_that_a_range_holds_can_be_reached(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(cidr=[{"cidr": "127.0.0.0/24", "ports": [open_server.port]}]))

    with Client(door) as client:
        assert " 200 " in client.say(connect(PUBLIC, open_server.port)).line()
        assert client.say(b"anything at all\r\n\r\n").rest().endswith(b"hello")

    (record,) = door.end()
    assert (record.host, record.allowed, record.rule) == (PUBLIC, True, "127.0.0.0/24")
    assert open_server.all() == [b"anything at all\r\n\r\n"]


@pytest.mark.req("TOOLS-16")
def test_an_address_that_a_range_holds_can_be_asked_by_http(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(cidr=[{"cidr": "127.0.0.0/24", "ports": [open_server.port]}]))

    line = asked(door, f"GET http://{PUBLIC}:{open_server.port}/ HTTP/1.1\r\n\r\n".encode())

    assert line == "HTTP/1.1 200 OK"


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize("written", ["[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]"])
def test_an_ipv4_address_written_as_ipv6_is_the_ipv4_address(
    written: str, door: EgressDoor, open_server: Origin
) -> None:
    door.begin(rules(cidr=[{"cidr": "127.0.0.0/24", "ports": [open_server.port]}]))

    assert " 200 " in asked(door, connect(written, open_server.port))

    assert [record.host for record in door.end()] == [PUBLIC]


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_range_does_not_reach_where_the_operator_admits_nobody(door: EgressDoor) -> None:
    with origin(address=INTERNAL) as internal:
        door.begin(rules(cidr=[{"cidr": "0.0.0.0/0", "ports": ["1-65535"]}, {"cidr": "::/0", "ports": ["1-65535"]}]))

        lines = [asked(door, connect(address, internal.port)) for address in (INTERNAL, "169.254.169.254", "[::1]")]

        assert all("private_address" in line for line in lines), lines
        assert internal.heard == []
    assert {record.why for record in door.end()} == {"private_address"}


@pytest.mark.req("TOOLS-16")
def test_a_range_grants_no_name_and_a_name_no_address(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(cidr=[{"cidr": "127.0.0.0/24", "ports": [open_server.port]}]))
    by_name = asked(door, connect(HOST, open_server.port))
    door.end()
    door.begin(rules(net=[tls("*", open_server.port), plain("*", open_server.port)]))
    by_address = asked(door, connect(PUBLIC, open_server.port))

    assert "not_granted" in by_name
    assert "not_granted" in by_address
