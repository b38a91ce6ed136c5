"""Calls of one key: is a call with one key made once, however many callers make it at the same time, and does waiting for it
cost no threads?
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.crash.plan import KEYED, ONCE
from tests.crash.world import World, some_key
from tests.e2e.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

SECONDS = 5.0  # the tool runs for so long
PLACES = 16  # TOOLHUB_WEB_THREADS: requests that are worked on at a time
BESIDE = 16  # threads of libraries: the pool of connections, the ear for wake-ups, spans


@pytest.mark.req("SPEC-9", "TOOLS-20", "SVC-4")
@pytest.mark.parametrize("callers", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_callers_with_one_key_get_one_run_and_one_answer(callers: int, world: World) -> None:
    world.worker()
    key = some_key()

    answers, most_threads = asyncio.run(ask_at_once(world, key, callers))

    good = [answer for answer in answers if answer.status == 200]
    conflicts = [answer for answer in answers if answer.status == 409]
    assert len(good) + len(conflicts) == callers, [answer for answer in answers if answer.status not in (200, 409)][:1]
    assert len(good) >= callers / 2, "who says that it waits is not refused"
    assert {answer.body for answer in good} == {good[0].body}
    assert {answer.reason for answer in conflicts} <= {"IDEMPOTENCY.IN_PROGRESS"}
    assert world.calls_of_key(key) == [good[0].call_id]
    world.check_fate(good[0], ONCE, KEYED)
    assert most_threads <= PLACES + BESIDE


async def ask_at_once(world: World, key: str, callers: int) -> tuple[list[Answer], int]:
    """All their answers, and the most threads that the web process had meanwhile. Every tenth does not say that it waits."""
    assert world.hub.web is not None
    status = Path("/proc", str(world.hub.web.pid), "status")
    asking = [
        asyncio.create_task(ask(world, key, prefer="" if number % 10 == 9 else "wait=50")) for number in range(callers)
    ]
    most = 0
    while not all(task.done() for task in asking):
        most = max(most, threads_of(status))
        await asyncio.sleep(0.05)
    return [task.result() for task in asking], most


def threads_of(status: Path) -> int:
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("Threads:"))
    return int(line.split()[1])


async def ask(world: World, key: str, *, prefer: str) -> Answer:
    """One request on a connection of its own, without a thread of its own."""
    parts = urlsplit(world.hub.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    body = json.dumps(
        {
            "request_id": "one-of-many-callers",
            "actor": {"type": "agent", "id": world.agent.name},
            "arguments": {"store": world.store.url, "seconds": SECONDS},
        }
    )
    head = [
        f"POST /api/v1/tools/sample.tools.{KEYED}/invoke HTTP/1.0",
        f"Host: {parts.netloc}",
        f"Authorization: Bearer {world.agent.key}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"Idempotency-Key: {key}",
        *([f"Prefer: {prefer}"] if prefer else []),
    ]
    writer.write("\r\n".join([*head, "", body]).encode())
    said, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = said.decode().split("\r\n")
    return Answer(int(first.split()[1]), fields(lines), content)


def fields(lines: Sequence[str]) -> dict[str, str]:
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
