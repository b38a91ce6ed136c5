"""Answers of services: is each read in one way, and does no credential come back?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import EgressGate
from invocations.sandbox.egress.connection_handler import EgressCaps
from tests.egress.operations import TOKEN, ask, begin, request, way_to
from tests.egress.services import GOOD, Service, answer_with, serving
from tests.egress.world import HOST, PUBLIC, Authority, Names, opened

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor


@pytest.mark.attack
@pytest.mark.req("SVC-6")
def test_cookies_places_and_credentials_do_not_come_back(trusting: EgressDoor, service: Service) -> None:
    service.answers = [
        answer_with(
            b"{}",
            set_cookie="session=1",
            location=f"https://{HOST}/?key={TOKEN}",
            x_echo=TOKEN,
            content_type="application/json",
            link=f'<https://{HOST}/next?key={TOKEN}>; rel="next"',
            retry_after="3",
        )
    ]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert head.decode().split("\r\n") == [
        "HTTP/1.1 200 Answer",
        "content-type: application/json",
        f'link: <https://{HOST}/next?key=[secret TOKEN]>; rel="next"',
        "retry-after: 3",
        "Transfer-Encoding: chunked",
        "Connection: close",
    ]


@pytest.mark.attack
@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_a_credential_that_is_not_ascii_does_not_come_back_either(
    charset: str, trusting: EgressDoor, service: Service
) -> None:
    secret = "l\u00f6senord-4711"
    link = f"<https://{HOST}/next?key={secret}>".encode(charset)
    service.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nLink: " + link + b"\r\n\r\n"]
    begin(trusting, way_to(service.port, secret, credentials=[{"secret": "TOKEN", "in": "query", "name": "key"}]))

    head, _ = ask(trusting, request(service.port))

    assert f"link: <https://{HOST}/next?key=[secret TOKEN]>".encode() in head


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_a_redirect_is_not_followed(trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer_with(b"", status="302 Found", location="http://169.254.169.254/")]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert head.startswith(b"HTTP/1.1 302 Answer")
    assert b"169.254" not in head
    (record,) = trusting.end()
    assert record.service is not None
    assert (record.service.status, record.service.complete, service.connections) == (302, True, 1)


@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (GOOD, b'{"ok":true}'),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + GOOD, b'{"ok":true}'),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
def test_answers_are_framed_anew(answer: bytes, body: bytes, trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer]
    begin(trusting, way_to(service.port))

    _, found = ask(trusting, request(service.port))

    assert _unchunked(found) == body
    assert found.endswith(b"0\r\n\r\n")
    assert [each.service.complete for each in trusting.end() if each.service] == [True]


def _unchunked(data: bytes) -> bytes:
    found = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        found, data = found + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return found


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20,
        b"HTTP/2 200\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
    ],
)
def test_an_answer_that_can_be_read_in_two_ways_is_none(answer: bytes, trusting: EgressDoor, service: Service) -> None:
    service.answers = [answer]
    begin(trusting, way_to(service.port))

    head, _ = ask(trusting, request(service.port))

    assert b"X-Toolhub-Egress: answer_not_understood\r\nX-Toolhub-Left: 1" in head
    assert [(each.why, each.service and each.service.complete) for each in trusting.end()] == [
        ("answer_not_understood", False)
    ]


@pytest.mark.attack
@pytest.mark.req("SVC-6", "TOOLS-16")
@pytest.mark.parametrize(
    ("head", "endless"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 65536),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
    ],
)
def test_an_answer_without_end_is_cut(head: bytes, endless: bytes, names: Names, authority: Authority) -> None:
    caps = EgressCaps(answer_bytes=1 << 20)
    gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots, caps=caps)
    with opened(gate) as door, serving(authority.server_context(HOST), answers=[head], endless=endless) as service:
        begin(door, way_to(service.port))
        _, body = ask(door, request(service.port))
        (record,) = door.end()
    gate.close()

    assert not body.endswith(b"0\r\n\r\n")
    assert len(body) < 3 << 20
    assert record.why == "too_many_bytes"
    assert record.service is not None
    assert (record.service.status, record.service.left, record.service.complete) == (200, True, False)
