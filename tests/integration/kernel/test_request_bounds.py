"""Connections that take their time, or more than their share. Limits of seconds are set to fractions here."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from kernel.http import traffic, uvicorn_protocol
from kernel.http.body_limits import BOUNDED
from kernel.http.uvicorn_protocol import Protocol
from kernel.observability import telemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


class Server:
    """Answers each request with what it got, once ``gate`` is open."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.gate = threading.Event()
        self.gate.set()
        self.begun: list[str] = []
        self.headers: list[dict[bytes, bytes]] = []
        self.bounded: list[bool] = []
        self.gone = threading.Event()

    async def application(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.begun.append(scope["path"])
        self.bounded.append(scope.get(BOUNDED, False))
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            body, more = body + message.get("body", b""), message["more_body"]
        self.headers.append(dict(scope["headers"]))
        await asyncio.to_thread(self.gate.wait)
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def connect(self) -> socket.socket:
        return socket.create_connection(self.listening.getsockname(), timeout=30)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(uvicorn_protocol, "HEAD_S", 0.3)
    monkeypatch.setattr(uvicorn_protocol, "BODY_WINDOW_S", 0.3)
    monkeypatch.setattr(uvicorn_protocol, "LINGER_S", 0.1)
    here = Server()
    config = uvicorn.Config(
        here.application, http=Protocol, ws="auto", interface="asgi3", lifespan="off", log_config=None
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [here.listening]}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        here.gate.set()
        running.should_exit = True
        thread.join(30)
        here.listening.close()


def all_of(line: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := line.recv(65536):
            found += piece
    return found


def until(line: socket.socket, end: bytes, count: int = 1) -> bytes:
    """What comes, until it has ended so; it must."""
    found = b""
    while found.count(b"HTTP/1.1 ") < count or not found.endswith(end):
        piece = line.recv(65536)
        assert piece, found
        found += piece
    return found


def until_it_ends(line: socket.socket, drops: bytes) -> bytes:
    """What is answered while a drop is sent from time to time."""
    line.settimeout(0.02)
    found = b""
    for _ in range(2_000):
        with contextlib.suppress(TimeoutError):
            piece = line.recv(65536)
            found += piece
            if not piece:
                return found
        with contextlib.suppress(ConnectionError):
            line.sendall(drops)
    raise AssertionError("The server waits for ever.")


def test_a_head_that_drips_is_answered_408(server: Server) -> None:
    with server.connect() as line:
        line.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")

        answer = until_it_ends(line, b"x")

    assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert b"REQUEST.TOO_SLOW" in answer
    assert server.begun == []


def test_a_body_that_drips_is_answered_408_and_who_waits_for_it_is_told(server: Server) -> None:
    with server.connect() as line:
        line.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")

        answer = until_it_ends(line, b"x")

    assert answer.startswith(b"HTTP/1.1 408 "), answer
    assert server.gone.wait(30)


def test_a_body_that_comes_as_fast_as_it_must_may_take_longer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_protocol, "BODY_WINDOW_BYTES", 1)
    size = 100
    with server.connect() as line:
        line.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size)
        line.settimeout(0.02)  # 100 times this is several windows
        for _ in range(size):
            with contextlib.suppress(TimeoutError):
                assert line.recv(1) == b"", "answered before it was whole"
            line.sendall(b"x")
        line.settimeout(30)

        answer = all_of(line)

    assert answer.startswith(b"HTTP/1.1 200 "), answer


@pytest.mark.parametrize("said", [b"", b"\r\n"], ids=["nothing", "blank lines"])
def test_a_connection_that_asks_nothing_is_closed_without_an_answer(server: Server, said: bytes) -> None:
    with server.connect() as line:
        assert until_it_ends(line, said) == b""


def test_who_waits_for_an_answer_is_not_hurried(server: Server) -> None:
    server.gate.clear()
    with server.connect() as line:
        line.sendall(GET + b"\r\n")  # some clients end a request with a line too many
        line.settimeout(1)  # several times what a head may take
        with pytest.raises(TimeoutError):
            line.recv(1)
        server.gate.set()
        line.settimeout(30)

        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_connection_has_so_many_requests_waiting_and_no_more(server: Server) -> None:
    server.gate.clear()
    with server.connect() as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(GET * 10_000)
        answer = all_of(line)

    assert answer == b""  # whose turn it is was not answered yet, so there is no place for a refusal
    assert len(server.begun) <= 1


