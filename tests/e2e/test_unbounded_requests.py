"""One connection of somebody who is not known: does the web server go on answering, and does it forget what was sent?"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.e2e.conftest import copy_of
from tests.e2e.processes import python, run
from tests.e2e.services import own_database
from tests.e2e.wire import answers, request
from tests.support.migrated_databases import find_migrated_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Embedded
    from tests.e2e.processes import Process

MIB = 1024 * 1024
PIECE = 256 * 1024
HEAD = b"POST /api/v1/consents HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """What is sent: a beginning, and then the same piece until so much has gone out."""

    begin: bytes
    piece: bytes
    bytes: int
    status: int


ATTACKS = {
    "one header of 64 MiB": Attack(HEAD + b"X-Long: ", b"x" * PIECE, 64 * MIB, 431),
    "the name of a header of 64 MiB": Attack(HEAD + b"X-", b"x" * PIECE, 64 * MIB, 431),
    "a million headers": Attack(HEAD, b"".join(b"X-%05d: y\r\n" % n for n in range(20_000)), 13 * MIB, 431),
    "a header in pieces of a few bytes": Attack(HEAD + b"X-Long: ", b"x" * 64, MIB, 431),
    "an address of 64 MiB": Attack(b"GET /", b"x" * PIECE, 64 * MIB, 414),
    "a trailer of 64 MiB": Attack(CHUNKED + b"X-Long: ", b"x" * PIECE, 64 * MIB, 431),
    "a million trailers": Attack(CHUNKED, b"".join(b"X-%05d: y\r\n" % n for n in range(20_000)), 13 * MIB, 431),
    "blank lines": Attack(b"", b"\r\n" * 1024, 64 * MIB, 431),
}


@dataclass(frozen=True, slots=True)
class Serving:
    process: Process
    url: str
    writes_requests: bool  # a line for each into its log, with the address that it came from

    @property
    def memory(self) -> int:
        status = Path("/proc", str(self.process.pid), "status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) * 1024


@pytest.fixture(scope="module", params=["embedded", "production"])
def server(
    request: pytest.FixtureRequest, prepared: Embedded, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    """A web server as people start it."""
    settings = {"TOOLHUB_SANDBOX": "fake", "TOOLHUB_PUBLIC_URL": "https://127.0.0.1"}
    hub = copy_of(prepared, tmp_path_factory.mktemp("connections") / request.param, **settings)
    with contextlib.ExitStack() as stack:
        if request.param == "production":
            database = stack.enter_context(own_database(like=find_migrated_postgresql()))
            redis = os.environ["TOOLHUB_TEST_REDIS_URL"]
            hub.env |= {"TOOLHUB_DATABASE_URL": database, "TOOLHUB_REDIS_URL": redis, "TOOLHUB_SECRET_KEY": "x" * 50}
            run(python("manage.py", "init"), hub.env)
        process = hub.start()
        try:
            yield Serving(process, hub.url, writes_requests=request.param == "production")
        finally:
            process.stop()


def answer_on(line: socket.socket) -> bytes:
    """All that comes, until the server ends the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := line.recv(65536):
            found += piece
    return found


def test_nobody_is_taken_for_a_proxy_who_was_not_named(server: Serving) -> None:
    said = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}

    answer = request("GET", f"{server.url}/sign-in", headers=said)

    assert (answer.status, answer.headers.get("strict-transport-security")) == (200, None), "it came over http"
    lines = [line for line in server.process.said().splitlines() if '"GET /sign-in ' in line]
    assert bool(lines) is server.writes_requests
    assert [line for line in lines if " 127.0.0.1:" not in line] == []


@pytest.mark.parametrize("name", ATTACKS)
def test_what_has_no_end_is_refused_while_it_is_read_and_the_others_are_answered(server: Serving, name: str) -> None:
    attack, url = ATTACKS[name], server.url
    address = urlsplit(url)
    assert answers(f"{url}/healthz")
    before, sent, healthy = server.memory, 0, 0

    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line.sendall(attack.begin)
        with contextlib.suppress(ConnectionError):
            while sent < attack.bytes:
                line.sendall(attack.piece)
                sent += len(attack.piece)
                if sent // PIECE > healthy:  # the clock: nothing more is sent before it has struck
                    assert answers(f"{url}/healthz")
                    healthy += 1
                line.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    if line.recv(1, socket.MSG_PEEK):
                        break
                line.settimeout(60)
        line.settimeout(60)
        answer = answer_on(line)

    assert answer.startswith(b"HTTP/1.1 %d " % attack.status), (sent, answer[:500])
    assert sent < attack.bytes
    assert b'"reason": "REQUEST.' in answer
    assert b"connection: close" in answer
    assert server.memory - before < 16 * MIB
    assert answers(f"{url}/healthz")
