"""Plain HTTP: does exactly one request of plain http travel on, and is it the one that was judged?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.egress.world import HOST, Client, asked, origin, plain, rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.egress import EgressDoor
    from tests.egress.world import Origin

pytestmark = pytest.mark.attack

SECOND = b"DELETE http://api.example.org/everything HTTP/1.1\r\nHost: api.example.org\r\n\r\n"


def head(method: str, port: int, *headers: bytes) -> bytes:
    return b"\r\n".join([f"{method} http://{HOST}:{port}/ HTTP/1.1".encode(), *headers, b"", b""])


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "headers",
    [
        (b"Content-Length: 5", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: 5"),
        (b"Content-Length: 5", b"Content-Length: 50"),
        (b"Content-Length: 5, 50",),
        (b"Content-Length: +5",),
        (b"Content-Length: 0x5",),
        (b"Content-Length: -5",),
        (b"Content-Length:",),
        (b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
        (b"Transfer-Encoding: gzip, chunked",),
        (b"Transfer-Encoding: xchunked",),
        (b"Transfer-Encoding : chunked",),
        (b"Transfer-Encoding:\x0bchunked",),
        (b"X: y", b" Transfer-Encoding: chunked"),
        (b"X: y\nContent-Length: 5",),
        (b"X: y\rContent-Length: 5",),
        (b"X: y\0",),
        (b"no colon",),
        (b": empty name",),
    ],
)
def test_headers_that_two_programs_could_read_differently_are_refused(
    headers: tuple[bytes, ...], door: EgressDoor, open_server: Origin
) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port)]))

    line = asked(door, head("POST", open_server.port, *headers) + b"hello")

    assert line.startswith("HTTP/1.1 400"), line
    assert [record.why for record in door.end()] == ["malformed_request"]
    assert open_server.heard == []


@pytest.mark.req("TOOLS-16")
def test_a_chunked_body_in_an_old_version_is_refused(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port)]))

    request = head("POST", open_server.port, b"Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0")

    assert asked(door, request + b"0\r\n\r\n").startswith("HTTP/1.1 400")


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "body", [b"", b"Content-Length: 0\r\n", b"Content-Length: 3\r\n\r\nabc"], ids=["none", "empty", "three bytes"]
)
def test_a_second_request_after_the_first_does_not_travel_on(body: bytes, door: EgressDoor) -> None:
    first, _, content = body.partition(b"\r\n")
    with origin(until=b"never") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        request = head("POST", patient.port, *([first] if first else [])) + content.removeprefix(b"\r\n")
        with Client(door) as client:
            client.say(request + SECOND).rest()

        heard = patient.all()[0]

    assert b"DELETE" not in heard
    assert heard.endswith(b"\r\n\r\n" + content.removeprefix(b"\r\n"))
    (record,) = door.end()
    assert (record.allowed, record.why) == (True, "malformed_request")


@pytest.mark.req("TOOLS-16")
def test_a_chunked_body_travels_on_in_new_frames(door: EgressDoor) -> None:
    with origin(until=b"0\r\n\r\n") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        request = head("POST", patient.port, b"Transfer-Encoding: Chunked")
        with Client(door) as client:
            answer = client.say(request + b"003\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n").rest()
        heard = patient.all()[0]

    assert answer.endswith(b"hello")
    assert heard.endswith(b"\r\nTransfer-Encoding: chunked\r\n\r\nd\r\nabc0123456789\r\n0\r\n\r\n")


@pytest.mark.req("TOOLS-16")
def test_very_many_small_chunks_travel_on_as_few(door: EgressDoor) -> None:
    """Each would be framed and sent by itself, and meanwhile the gate would serve nobody else."""
    with origin(until=b"0\r\n\r\n") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        request = head("POST", patient.port, b"Transfer-Encoding: chunked")
        with Client(door) as client:
            client.say(request + b"1\r\nx\r\n" * 9000 + b"0\r\n\r\n").rest()
        body = patient.all()[0].partition(b"\r\n\r\n")[2]

    assert body.count(b"x") == 9000
    assert body.count(b"\r\n") < 200


@pytest.mark.req("TOOLS-16")
def test_a_call_may_not_send_its_bodies_in_crumbs(narrow: Callable[..., EgressDoor]) -> None:
    door = narrow(crumbs=1000)
    crumb, worth_it = b"1\r\nx\r\n", b"80\r\n" + b"y" * 128 + b"\r\n"
    with origin(until=b"0\r\n\r\n") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        request = head("POST", patient.port, b"Transfer-Encoding: chunked")
        for chunks in (crumb * 600, worth_it * 5000, crumb * 600):
            with Client(door) as client:
                client.say(request + chunks + b"0\r\n\r\n").rest()

    assert [record.why for record in door.end()] == ["", "", "malformed_request"]


@pytest.mark.req("TOOLS-16")
def test_very_many_headers_are_refused(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port)]))

    assert " 431 " in asked(door, head("GET", open_server.port, *[b"a:"] * 201))

    assert " 200 " in asked(door, head("GET", open_server.port, *[b"a:"] * 200))


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    "chunks",
    [
        b"3;ext=1\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"-1\r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n",
        b"fffffffff\r\nabc\r\n",
        b"0\r\nX-Trailer: 1\r\n\r\n",
        b"\r\n\r\n",
        b"0\r\nDELETE http://api.example.org/ HTTP/1.1\r\n\r\n",
    ],
)
def test_chunks_of_another_form_end_the_request(chunks: bytes, door: EgressDoor) -> None:
    with origin(until=b"never") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        with Client(door) as client:
            client.say(head("POST", patient.port, b"Transfer-Encoding: chunked") + chunks).rest()
        heard = patient.all()[0]

    assert not heard.endswith(b"\r\n0\r\n\r\n")
    assert b"DELETE" not in heard
    assert [record.why for record in door.end()] == ["malformed_request"]


@pytest.mark.req("TOOLS-16")
def test_words_between_the_tool_and_the_gate_do_not_travel_on(door: EgressDoor, open_server: Origin) -> None:
    door.begin(rules(net=[plain(HOST, open_server.port)]))
    private = [b"Proxy-Authorization: Basic eA==", b"Proxy-Connection: keep-alive", b"Connection: keep-alive, upgrade"]
    private += [b"Upgrade: h2c", b"Keep-Alive: 5", b"Host: 169.254.169.254", b"TE: trailers"]

    asked(door, head("GET", open_server.port, *private, b"Accept: text/plain", b"X-Own: 1"))

    heard = open_server.all()[0].decode()
    assert heard.split("\r\n")[1:-2] == [
        f"Host: {HOST}:{open_server.port}",
        "Accept: text/plain",
        "X-Own: 1",
        "Connection: close",
    ]


@pytest.mark.req("TOOLS-16")
def test_a_tool_that_has_sent_all_may_close_its_side_and_still_read(door: EgressDoor) -> None:
    with origin(until=b"\r\n\r\nabc") as patient:
        door.begin(rules(net=[plain(HOST, patient.port)]))
        with Client(door) as client:
            client.say(head("POST", patient.port, b"Content-Length: 3") + b"abc")
            client.socket.shutdown(1)

            assert client.rest().endswith(b"hello")

    assert [(record.allowed, record.why) for record in door.end()] == [(True, "")]
