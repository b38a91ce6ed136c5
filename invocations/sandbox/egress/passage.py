"""What happens to one connection, from its first byte to its record?

It is read, judged, resolved and judged again before a byte leaves. From then on bytes are passed on and counted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.sandbox.base import Connection
from invocations.sandbox.egress import hello
from invocations.sandbox.egress.bodies import pieces_of
from invocations.sandbox.egress.heads import CONNECT, read_head
from invocations.sandbox.egress.streams import Stream
from invocations.sandbox.egress.whys import NOBODY_THERE, NOT_HELD, Stopped, Why
from sandbox.relay import REFUSED

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from invocations.sandbox.egress.bodies import Crumbs
    from invocations.sandbox.egress.heads import Request
    from invocations.sandbox.egress.rules import Rules
    from invocations.sandbox.egress.streams import Pace
    from invocations.sandbox.egress.ways import Ways

_STATUS = {
    Why.MALFORMED: "400 Malformed request",
    Why.TOO_LARGE: "431 Header too large",
    Why.TOO_SLOW: "408 Too slow",
    Why.TOO_MANY: "429 Too many connections",
    Why.TOO_MUCH: "413 Too many bytes",
    Why.TOO_OFTEN: "429 Too many attempts",
    Why.UNRESOLVED: "502 The name cannot be resolved",
    Why.UNREACHABLE: "502 Nobody answers there",
}


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one call may ask of the gate. Seconds and bytes."""

    connections: int = 16  # at once; as many more may wait for a place
    place_s: float = 1.0
    attempts: int = 1000
    bytes: int = 64 * 1024 * 1024  # both ways together
    pieces_s: int = 1000  # that are taken a second, of 64 KiB at most
    crumbs: int = 10_000  # chunks of bodies, beyond one for each 128 bytes
    head_bytes: int = 16 * 1024
    head_s: float = 10.0
    lookup_s: float = 5.0
    connect_s: float = 5.0


@dataclass(eq=False, slots=True)
class Visit:
    """One call's use of a door."""

    rules: Rules
    places: asyncio.Semaphore
    lookups: Sequence[asyncio.Semaphore]  # each of which a look-up needs a place of
    pace: Pace
    crumbs: Crumbs
    bytes: int = 0
    attempts: int = 0
    waiting: int = 0
    passing: set[asyncio.Task[None]] = field(default_factory=set)
    begun: int = 0
    # Of those that have ended, by the order in which they began.
    records: dict[int, Connection] = field(default_factory=dict)

    def told(self) -> tuple[Connection, ...]:
        return tuple(self.records[number] for number in sorted(self.records))


