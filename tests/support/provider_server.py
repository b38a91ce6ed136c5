"""Provider server: a small HTTP server on this machine that plays what a model's provider sends, with every way of breaking off."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Sequence

EVENTS = {"content-type": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer in pieces. ``end``: whole, cut in the middle of its body, or never going on until the client leaves."""

    pieces: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: dict(EVENTS))
    end: Literal["whole", "cut", "stall"] = "whole"

    @classmethod
    def json(cls, document: Any, status: int = 200, **headers: str) -> Reply:
        return cls([json.dumps(document).encode()], status, {"content-type": "application/json", **headers})


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class ProviderServer:
    """Plays its replies one after the other, and the last one again and again."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self.left = asyncio.Event()  # a client went before its answer was whole
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read_request(reader)) is not None:
                self.asked.append(asked)
                reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
                if not await self._play(reply, reader, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            writer.close()

    async def _play(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        lines = [f"HTTP/1.1 {reply.status} X", "transfer-encoding: chunked"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in reply.pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if reply.end == "stall":
            await reader.read(1)
            self.left.set()
        if reply.end == "whole":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.end == "whole"


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    if not first:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)


@asynccontextmanager
async def provider_server(*replies: Reply, tls: ssl.SSLContext | None = None) -> AsyncIterator[ProviderServer]:
    """A server in the event loop of the test, on a port of its own."""
    played = ProviderServer(replies)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(played.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    played.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield played
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
