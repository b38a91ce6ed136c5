"""Model callers: how a program asks for an answer piece by piece, of the provider, a hub or a proxy, and when it gets what."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import time
from dataclasses import dataclass
from typing import Any

from bench.figures import CannotMeasure
from bench.model_provider import MARK, MODEL, TOKENS

QUESTION = "Say something."
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Of one answer, in milliseconds since the request was sent. ``tokens_per_s``: from the first to the last."""

    first_token: float
    total: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class ModelDoor:
    """Where a model is asked, the same question in the words of whoever stands there. ``end`` is in the last event of an answer."""

    name: str
    host: str
    path: str
    key: str
    end: bytes
    is_hub: bool = False

    def build_body(self) -> bytes:
        if not self.is_hub:
            message = {"role": "user", "content": QUESTION}
            said: dict[str, Any] = {"model": MODEL, "messages": [message], "stream": True, "max_tokens": TOKENS}
            return json.dumps(said | {"stream_options": {"include_usage": True}}).encode()
        segments = [{"type": "text", "text": QUESTION}]
        arguments = {"messages": [{"role": "user", "segments": segments}], "max_tokens": TOKENS}
        envelope = {"request_id": f"bench-{next(_numbers):08}", "actor": {"type": "agent", "id": "bench"}}
        return json.dumps(envelope | {"arguments": arguments}).encode()

    def build_headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }


class StreamCaller:
    """One connection that is kept, as a client library does."""

    def __init__(self, door: ModelDoor) -> None:
        self._door = door
        self._connection = http.client.HTTPConnection(door.host, timeout=60)

    def call(self) -> StreamTimes:
        """One that the other side closed meanwhile is opened again before."""
        try:
            return self._ask()
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            self._connection.close()
            return self._ask()

    def _ask(self) -> StreamTimes:
        door, begun = self._door, time.perf_counter()
        self._connection.request("POST", door.path, door.build_body(), door.build_headers())
        response = self._connection.getresponse()
        came: list[float] = []
        tokens, is_whole, last = 0, False, b""
        while line := response.readline():
            is_whole = is_whole or door.end in line
            # The whole answer at the end of a hub's stream has all tokens once more.
            if line.startswith(b"data:") and not is_whole and (found := line.count(MARK.encode())):
                came.append(time.perf_counter())
                tokens += found
            last = line.strip() or last
        total = time.perf_counter()
        if response.status != 200 or not is_whole or tokens != TOKENS:
            said = last.decode(errors="replace")[:500]
            raise CannotMeasure(f"{door.name} answered {response.status} with {tokens} of {TOKENS} tokens: {said}")
        lasted = came[-1] - came[0]
        return StreamTimes((came[0] - begun) * 1000, (total - begun) * 1000, (TOKENS - 1) / lasted if lasted else 0.0)

    def read_end(self) -> str:
        """The data of the last event: of the hub, the envelope of the whole answer."""
        door = self._door
        self._connection.request("POST", door.path, door.build_body(), door.build_headers())
        events = self._connection.getresponse().read().decode().strip().split("\n\n")
        return events[-1].partition("data: ")[2]


async def ask_once(door: ModelDoor) -> tuple[int, bool]:
    """(status, whether the answer was whole), on a connection of its own."""
    host, _, port = door.host.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        body = door.build_body()
        head = {"Host": door.host, "Connection": "close", "Content-Length": str(len(body)), **door.build_headers()}
        lines = [f"POST {door.path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        status = int((await reader.readline()).split()[1])
        is_whole = False
        while line := await reader.readline():
            is_whole = is_whole or door.end in line
        return status, is_whole
    finally:
        writer.close()


async def ask_at_once(door: ModelDoor, count: int) -> list[tuple[int, bool]]:
    async def ask() -> tuple[int, bool]:
        try:
            return await ask_once(door)
        except (OSError, IndexError, ValueError):
            return 0, False

    return list(await asyncio.gather(*(ask() for _ in range(count))))
