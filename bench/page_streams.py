"""Page streams: what open pages of the console take while nothing happens, and how soon all of them are told of a call.

``python -m bench.page_streams [STREAMS] [PEOPLE]`` measures this alone, in one embedded hub. A browser has one stream for all its
tabs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.hubs import TOOL, _post, run_embedded_hub, run_python
from bench.idle import percent_over, until_it_rests, used_s
from bench.list_streams import read_memory

STREAMS, PEOPLE = 500, 50
TOLD_WITHIN_S = 3.0
MEASURED_S = 20.0
AT_ONCE = 20  # who open theirs at the same time
PATIENCE_S = 60.0


class PageListener(asyncio.Protocol):
    """One stream. ``begun``: it has what a stream begins with; ``told_at``: when it heard of calls last."""

    def __init__(self, host: str, session: str) -> None:
        self._request = f"GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: sessionid={session}\r\n\r\n".encode()
        self.begun = asyncio.get_running_loop().create_future()
        self.told_at = 0.0

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.begun.done():
            if b"retry:" in data:
                self.begun.set_result(None)
            elif b" 200 " not in data[:20]:
                self.begun.set_exception(CannotMeasure(data[:300].decode(errors="replace")))
        if b"calls" in data:
            self.told_at = time.perf_counter()


async def open_streams(url: str, sessions: list[str], count: int) -> list[PageListener]:
    host, loop = urlsplit(url).netloc, asyncio.get_running_loop()
    name, _, port = host.partition(":")
    places = asyncio.Semaphore(AT_ONCE)

    async def open_one(number: int) -> PageListener:
        async with places:
            _, listener = await loop.create_connection(
                lambda: PageListener(host, sessions[number % len(sessions)]), name, int(port)
            )
            await asyncio.wait_for(asyncio.shield(listener.begun), PATIENCE_S)
        return listener

    return list(await asyncio.gather(*(open_one(number) for number in range(count))))


def call_tool(url: str, key: str) -> None:
    arguments = {"sku": "HEADPHONES-ANC", "quantity": 2}
    body = {"request_id": "bench-pages", "actor": {"type": "agent", "id": "bench"}, "arguments": arguments}
    _post(url, f"/api/v1/tools/{TOOL}/invoke", key, body)


async def tell_all(url: str, key: str, listeners: list[PageListener]) -> list[float]:
    """Seconds from the answer of a call until each was told of it."""
    for each in listeners:
        each.told_at = 0.0
    await asyncio.to_thread(call_tool, url, key)
    answered = time.perf_counter()
    while not all(each.told_at for each in listeners):
        if time.perf_counter() > answered + PATIENCE_S:
            raise CannotMeasure("Not every page was told.")
        await asyncio.sleep(0.05)
    return sorted(each.told_at - answered for each in listeners)


def measure(streams: int = STREAMS, people: int = PEOPLE) -> list[list[str]]:
    with run_embedded_hub() as (url, env, pid):
        sessions = json.loads(run_python(env, "-m", "bench.session_setup", str(people)).splitlines()[-1])
        key = json.loads(Path(env["TOOLHUB_DATA_DIR"], "demo-credentials.json").read_text())["api_key"]
        until_it_rests(pid)
        rows, told = asyncio.run(_measure(url, key, sessions, pid, streams))
    print_table(f"{streams:,} open pages of {people:,} people, in one embedded hub", ("", "measured"), rows)
    figure = f"a call is told to all of {streams:,} open pages ≤ {TOLD_WITHIN_S:g} s"
    return [judge_figure(figure, f"{told:.2f} s", reached=told <= TOLD_WITHIN_S)]


async def _measure(url: str, key: str, sessions: list[str], pid: int, streams: int) -> tuple[list[list[str]], float]:
    await asyncio.to_thread(call_tool, url, key)
    before, threads = read_memory(pid)
    begun = time.perf_counter()
    listeners = await open_streams(url, sessions, streams)
    took = time.perf_counter() - begun
    after, later_threads = read_memory(pid)
    await asyncio.sleep(5)
    percent = await asyncio.to_thread(percent_over, pid, MEASURED_S)
    used = used_s(pid)
    times = [await tell_all(url, key, listeners) for _ in range(3)]
    slowest = max(times, key=lambda each: each[-1])
    rows = [
        ["opened within", f"{took:.1f} s"],
        ["memory", f"{before:.0f} → {after:.0f} MiB, {1024 * (after - before) / streams:.0f} KiB each"],
        ["threads", f"{threads} → {later_threads}"],
        ["processor time while nothing happens, of one core", f"{percent:.1f} %"],
        ["told, half of them (slowest of 3 calls)", f"{slowest[len(slowest) // 2]:.2f} s"],
        ["told, all of them (slowest of 3 calls)", f"{slowest[-1]:.2f} s"],
        ["processor time of a call that all are told of", f"{(used_s(pid) - used) / 3:.2f} s"],
    ]
    return rows, slowest[-1]


if __name__ == "__main__":
    sys.exit(run_part(lambda: measure(*map(int, sys.argv[1:3]))))
