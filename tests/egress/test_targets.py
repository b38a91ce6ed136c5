"""Forbidden targets: is there another way to write a forbidden target?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.egress.world import HOST, INTERNAL, Client, asked, origin, plain, rules, tls

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor
    from tests.egress.world import Names, Origin

pytestmark = pytest.mark.attack

SPELLINGS = [
    "127.0.0.2",
    "127.2",
    "2130706434",
    "0x7f000002",
    "0x7f.0.0.2",
    "0177.0.0.2",
    "[::1]",
    "[::ffff:127.0.0.2]",
    "[::127.0.0.2]",
    "[64:ff9b::7f00:2]",
    "[2002:7f00:2::]",
    "169.254.169.254",
    "localhost",
    "localhost.",
    "metadata.google.internal",
    "api.example.org.",
    "api.example.org@127.0.0.2",
    "user:password@api.example.org",
    "api%2eexample%2eorg",
    "api.example.org%00.evil.org",
    "*.example.org",
    "api..example.org",
    "-api.example.org",
    "[fe80::1%25eth0]",
    "127.0.0.2#api.example.org",
    "\u24d0pi.example.org",
    "",
]


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize("form", ["connect", "http"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_target_that_is_written_differently_is_refused(
    spelling: str, form: str, door: EgressDoor, names: Names
) -> None:
    """The rules hold every name, and the resolver sends private names where they lead."""
    names.say("localhost", [INTERNAL], ["::1"])
    names.say("metadata.google.internal", ["169.254.169.254"])
    with origin(address=INTERNAL) as internal:
        port = internal.port
        door.begin(rules(net=[tls("*", port), plain("*", port)]))
        request = (
            f"CONNECT {spelling}:{port} HTTP/1.1" if form == "connect" else f"GET http://{spelling}:{port}/ HTTP/1.1"
        )

        line = asked(door, request.encode() + b"\r\n\r\n")

        assert line.split(" ")[1] in ("400", "403"), line
        assert internal.heard == []
    (record,) = door.end()
    assert not record.allowed


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT api.example.org:443\r\nX: y HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:443 HTTP/1.1 \r\n\r\n",
        b"CONNECT  api.example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:443\tHTTP/1.1\r\n\r\n",
        b"connect api.example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:443 HTTP/2.0\r\n\r\n",
        b"CONNECT api.example.org HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:0 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:99999999999 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.org:443/x HTTP/1.1\r\n\r\n",
        b"CONNECT https://api.example.org:443 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\n",
        b"GET https://api.example.org/ HTTP/1.1\r\n\r\n",
        b"GET ftp://api.example.org/ HTTP/1.1\r\n\r\n",
        b"GET http:///api.example.org/ HTTP/1.1\r\n\r\n",
        b"TRACE http://api.example.org/ HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"\x05\x01\x00\r\n\r\n",
    ],
)
def test_a_first_line_of_another_form_is_refused(head: bytes, door: EgressDoor, names: Names) -> None:
    door.begin(rules(net=[tls("*", 443), plain("*", 80)]))

    line = asked(door, head)

    assert line.split(" ")[1] in ("400", "403"), line
    assert names.asked == []
    assert [record.allowed for record in door.end()] == [False]


@pytest.mark.req("SVC-6")
def test_headers_of_64_kilobytes_are_not_read(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(net=[tls("*", open_server.port)]))
    with Client(door) as client:
        client.say(f"CONNECT {HOST}:{open_server.port} HTTP/1.1\r\nX: ".encode())
        client.say(b"y" * 65536 + b"\r\n\r\n")

        assert client.line().startswith("HTTP/1.1 431")

    assert [record.why for record in door.end()] == ["header_too_large"]
