"""List streams: what clients take who only listen for changes of their list of tools, and how soon all are told.

``python -m bench.list_streams [STREAMS] [AGENTS]`` measures this alone: half of the streams with GET (2025-11-25), half with
`subscriptions/listen` (2026-07-28), in one embedded hub. A tool is then paused, which every agent was shown.
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

STREAMS, AGENTS = 2000, 250
TOLD_WITHIN_S = 2.0
MEASURED_S = 20.0
AT_ONCE = 50  # who open theirs at the same time
PATIENCE_S = 60.0
CHANGED = b"notifications/tools/list_changed"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


def write_request(host: str, key: str, *, modern: bool) -> bytes:
    who = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": who}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}) if modern else ""
    headers = {
        "Host": host,
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN if modern else "2025-11-25",
    }
    if modern:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        headers |= {"Mcp-Method": "subscriptions/listen"}
    lines = [f"{'POST' if modern else 'GET'} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", body]).encode()


class Listener(asyncio.Protocol):
    """One stream. ``begun``: it has what a stream begins with; ``told``: when it heard of each change."""

    def __init__(self, request: bytes) -> None:
        self._request, self._rest = request, b""
        self.begun = asyncio.get_running_loop().create_future()
        self.told: list[float] = []

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self.begun.done() and (b"retry:" in self._rest or b"acknowledged" in self._rest):
            self.begun.set_result(None)
        elif not self.begun.done() and b" 200 " not in self._rest[:20]:
            self.begun.set_exception(CannotMeasure(self._rest[:500].decode(errors="replace")))
        *_, self._rest = self._rest.rpartition(b"\n")
        self.told += [time.perf_counter()] * data.count(CHANGED)


async def open_streams(url: str, keys: list[str], count: int) -> list[Listener]:
    host, loop = urlsplit(url).netloc, asyncio.get_running_loop()
    name, _, port = host.partition(":")
    places = asyncio.Semaphore(AT_ONCE)

    async def open_one(number: int) -> Listener:
        request = write_request(host, keys[number % len(keys)], modern=bool(number % 2))
        async with places:
            _, listener = await loop.create_connection(lambda: Listener(request), name, int(port))
            await asyncio.wait_for(asyncio.shield(listener.begun), PATIENCE_S)
        return listener

    return list(await asyncio.gather(*(open_one(number) for number in range(count))))


async def tell_all(url: str, key: str, listeners: list[Listener], what: str) -> list[float]:
    """Seconds from the answer to who changed it until each was told."""
    before = [len(each.told) for each in listeners]
    body = {"reason": "To measure how soon it is told."}
    await asyncio.to_thread(_post, url, f"/api/v1/installations/{TOOL}/{what}", key, body)
    changed, until = time.perf_counter(), time.perf_counter() + PATIENCE_S
    while any(len(each.told) == was for each, was in zip(listeners, before, strict=True)):
        if time.perf_counter() > until:
            raise CannotMeasure("Not every stream was told.")
        await asyncio.sleep(0.05)
    return sorted(each.told[was] - changed for each, was in zip(listeners, before, strict=True))


def read_memory(pid: int) -> tuple[float, int]:
    """MiB of the hub's process, and its threads."""
    said = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(said["VmRSS"].split()[0]) / 1024, int(said["Threads"])


def measure(streams: int = STREAMS, agents: int = AGENTS) -> list[list[str]]:
    with run_embedded_hub() as (url, env, pid):
        *keys, by_hand = json.loads(run_python(env, "-m", "bench.list_stream_setup", str(agents)).splitlines()[-1])
        until_it_rests(pid)
        rows, told = asyncio.run(_measure(url, keys, by_hand, pid, streams))
    what = f"{streams:,} streams of {agents:,} agents that listen for changes, in one embedded hub"
    print_table(what, ("", "measured"), rows)
    figure = f"a change is told to all of {streams:,} streams of {agents:,} agents ≤ {TOLD_WITHIN_S:g} s"
    return [judge_figure(figure, f"{told:.2f} s", reached=told <= TOLD_WITHIN_S)]


async def _measure(url: str, keys: list[str], by_hand: str, pid: int, streams: int) -> tuple[list[list[str]], float]:
    await open_streams(url, keys[:1], 2)  # what the first one imports and starts
    before, threads = read_memory(pid)
    begun, used = time.perf_counter(), used_s(pid)
    listeners = await open_streams(url, keys, streams)
    took, cost = time.perf_counter() - begun, used_s(pid) - used
    after, later_threads = read_memory(pid)
    await asyncio.sleep(5)
    percent = await asyncio.to_thread(percent_over, pid, MEASURED_S)
    times, costs = [], []
    for what in ("pause", "resume", "pause"):
        used = used_s(pid)
        times.append(await tell_all(url, by_hand, listeners, what))
        costs.append(used_s(pid) - used)
        await asyncio.sleep(3)
    slowest = max(times, key=lambda each: each[-1])
    rows = [
        ["opened within", f"{took:.1f} s, {cost:.1f} s of a core"],
        ["memory", f"{before:.0f} → {after:.0f} MiB, {1024 * (after - before) / streams:.0f} KiB each"],
        ["threads", f"{threads} → {later_threads}"],
        ["processor time while nothing happens, of one core", f"{percent:.1f} %"],
        ["told, half of them (slowest of 3 changes)", f"{slowest[len(slowest) // 2]:.2f} s"],
        ["told, all of them (slowest of 3 changes)", f"{slowest[-1]:.2f} s"],
        ["processor time of a change that is told to all", f"{max(costs):.1f} s"],
    ]
    return rows, slowest[-1]


if __name__ == "__main__":
    sys.exit(run_part(lambda: measure(*map(int, sys.argv[1:3]))))
