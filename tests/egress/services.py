"""Services behind the service way: what answers an operation, and hangs up where a test says.

Each speaks TLS on loopback with a certificate of the tests' authority, and keeps what it heard.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.egress.world import PUBLIC, WAIT_S, accept_on

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

GOOD = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
ID = b'"the id of what was asked"'


def answer_with(body: bytes, *, status: str = "200 OK", **headers: str) -> bytes:
    """An answer; ``content_type=…`` becomes a header."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(slots=True)
class Service:
    """``answers`` are given in turn, the last one again and again. ``refuses``: so many connections are hung up on before TLS."""

    port: int = 0
    answers: list[bytes] = field(default_factory=lambda: [GOOD])
    refuses: int = 0
    hangs_up: str = ""  # tls: after the handshake, head: when the request was read, never: not even after the answer
    echo_ids: bool = False  # ID in an answer becomes the id of the request
    endless: bytes = b""  # said again and again after the answer
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0
    done: threading.Condition = field(default_factory=threading.Condition)

    def requests(self, count: int = 1) -> list[bytes]:
        with self.done:
            assert self.done.wait_for(lambda: len(self.heard) >= count, WAIT_S), self.heard
            return list(self.heard)

    def converse(self, end: socket.socket, context: ssl.SSLContext) -> None:
        end.settimeout(WAIT_S)
        self.connections += 1
        if self.refuses >= self.connections:
            end.close()
            return
        with context.wrap_socket(end, server_side=True) as stream:
            if self.hangs_up == "tls":
                return
            heard = _read_request(stream)
            with self.done:
                self.heard.append(heard)
                answer = self.answers[min(len(self.heard), len(self.answers)) - 1]
                self.done.notify_all()
            if self.echo_ids and (found := re.search(rb'"id":([0-9]+)', heard)):
                answer = answer.replace(ID, found[1].rjust(len(ID)))
            if self.hangs_up == "head":
                return
            stream.sendall(answer)
            while self.endless:
                stream.sendall(self.endless)
            if self.hangs_up == "never":
                stream.recv(1)
            if self.hangs_up != "answer":  # without the alert that says that this was all
                with suppress(OSError):
                    stream.unwrap()


def _read_request(stream: ssl.SSLSocket) -> bytes:
    heard = b""
    while b"\r\n\r\n" not in heard and (data := stream.recv(65536)):
        heard += data
    head, _, body = heard.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length and (data := stream.recv(65536)):
        body += data
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(context: ssl.SSLContext, *, address: str = PUBLIC, **options: Any) -> Iterator[Service]:
    found = Service(**options)
    listener = socket.create_server((address, 0))
    found.port = listener.getsockname()[1]

    def converse(end: socket.socket) -> None:
        with suppress(OSError), end:
            found.converse(end, context)

    with accept_on(listener, converse):
        yield found


# Connections that end where a test says.


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a connection ends: behind so many bytes of what the gate says ("question") or of what the service says ("answer")."""

    side: str
    after: int
    is_abrupt: bool = False  # without an end of TCP


@dataclass(slots=True)
class Wire:
    """Stands before a service and passes on what is said; it knows no TLS. ``cuts``: of its connections, in turn; the others end by
    themselves. ``passed``: bytes of each side, in the pieces in which they came, of each connection."""

    to: int
    port: int = 0
    cuts: list[Cut] = field(default_factory=list)
    passed: list[list[tuple[str, int]]] = field(default_factory=list)

    def converse(self, end: socket.socket) -> None:
        cut = self.cuts[len(self.passed)] if len(self.passed) < len(self.cuts) else None
        pieces: list[tuple[str, int]] = []
        self.passed.append(pieces)
        with socket.create_connection((PUBLIC, self.to), WAIT_S) as service:
            others = {end: (service, "question"), service: (end, "answer")}
            while True:
                ready, _, _ = select.select(list(others), [], [], WAIT_S)
                for each in ready:
                    other, side = others[each]
                    data = each.recv(65536)
                    left = len(data) if cut is None or cut.side != side else cut.after - self.count(pieces, side)
                    other.sendall(data[:left])
                    pieces.append((side, len(data[:left])))
                    if not data or len(data) > left:
                        if cut is not None and cut.is_abrupt:
                            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return
                if not ready:
                    return

    @staticmethod
    def count(pieces: list[tuple[str, int]], side: str) -> int:
        return sum(size for each, size in pieces if each == side)


@contextmanager
def wired(to: int) -> Iterator[Wire]:
    found = Wire(to)
    listener = socket.create_server((PUBLIC, 0))
    found.port = listener.getsockname()[1]

    def converse(end: socket.socket) -> None:
        with suppress(OSError), end:
            found.converse(end)

    with accept_on(listener, converse):
        yield found
