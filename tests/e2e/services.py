"""Services of a test: where do a test's own PostgreSQL database, its own Redis, and a line that can be cut come from?"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

from scripts.provision.processes import free_port
from tests.e2e.processes import Process, clean_environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOW = "Type `make test`, or `scripts/testenv start` and source .testenv/env."


@contextmanager
def own_database(server: str = "", *, like: str = "") -> Iterator[str]:
    """A new database in the test server, or in that one, empty or ``like`` that of a URL to which nobody is connected; yields its
    URL and drops it in the end.
    """
    server = server or os.environ.get("TOOLHUB_TEST_DATABASE_URL", "")
    assert server, f"TOOLHUB_TEST_DATABASE_URL names no PostgreSQL. {HOW}"
    name = f"toolhub_e2e_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {urlsplit(like).path[1:] or 'template1'}")
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class OwnRedis:
    """A Redis that a test may stop. It forgets everything then."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = os.environ.get("TOOLHUB_TEST_REDIS_SERVER", "")
        assert self._program, f"TOOLHUB_TEST_REDIS_SERVER names no redis-server. {HOW}"
        self._port = free_port()
        self._password = secrets.token_urlsafe(18)
        self._process: Process | None = None
        self.url = f"redis://default:{self._password}@127.0.0.1:{self._port}/5"

    def start(self) -> None:
        settings = {"port": self._port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self._folder}
        options = [str(part) for name, value in settings.items() for part in (f"--{name}", value)]
        command = [self._program, *options, "--requirepass", self._password]
        self._process = Process(command, clean_environment(), self._folder / "redis.log")
        self._process.wait_for(self._answers, "Redis answers")

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def _answers(self) -> bool:
        with closing(redis.Redis.from_url(self.url, socket_connect_timeout=2)) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


class Line:
    """A TCP line to somebody, which can be cut: then nobody answers at its near end, and what was connected is broken."""

    def __init__(self, host: str, port: int) -> None:
        self._far = (host, port)
        self.port = free_port()
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._server: socket.socket | None = None
        self._acceptor: threading.Thread | None = None

    def mend(self) -> None:
        self._server = socket.create_server(("127.0.0.1", self.port), backlog=128)
        self._acceptor = threading.Thread(target=self._accept, args=(self._server,), name="line", daemon=True)
        self._acceptor.start()

    def cut(self) -> None:
        if self._server is None or self._acceptor is None:
            return
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._server.close()
        self._acceptor.join()
        self._server = None
        with self._lock:
            for end in self._sockets:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._far, timeout=10)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._sockets |= {near, far}
            threading.Thread(target=self._carry, args=(near, far), name="line-carry", daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=_pump, args=(far, near), name="line-back", daemon=True)
        back.start()
        _pump(near, far)
        back.join()
        with self._lock:
            self._sockets -= {near, far}
        near.close()
        far.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
