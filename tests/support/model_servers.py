"""Servers of models: on this machine, each answers what a test has written down, also half of it or nothing.

One runs in the event loop of the test (:func:`served_here`), or in a thread of its own (:func:`model_server`).
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.support.http_server import Heard

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    Answer = Callable[[Heard], "Reply"]

EVENTS, JSON = "text/event-stream", "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request is answered: pieces of a body, each sent by itself.

    ``end``: ``cut``, the connection ends without the body's end; ``stall``, nothing more is sent until the caller goes; ``endless``,
    the last piece again and again, until the caller goes.
    """

    body: Sequence[bytes] = ()
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    end: Literal["whole", "cut", "stall", "endless"] = "whole"


def json_reply(document: Any, status: int = 200, **others: Any) -> Reply:
    return Reply([json.dumps(document).encode()], status, **others)


def event_reply(*chunks: Any, **others: Any) -> Reply:
    """Chunks as server-sent events; bytes as they are."""
    body = [each if isinstance(each, bytes) else b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in chunks]
    return Reply(body, **{"content_type": EVENTS, **others})


@dataclass(slots=True)
class ModelServer:
    """``answer`` makes the reply to a request. ``left`` is set once a caller went before the end of one. ``keeps``: connections are
    used again.
    """

    answer: Answer
    keeps: bool = True
    url: str = ""
    heard: list[Heard] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def bodies(self) -> list[Any]:
        return [each.document for each in self.heard]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (heard := await _read_request(reader)) is not None:
                self.heard.append(heard)
                if not await self._play(self.answer(heard), reader, writer):
                    break
        finally:
            writer.close()

    async def _play(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        try:
            await self._send(reply, writer)
        except ConnectionError:
            self.left.set()
            return False
        if reply.end == "stall":
            await reader.read(1)  # returns when the caller closes
            self.left.set()
        return self.keeps and reply.end == "whole"

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        head = {"content-type": reply.content_type, "transfer-encoding": "chunked"} | reply.headers
        head |= {} if self.keeps else {"connection": "close"}
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        for piece in reply.body:
            await _write_piece(writer, piece)
        while reply.end == "endless":
            await _write_piece(writer, reply.body[-1])
        if reply.end == "whole":
            writer.write(b"0\r\n\r\n")
            await writer.drain()


async def _write_piece(writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
    await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Heard | None:
    """None once the caller has gone."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except (ConnectionError, asyncio.IncompleteReadError):
        return None
    method, path, _ = first.split(" ")
    return Heard(method, path, headers, body)


def _read_answer(replies: Sequence[Reply | Answer]) -> Answer:
    """Replies are played one after the other, and the last one again and again."""
    waiting = list(replies)

    def answer(heard: Heard) -> Reply:
        found = waiting[0] if len(waiting) == 1 else waiting.pop(0)
        return found if isinstance(found, Reply) else found(heard)

    return answer


@asynccontextmanager
async def served_here(
    *replies: Reply | Answer, keeps: bool = True, tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[ModelServer]:
    """A server in the event loop of the test; without a port on one that is free."""
    played = ModelServer(_read_answer(replies), keeps=keeps)
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.create_task(played.serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", port, ssl=tls)
    played.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield played
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # what was aborted is told so before the loop ends
        await server.wait_closed()


@contextmanager
def model_server(*replies: Reply | Answer, port: int = 0) -> Iterator[ModelServer]:
    """A server in a thread of its own, for tests without an event loop of their own, and for other processes. Callers whose loops end
    leave no connection behind: none is kept.
    """
    made: list[ModelServer] = []
    ready, loop, over = threading.Event(), asyncio.new_event_loop(), asyncio.Event()

    async def main() -> None:
        async with served_here(*replies, keeps=False, port=port) as server:
            made.append(server)
            ready.set()
            await over.wait()

    def run() -> None:
        try:
            loop.run_until_complete(main())
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield made[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
