"""Streams through the gate: does a connection that always has something to say let the others have their turn?"""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import streams
from invocations.sandbox.egress.request_body import SmallChunkAllowance, stream_body
from invocations.sandbox.egress.streams import PIECE, EgressStream, ReadPace, TlsStream
from tests.egress.world import HOST, WAIT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.egress.world import Authority

pytestmark = pytest.mark.attack
LAST = b"0\r\n\r\n"
CHUNKS = (b"100\r\n" + b"x" * 256 + b"\r\n") * 500 + LAST


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The first can hold much that nobody has read."""
    here, there = socket.socketpair()
    with here, there:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        yield here, there


@pytest.mark.req("TOOLS-16")
@pytest.mark.parametrize(
    ("body", "length"), [(b"x" * 2 * PIECE, 2 * PIECE), (CHUNKS, None)], ids=["by its length", "in chunks"]
)
def test_however_much_waits_others_have_their_turn_after_each_piece(
    body: bytes, length: int | None, ends: tuple[socket.socket, socket.socket]
) -> None:
    here, there = ends
    here.setblocking(False)
    assert here.send(body) == len(body)  # all of it is there before anything is read
    turns: list[str] = []

    async def read() -> None:
        nonlocal turns
        async for piece in stream_body(EgressStream(there, ReadPace(1000)), length, SmallChunkAllowance(1000)):
            turns += ["piece"] * (piece != LAST)
        turns.append("end")

    async def others() -> None:
        while "end" not in turns:
            turns.append("other")
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(read(), others())

    asyncio.run(both())

    assert turns.count("piece") >= 2
    assert ("piece", "piece") not in pairwise(turns)


@pytest.mark.req("TOOLS-16")
def test_who_sends_crumbs_waits_until_more_have_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = 1000.0, []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(streams, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(streams, "time", SimpleNamespace(monotonic=lambda: now))
    pace = ReadPace(4)

    async def turns(count: int) -> list[float]:
        waited.clear()
        for _ in range(count):
            await pace.turn()
        return list(waited)

    assert asyncio.run(turns(7)) == [0, 0, 0, 0, 0.25, 0.5, 0.75]
    now += 0.75
    assert asyncio.run(turns(1)) == [0.25]
    now += 100
    assert asyncio.run(turns(5)) == [0, 0, 0, 0, 0.25]


@pytest.mark.req("SVC-6", "TOOLS-16")
def test_an_answer_in_parts_is_read_though_the_rest_of_the_request_is_not_taken(
    ends: tuple[socket.socket, socket.socket], authority: Authority
) -> None:
    """A service that has seen enough says so and reads no further; the request stays half sent."""
    here, there = ends

    async def converse() -> bytes:
        stream = TlsStream(here, ReadPace(1000), authority.client_context(), HOST)
        context = authority.server_context(HOST)
        shaking = asyncio.to_thread(context.wrap_socket, there, server_side=True)
        service, _ = await asyncio.gather(shaking, stream.open())
        with service:
            sending = asyncio.ensure_future(stream.write(b"x" * (16 << 20)))
            try:
                service.sendall(b"first")
                found = await stream.read()
                reading = asyncio.ensure_future(stream.read())
                await asyncio.sleep(0)
                service.sendall(b" second")
                async with asyncio.timeout(WAIT_S):
                    found += await reading
                assert not sending.done()
            finally:
                sending.cancel()
                await asyncio.gather(sending, return_exceptions=True)
        return found

    assert asyncio.run(converse()) == b"first second"
