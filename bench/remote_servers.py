"""Remote servers: what a call of an MCP server somewhere else costs beyond the call itself.

One server of the official SDK, behind TLS on loopback, is called by the SDK's own client, which connects for each call as the gate
does, and by a box through the gate, with the list held before and without.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))  # the servers are those of the tests

from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bench.figures import CannotMeasure, MeasuredTimes
from bench.sandbox_harness import BenchTool, open_sandbox
from invocations.sandbox.base import Limits, Profile, RunStatus
from invocations.sandbox.egress import EgressGate
from tests.egress.remote_servers import TOKEN, serving_remote
from tests.egress.world import PUBLIC, Authority, Names
from unitools.capabilities import Capabilities
from unitools.command.remote_servers import list_tools
from unitools.mcp_http import MODERN

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.docker import DockerSandbox
    from tests.egress.remote_servers import RemoteServer

HOST = "mcp.example.org"
TOOL = "Get-Item"
ARGUMENTS = {"item": "a"}
LIMITS = Limits(wall_ms=20_000)
SENT = {"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}
CLIENT, CALLED, HELD = "the SDK's client", "box and gate", "box and gate, list held first"


def measure_remotes(rounds: int) -> tuple[list[MeasuredTimes], int]:
    """A row for each way, interleaved; and how many requests a call by the gate takes. The first round loads the box."""
    with tempfile.TemporaryDirectory() as place:
        authority, names = Authority(Path(place)), Names()
        names.say(HOST, [PUBLIC])
        os.environ["SSL_CERT_FILE"] = str(authority.roots)
        gate = EgressGate([f"{PUBLIC}/32"], resolve=names, ca_file=authority.roots)
        try:
            with (
                serving_remote(authority.server_context(HOST, "localhost")) as remote,
                open_sandbox(gate=gate) as where,
            ):
                return _measure(remote, where, rounds)
        finally:
            gate.close()


def _measure(remote: RemoteServer, where: DockerSandbox, rounds: int) -> tuple[list[MeasuredTimes], int]:
    listing = list_tools(f"https://localhost:{remote.port}/mcp", [("Authorization", f"Bearer {TOKEN}")])
    plain: dict[str, Any] = {"tool": TOOL, "structured": True}
    held = plain | {"entry": listing.entry_digest(TOOL), "listing": listing.digest}
    tool = BenchTool.of("")
    ways: dict[str, Callable[[], None]] = {
        CLIENT: lambda: asyncio.run(_ask(remote.port)),
        CALLED: lambda: _call(where, tool, remote.port, plain),
        HELD: lambda: _call(where, tool, remote.port, held),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, ask in ways.items():
            begun = time.perf_counter()
            ask()
            if number:
                found[way].append((time.perf_counter() - begun) * 1000)
    remote.heard.clear()
    ways[CALLED]()
    return [MeasuredTimes(way, times) for way, times in found.items()], len(remote.heard)


async def _ask(port: int) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers) as web:
        transport = streamable_http_client(f"https://localhost:{port}/mcp", http_client=web)
        async with Client(transport, mode=MODERN) as client:
            result = await client.call_tool(TOOL, ARGUMENTS)
    if result.is_error:
        raise CannotMeasure("The server's call failed.")


def _call(where: DockerSandbox, tool: BenchTool, port: int, asks: dict[str, Any]) -> None:
    remote = {"url": f"https://{HOST}:{port}/mcp", "credentials": [SENT], "listing": "tool", "revision": MODERN}
    net = Capabilities.from_json({"net": [{"host": HOST, "port": port, "methods": ["POST"]}]})
    call = tool.call(arguments=json.dumps(ARGUMENTS).encode(), remote=remote, asks=asks, secrets={"TOKEN": TOKEN})
    outcome = where.run(Profile(LIMITS, net, isolation="fresh"), call)
    if outcome.status is not RunStatus.OK:
        raise CannotMeasure(f"The call ended as {outcome.status}: {outcome.error_message}")
