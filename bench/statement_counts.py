"""Statement counts: what passes between a hub's processes and PostgreSQL, counted by a proxy on the protocol itself.

An exchange is a way there and back: what the server ends with ReadyForQuery. A transaction ends where that says that none is
open; one that begins and ends within an exchange is one too. A statement is what is executed; the server's own look-ups of foreign
keys are none. It costs time, so nothing is timed through it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolhub.process_names import parse_process_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

_SSL, _GSS = 80877103, 80877104  # what a client may ask before it begins: whether it can be encrypted
_NAME = b"application_name"  # which says the process


@dataclass(slots=True)
class Counts:
    """Of one process. ``texts``: how often which statement was executed."""

    exchanges: int = 0
    transactions: int = 0
    statements: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)  # of exchanges: what was sent together

    def since(self, before: Counts) -> Counts:
        return Counts(
            self.exchanges - before.exchanges,
            self.transactions - before.transactions,
            self.statements - before.statements,
            self.texts - before.texts,
            self.shapes - before.shapes,
        )

    def copy(self) -> Counts:
        return Counts(self.exchanges, self.transactions, self.statements, Counter(self.texts), Counter(self.shapes))


class _Session:
    """One connection, as both sides speak on it."""

    def __init__(self, counts: dict[int, Counts]) -> None:
        self._all, self._counts = counts, Counts()
        self._prepared: dict[bytes, str] = {}
        self._bound = ""
        self._sent: list[str] = []

    def begin(self, parameters: bytes) -> None:
        words = parameters.split(b"\0")
        name = parse_process_name(words[words.index(_NAME) + 1].decode()) if _NAME in words else None
        self._counts = self._all.setdefault(name.pid if name is not None else 0, Counts())

    def hear_client(self, kind: bytes, body: bytes) -> None:
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._prepared[name] = _shorten(text)
        elif kind == b"B":
            self._bound = self._prepared.get(body.split(b"\0", 2)[1], "?")
        elif kind == b"E":
            self._execute(self._bound)
        elif kind == b"Q":
            self._execute(_shorten(body.rstrip(b"\0")))

    def _execute(self, text: str) -> None:
        self._counts.statements += 1
        self._counts.texts[text] += 1
        self._sent.append(text)

    def hear_server(self, kind: bytes, body: bytes) -> None:
        if kind == b"Z":
            self._counts.exchanges += 1
            if body == b"I" and self._sent:  # of one statement, where none ends it
                self._counts.transactions += max(1, sum(each in ("COMMIT", "ROLLBACK") for each in self._sent))
            self._counts.shapes[" | ".join(each[:60] for each in self._sent)] += 1
            self._sent = []


def _shorten(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split())[:160]


class StatementProxy:
    """Counts by process id, of all connections through it."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self._counts: dict[int, Counts] = {}
        self.port = 0

    def of(self, pid: int) -> Counts:
        found = self._counts.get(pid)
        return found.copy() if found is not None else Counts()

    async def serve(self, ready: threading.Event, ended: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await ended.wait()
        server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(self._counts)
        try:
            while True:
                first = await reader.readexactly(8)
                if int.from_bytes(first[4:]) not in (_SSL, _GSS):
                    break
                writer.write(b"N")
            start = await reader.readexactly(int.from_bytes(first[:4]) - 8)
            session.begin(start)
            back, there = await asyncio.open_connection(*self._to)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        there.write(first + start)
        ways = (_pass(reader, there, session.hear_client), _pass(back, writer, session.hear_server))
        await asyncio.gather(*ways, return_exceptions=True)  # one that was broken off ends like one that was closed


async def _pass(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes, bytes], None]
) -> None:
    rest = b""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            rest += data
            while len(rest) >= 5 and len(rest) > (size := int.from_bytes(rest[1:5])):
                hear(rest[:1], rest[5 : size + 1])
                rest = rest[size + 1 :]
    finally:
        writer.close()


@contextmanager
def count_statements(url: str) -> Iterator[tuple[StatementProxy, str]]:
    """(the counts, the address of the database through the proxy)."""
    parts = urlsplit(url)
    proxy = StatementProxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ended = asyncio.Event()
    thread = threading.Thread(target=_run, args=(loop, proxy.serve(ready, ended)))
    thread.start()
    ready.wait()
    try:
        yield proxy, parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}").geturl()
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop, serve: Coroutine[Any, Any, None]) -> None:
    loop.run_until_complete(serve)
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