class Passage:
    """One connection of a box to the gate."""

    def __init__(self, visit: Visit, caps: Caps, ways: Ways, end: socket.socket) -> None:
        self._visit, self._caps, self._ways = visit, caps, ways
        self._box = Stream(end, visit.pace)
        self._there: Stream | None = None
        self._begun = time.monotonic()
        self._number = visit.begun
        visit.begun += 1
        self._host, self._port, self._rule = "", 0, ""
        self._addresses: tuple[str, ...] = ()
        self._out = self._in = 0
        self._answered = False
        self._let_through = False
        self._placed = False

    async def go(self) -> None:
        why: Why | None = Why.CALL_ENDED
        try:
            why = await self._stopped_by()
        except asyncio.CancelledError:
            why = None if self._let_through else why  # clients leave connections open: nothing was cut short
            raise
        finally:
            self._visit.records[self._number] = self._record(why)
            if self._placed:
                self._visit.places.release()
            self._box.close()
            if self._there is not None:
                self._there.close()

    def _record(self, why: Why | None) -> Connection:
        return Connection(
            host=self._host,
            port=self._port,
            allowed=self._let_through or why in NOBODY_THERE,
            why=str(why or ""),
            rule=self._rule,
            addresses=self._addresses,
            bytes_out=self._out,
            bytes_in=self._in,
            ms=round((time.monotonic() - self._begun) * 1000, 1),
        )

    async def _stopped_by(self) -> Why | None:
        try:
            await self._pass()
        except Stopped as stopped:
            self._host = self._host or stopped.asked[:300]
            await self._refuse(stopped.why)
            return stopped.why
        except OSError:  # one of the two has hung up
            return None if self._let_through else Why.MALFORMED
        return None

    async def _refuse(self, why: Why) -> None:
        if self._answered:
            return
        status = f"403 {REFUSED} ({why})" if why in NOT_HELD else _STATUS[why]
        with suppress(OSError):
            await self._box.write(
                f"HTTP/1.1 {status}\r\nX-Toolhub-Egress: {why}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )

    async def _pass(self) -> None:
        visit, caps = self._visit, self._caps
        if visit.attempts > caps.attempts:
            raise Stopped(Why.TOO_OFTEN)
        await self._take_place()
        request = await self._read_request()
        target = request.target
        self._host, self._port, self._rule = target.host, target.port, visit.rules.place(target)
        refusal = visit.rules.refusal(request)
        if refusal is not None:
            raise Stopped(refusal)
        addresses = await self._ways.addresses(target, seconds=caps.lookup_s, turns=visit.lookups)
        self._addresses = tuple(map(str, addresses))
        end = await self._ways.connect(addresses, target.port, seconds=caps.connect_s)
        self._there = host = Stream(end, visit.pace)
        if request.method == CONNECT:
            await self._tunnel(request, host)
        else:
            await self._forward(request, host)

    async def _take_place(self) -> None:
        """A client that has just closed one connection may be here with the next before the first is seen to be over."""
        visit, caps = self._visit, self._caps
        if visit.waiting >= caps.connections:
            raise Stopped(Why.TOO_MANY)
        visit.waiting += 1
        try:
            async with asyncio.timeout(caps.place_s):
                await visit.places.acquire()
            self._placed = True
        except TimeoutError as error:
            raise Stopped(Why.TOO_MANY) from error
        finally:
            visit.waiting -= 1

    async def _read_request(self) -> Request:
        try:
            async with asyncio.timeout(self._caps.head_s):
                head = await self._box.until(b"\r\n\r\n", self._caps.head_bytes, otherwise=Why.TOO_LARGE)
        except TimeoutError as error:
            raise Stopped(Why.TOO_SLOW) from error
        return read_head(head)

    # -- https, and addresses

    async def _tunnel(self, request: Request, host: Stream) -> None:
        self._answered = True
        await self._box.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first = b"" if request.target.address is not None else await self._checked_hello(request.target.host)
        self._let_through = True
        await self._send(host, first)
        both = [asyncio.ensure_future(way) for way in (self._outward(host), self._inward(host))]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for way in done:
                way.result()
        finally:
            await _cancelled(*both)

    async def _checked_hello(self, host: str) -> bytes:
        """The first bytes, when they begin TLS for this host. Nothing of them has left before."""
        data = b""
        try:
            async with asyncio.timeout(self._caps.head_s):
                while (name := hello.server_name(data)) is None:
                    piece = await self._box.read()
                    data += piece
                    if not piece or len(data) > 2 * self._caps.head_bytes:
                        raise Stopped(Why.NOT_TLS)
        except TimeoutError as error:
            raise Stopped(Why.TOO_SLOW) from error
        except hello.NotTls as error:
            raise Stopped(Why.NOT_TLS) from error
        if name != host:
            await self._box.write(hello.UNKNOWN_NAME)
            raise Stopped(Why.OTHER_NAME)
        return data

    # -- plain http

    async def _forward(self, request: Request, host: Stream) -> None:
        self._let_through = True
        await self._send(host, request.head())
        answer = asyncio.ensure_future(self._inward(host))
        question = asyncio.ensure_future(self._one_body(request, host))
        try:
            done, _ = await asyncio.wait((answer, question), return_when=asyncio.FIRST_COMPLETED)
            if question in done:
                question.result()
            await answer
        finally:
            await _cancelled(answer, question)

    async def _one_body(self, request: Request, host: Stream) -> None:
        """The body, and then nothing: whatever comes after it is not this request."""
        async for piece in pieces_of(self._box, request.length, self._visit.crumbs):
            await self._send(host, piece)
        if await self._box.read(1):
            raise Stopped(Why.MALFORMED)

    # -- bytes

    def _count(self, size: int) -> None:
        self._visit.bytes += size
        if self._visit.bytes > self._caps.bytes:
            raise Stopped(Why.TOO_MUCH)

    async def _send(self, host: Stream, data: bytes) -> None:
        self._count(len(data))
        self._out += len(data)
        await host.write(data)

    async def _outward(self, host: Stream) -> None:
        while data := await self._box.read():
            await self._send(host, data)
        host.end()

    async def _inward(self, host: Stream) -> None:
        while data := await host.read():
            self._answered = True
            self._count(len(data))
            self._in += len(data)
            await self._box.write(data)
        self._box.end()


async def _cancelled(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
