"""Connection handler: what happens to one connection, from its first byte to its record.

It is read, judged, resolved and judged again before a byte leaves. From then on bytes are passed on and counted.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.sandbox.base import ConnectionRecord
from invocations.sandbox.egress import client_hello
from invocations.sandbox.egress.denial_reasons import NOBODY_THERE, NOT_HELD, DenialReason, EgressDenied
from invocations.sandbox.egress.request_body import stream_body
from invocations.sandbox.egress.request_head import CONNECT, read_head
from invocations.sandbox.egress.service_answer import LEFT
from invocations.sandbox.egress.service_exchange import ServiceExchange
from invocations.sandbox.egress.streams import EgressStream
from sandbox.relay import REFUSED

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Sequence

    from invocations.sandbox.egress.request_body import SmallChunkAllowance
    from invocations.sandbox.egress.request_head import RequestHead, RequestTarget
    from invocations.sandbox.egress.resolver import Resolver
    from invocations.sandbox.egress.rules import EgressRules
    from invocations.sandbox.egress.service_way import ServiceWay
    from invocations.sandbox.egress.streams import ReadPace

_STATUS = {
    DenialReason.MALFORMED: "400 Malformed request",
    DenialReason.TOO_LARGE: "431 Header too large",
    DenialReason.TOO_SLOW: "408 Too slow",
    DenialReason.TOO_MANY: "429 Too many connections",
    DenialReason.TOO_MUCH: "413 Too many bytes",
    DenialReason.TOO_OFTEN: "429 Too many attempts",
    DenialReason.UNRESOLVED: "502 The name cannot be resolved",
    DenialReason.UNREACHABLE: "502 Nobody answers there",
    DenialReason.UNTRUSTED: "502 Nobody vouches for who answers there",
    DenialReason.CUT_OFF: "502 The answer was cut off",
    DenialReason.BAD_ANSWER: "502 The answer is not understood",
}


@dataclass(frozen=True, slots=True)
class EgressCaps:
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
    # Of the service way.
    tls_s: float = 10.0
    question_bytes: int = 8 * 1024 * 1024
    answer_head_bytes: int = 64 * 1024
    answer_bytes: int = 8 * 1024 * 1024  # as they come: what they unpack to is the interpreter's to bound


@dataclass(eq=False, slots=True)
class EgressSession:
    """One call's use of a door."""

    rules: EgressRules
    places: asyncio.Semaphore
    lookups: Sequence[asyncio.Semaphore]  # each of which a look-up needs a place of
    pace: ReadPace
    crumbs: SmallChunkAllowance
    # What this call may ask for, in place of all else, and whom its TLS trusts.
    way: ServiceWay | None = None
    trust: ssl.SSLContext | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)  # a request is on its way
    asked: bool = False  # the one that counts has left
    bytes: int = 0
    attempts: int = 0
    waiting: int = 0
    passing: set[asyncio.Task[None]] = field(default_factory=set)
    begun: int = 0
    # Of those that have ended, by the order in which they began.
    records: dict[int, ConnectionRecord] = field(default_factory=dict)

    def list_connections(self) -> tuple[ConnectionRecord, ...]:
        return tuple(self.records[number] for number in sorted(self.records))


