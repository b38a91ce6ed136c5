"""Streams: how bytes are taken and given, so that no connection holds up another.

Straight from the sockets: nothing is taken before it is asked for, so what is not wanted yet stays with the kernel, which makes
the sender wait. Before each piece the loop is given back, for as long as the call's pace says. Of the service way, TLS is spoken
here as well.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from contextlib import suppress

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied

PIECE = 1 << 16


class ReadPace:
    """How many pieces a second are taken of all connections of one call; as many again at once after a pause.

    Who sends crumbs does not have them looked at one by one: they gather until the next turn.
    """

    def __init__(self, pieces_s: int) -> None:
        self._each_s = 1 / pieces_s
        self._until = 0.0

    async def turn(self) -> None:
        now = time.monotonic()
        self._until = max(self._until, now - 1) + self._each_s
        await asyncio.sleep(max(self._until - now, 0))  # of 0 too: the others' turn


class EgressStream:
    """One end of a connection."""

    def __init__(self, end: socket.socket, pace: ReadPace) -> None:
        end.setblocking(False)
        self._end, self._pace = end, pace
        self._taken, self._at = b"", 0

    @property
    def ahead(self) -> bool:
        """Whether bytes were taken that nobody has read."""
        return self._at < len(self._taken)

    async def _receive(self) -> bytes:
        await self._pace.turn()
        return await asyncio.get_running_loop().sock_recv(self._end, PIECE)

    async def _take(self) -> bool:
        """False at the end."""
        piece = await self._receive()
        self._taken, self._at = self._taken[self._at :] + piece, 0
        return bool(piece)

    async def read(self, most: int = PIECE) -> bytes:
        """Some bytes; none at the end."""
        if not self.ahead:
            await self._take()
        piece = self._taken[self._at : self._at + most]
        self._at += len(piece)
        return piece

    async def until(
        self, mark: bytes, most: int, *, otherwise: DenialReason, ended: DenialReason = DenialReason.MALFORMED
    ) -> bytes:
        """Up to the mark and with it. :class:`EgressDenied` with ``otherwise`` when ``most`` bytes have none, with ``ended`` where
        nothing more comes.
        """
        while (found := self._taken.find(mark, self._at, self._at + most)) < 0:
            if len(self._taken) - self._at >= most:
                raise EgressDenied(otherwise)
            if not await self._take():
                raise EgressDenied(ended)
        piece = self._taken[self._at : found + len(mark)]
        self._at += len(piece)
        return piece

    async def write(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._end, data)

    def end(self) -> None:
        """Nothing more is written."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._end.close()


class TlsStream(EgressStream):
    """The gate's own TLS to a service, over a connection. ``left`` is true as soon as a byte of what is written may have left."""

    def __init__(self, end: socket.socket, pace: ReadPace, context: ssl.SSLContext, host: str) -> None:
        super().__init__(end, pace)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._sending = asyncio.Lock()  # records go out in the order in which they were made
        self.left = False

    async def open(self) -> None:
        """The handshake: ``ssl.SSLError`` where it fails, or nobody vouches for the certificate. Nothing of a request has left."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._flush()
                await self._feed()
        await self._flush()

    async def _feed(self) -> None:
        data = await super()._receive()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        async with self._sending:
            while data := self._outgoing.read():  # with what reading made of it meanwhile
                await super().write(data)

    async def _receive(self) -> bytes:
        """Nothing at the end that the other side has said itself; ``ssl.SSLEOFError`` where the connection was cut."""
        while True:
            try:
                return self._tls.read(PIECE)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLWantReadError:
                # Who answers without taking the rest of a request is read all the same: what TLS itself has to say then goes out
                # behind that rest.
                if not self._sending.locked():
                    await self._flush()
                await self._feed()

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        self.left = True
        await self._flush()