def test_requests_that_are_sent_together_are_answered_in_their_order(server: Server) -> None:
    many = uvicorn_protocol.MAX_WAITING
    with server.connect() as line:
        line.sendall(b"".join(b"POST /%d HTTP/1.1\r\nContent-Length: 2\r\n\r\n%02d" % (n, n) for n in range(many)))
        until(line, b"%02d" % (many - 1), many)

    assert server.begun == [f"/{n}" for n in range(many)]


WEBSOCKET = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
UPGRADES = {
    "websocket": b"Upgrade: websocket\r\nConnection: Upgrade\r\n" + WEBSOCKET,
    "h2c": b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQBAAAAAAIAAAAA\r\n",
}


@pytest.mark.parametrize("name", UPGRADES)
def test_a_wish_for_another_protocol_is_not_heard(server: Server, name: str) -> None:
    with server.connect() as line:
        line.sendall(GET[:-2] + UPGRADES[name] + b"\r\n" + b"GET /hidden HTTP/1.1\r\n\r\n")
        answer = all_of(line)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert (server.begun, server.bounded) == (["/"], [True])


BODIES = {
    "of a length": b"Content-Length: 2\r\n\r\nab",
    "in chunks": b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("at_once", [True, False], ids=["in one piece", "byte by byte"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", UPGRADES)
def test_who_wishes_for_another_protocol_and_sends_a_body_is_answered_in_this_one(
    server: Server, name: str, body: str, at_once: bool
) -> None:
    said, hidden = HEAD + UPGRADES[name] + BODIES[body], b"GET /hidden HTTP/1.1\r\n\r\n"
    first = b"" if at_once else said[:-1]
    with server.connect() as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(first)):
            line.sendall(first[at : at + 1])
        # With the byte that ends the request: once it is answered the line is closed, and nobody can send any more.
        line.sendall(said.removeprefix(first) + hidden)
        answer = all_of(line)

    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert answer.endswith(b"\r\n\r\nab")
    assert server.begun == ["/"]
    assert not {b"upgrade", b"http2-settings"} & server.headers[0].keys()


@pytest.mark.parametrize("length", [b"5", b"x"])
def test_a_wish_for_another_protocol_passes_no_bound(server: Server, length: bytes) -> None:
    with server.connect() as line:
        line.sendall(HEAD + b"Content-Length: " + length + b"\r\n" + UPGRADES["h2c"] + b"\r\nab")

        answer = until_it_ends(line, b"")

    assert answer.startswith(b"HTTP/1.1 408 " if length == b"5" else b"HTTP/1.1 400 "), answer


def test_a_trailer_is_no_header(server: Server) -> None:
    """Whoever stands before the hub and takes headers away does not see it."""
    with server.connect() as line:
        line.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")

    assert b"x-forwarded-for" not in server.headers[0]


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (GET[:-2] + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n", 431),
        (GET[:-2] + b"X-Long: " + b"x" * 40_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"nonsense\r\n\r\n", 400),
        (b"CONNECT example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ],
    ids=["many headers", "a long header", "a long address", "no HTTP", "a tunnel"],
)
def test_what_comes_in_one_piece_is_bounded_as_well(server: Server, said: bytes, status: int) -> None:
    with server.connect() as line:
        line.sendall(said)
        answer = all_of(line)

    assert answer.startswith(b"HTTP/1.1 %d " % status), answer
    assert server.begun == []


@pytest.mark.parametrize(
    ("said", "status"), [(GET[:-2] + b"X-Long: " + b"x" * 40_000 + b"\r\n\r\n", 431), (b"nonsense\r\n\r\n", 400)]
)
def test_what_no_application_hears_of_is_counted_by_its_status(
    server: Server, said: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("tests")
    monkeypatch.setattr(telemetry, "get_meter", lambda: meter)
    traffic.get_request_instruments.cache_clear()
    try:
        with server.connect() as line:
            line.sendall(said)
            all_of(line)
        data = reader.get_metrics_data()
    finally:
        traffic.get_request_instruments.cache_clear()

    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    (point,) = metric.data.data_points
    assert getattr(point, "count", 0) == 1
    assert tuple((point.attributes or {}).values()) == (traffic.OTHER, traffic.UNMATCHED, status)


def test_the_head_after_a_large_body_has_its_own_bounds(server: Server) -> None:
    with server.connect() as line:
        line.sendall(HEAD + b"Content-Length: 200000\r\n\r\n" + b"x" * 200_000 + GET[:-2])
        until(line, b"x" * 200_000)
        line.sendall(b"\r\n")

        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")