class ConnectionHandler:
    """One connection of a box to the gate."""

    def __init__(self, visit: EgressSession, caps: EgressCaps, ways: Resolver, end: socket.socket) -> None:
        self._visit, self._caps, self._ways = visit, caps, ways
        self._box = EgressStream(end, visit.pace)
        self._there: EgressStream | socket.socket | None = None
        self._exchange: ServiceExchange | None = None
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
        why: DenialReason | None = DenialReason.CALL_ENDED
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

    def _record(self, why: DenialReason | None) -> ConnectionRecord:
        exchange = self._exchange
        if exchange is not None:
            self._out, self._in = exchange.bytes_out, exchange.bytes_in
        return ConnectionRecord(
            host=self._host,
            port=self._port,
            allowed=self._let_through or why in NOBODY_THERE,
            why=str(why or ""),
            rule=self._rule,
            addresses=self._addresses,
            bytes_out=self._out,
            bytes_in=self._in,
            ms=round((time.monotonic() - self._begun) * 1000, 1),
            service=exchange.to_record() if exchange is not None else None,
        )

    async def _stopped_by(self) -> DenialReason | None:
        try:
            await self._pass()
        except EgressDenied as stopped:
            self._host = self._host or stopped.asked[:300]
            await self._refuse(stopped.why)
            return stopped.why
        except OSError:  # one of the two has hung up
            return None if self._let_through else DenialReason.MALFORMED
        return None

    async def _refuse(self, why: DenialReason) -> None:
        if self._answered or (self._exchange is not None and self._exchange.answered):
            return
        left = f"{LEFT}: {int(self._exchange.left)}\r\n" if self._exchange is not None else ""
        status = f"403 {REFUSED} ({why})" if why in NOT_HELD else _STATUS[why]
        with suppress(OSError):
            await self._box.write(
                f"HTTP/1.1 {status}\r\nX-Toolhub-Egress: {why}\r\n{left}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )

    async def _pass(self) -> None:
        visit, caps = self._visit, self._caps
        if visit.attempts > caps.attempts:
            raise EgressDenied(DenialReason.TOO_OFTEN)
        await self._take_place()
        request = await self._read_request()
        target = request.target
        self._host, self._port, self._rule = target.host, target.port, visit.rules.place(target)
        if visit.way is not None:
            await self._ask_service(request, visit.way)
            return
        refusal = visit.rules.refusal(request)
        if refusal is not None:
            raise EgressDenied(refusal)
        self._there = host = EgressStream(await self._connect(target), visit.pace)
        if request.method == CONNECT:
            await self._tunnel(request, host)
        else:
            await self._forward(request, host)

    async def _connect(self, target: RequestTarget) -> socket.socket:
        visit, caps = self._visit, self._caps
        addresses = await self._ways.addresses(target, seconds=caps.lookup_s, turns=visit.lookups)
        self._addresses = tuple(map(str, addresses))
        return await self._ways.connect(addresses, target.port, seconds=caps.connect_s)

    async def _take_place(self) -> None:
        """A client that has just closed one connection may be here with the next before the first is seen to be over."""
        visit, caps = self._visit, self._caps
        if visit.waiting >= caps.connections:
            raise EgressDenied(DenialReason.TOO_MANY)
        visit.waiting += 1
        try:
            async with asyncio.timeout(caps.place_s):
                await visit.places.acquire()
            self._placed = True
        except TimeoutError as error:
            raise EgressDenied(DenialReason.TOO_MANY) from error
        finally:
            visit.waiting -= 1

    async def _read_request(self) -> RequestHead:
        try:
            async with asyncio.timeout(self._caps.head_s):
                head = await self._box.until(b"\r\n\r\n", self._caps.head_bytes, otherwise=DenialReason.TOO_LARGE)
        except TimeoutError as error:
            raise EgressDenied(DenialReason.TOO_SLOW) from error
        return read_head(head)

    # -- the service way

    async def _ask_service(self, request: RequestHead, way: ServiceWay) -> None:
        """What answers this call. A request that has not left may be made again; after one that counts has, no second one is."""
        visit, caps = self._visit, self._caps
        way.check(request)
        if refusal := visit.rules.way_refusal(way, request.method):
            raise EgressDenied(refusal)
        try:  # who has just hung up on one may be here with the next before that is seen
            async with asyncio.timeout(caps.place_s):
                await visit.asking.acquire()
        except TimeoutError as error:
            raise EgressDenied(DenialReason.TOO_OFTEN) from error
        self._exchange = exchange = ServiceExchange(way, request, self._box, self._count)
        try:
            await exchange.take_body(most=caps.question_bytes, seconds=caps.head_s)
            self._count(request.length or 0)
            exchange.read_question()
            if visit.asked and exchange.question.counts:
                raise EgressDenied(DenialReason.TOO_OFTEN)
            self._there = end = await self._connect(request.target)
            assert visit.trust is not None
            await exchange.open(end, visit.pace, visit.trust, seconds=caps.tls_s)
            self._let_through = True
            await exchange.pass_on(head_bytes=caps.answer_head_bytes, answer_bytes=caps.answer_bytes)
        finally:
            visit.asked |= exchange.left and exchange.question.counts
            visit.asking.release()

    # -- https, and addresses

    async def _tunnel(self, request: RequestHead, host: EgressStream) -> None:
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
                while (name := client_hello.read_server_name(data)) is None:
                    piece = await self._box.read()
                    data += piece
                    if not piece or len(data) > 2 * self._caps.head_bytes:
                        raise EgressDenied(DenialReason.NOT_TLS)
        except TimeoutError as error:
            raise EgressDenied(DenialReason.TOO_SLOW) from error
        except client_hello.NotTls as error:
            raise EgressDenied(DenialReason.NOT_TLS) from error
        if name != host:
            await self._box.write(client_hello.UNKNOWN_NAME)
            raise EgressDenied(DenialReason.OTHER_NAME)
        return data

    # -- plain http

    async def _forward(self, request: RequestHead, host: EgressStream) -> None:
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

    async def _one_body(self, request: RequestHead, host: EgressStream) -> None:
        """The body, and then nothing: whatever comes after it is not this request."""
        async for piece in stream_body(self._box, request.length, self._visit.crumbs):
            await self._send(host, piece)
        if await self._box.read(1):
            raise EgressDenied(DenialReason.MALFORMED)

    # -- bytes

    def _count(self, size: int) -> None:
        self._visit.bytes += size
        if self._visit.bytes > self._caps.bytes:
            raise EgressDenied(DenialReason.TOO_MUCH)

    async def _send(self, host: EgressStream, data: bytes) -> None:
        self._count(len(data))
        self._out += len(data)
        await host.write(data)

    async def _outward(self, host: EgressStream) -> None:
        while data := await self._box.read():
            await self._send(host, data)
        host.end()

    async def _inward(self, host: EgressStream) -> None:
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
