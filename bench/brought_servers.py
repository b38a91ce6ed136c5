"""Brought servers: the cost of a call of an MCP server of others: started ahead of it, forked after its import, started for the call.

The server is really installed, as for any tool, and called through boxes that stand ready. At ``single`` it is imported in the call,
which is what starting it for each call costs where the box costs nothing. Between two calls there is time for the next server to
begin; one that may read files begins in the call.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure, MeasuredTimes
from bench.large_dependencies import install_dependencies
from bench.sandbox_harness import BenchTool, open_sandbox, weigh_waiting_boxes
from invocations.sandbox.base import Limits, Profile, RunStatus
from unitools.capabilities import Capabilities
from unitools.mcp_listings import Listing

if TYPE_CHECKING:
    from invocations.sandbox.base import RunOutcome
    from invocations.sandbox.docker import DockerSandbox

PACKAGE = "mcp-server-time==2026.10.19"
START = {"script": "mcp-server-time", "package": "mcp-server-time"}
ASKS = {"tool": "get_current_time", "structured": True}
ARGUMENTS = json.dumps({"timezone": "Europe/Berlin"}).encode()
LIMITS = Limits(wall_ms=20_000)
FORKED = Capabilities.from_json({"fs": [{"path": "/data/none", "actions": ["read"]}]})
WAYS = {
    "started ahead, fresh": Profile(LIMITS, isolation="fresh"),
    "started ahead, shared": Profile(LIMITS, isolation="shared"),
    "forked after import, fresh": Profile(LIMITS, FORKED, isolation="fresh"),
    "forked after import, shared": Profile(LIMITS, FORKED, isolation="shared"),
    "imported in the call, single": Profile(LIMITS, isolation="single"),
}
PAUSE_S = 0.25


def _run(where: DockerSandbox, tool: BenchTool, profile: Profile, *, asks: dict[str, object] = ASKS) -> RunOutcome:
    outcome = where.run(profile, tool.call(arguments=ARGUMENTS if asks else b"{}", server=START, asks=asks))
    if outcome.status is not RunStatus.OK or outcome.level != profile.isolation:
        raise CannotMeasure(f"The server's call ended as {outcome.status} at {outcome.level}: {outcome.error_message}")
    return outcome


def measure_servers(rounds: int) -> tuple[list[MeasuredTimes], float]:
    """A row for each way, interleaved; the first round loads the boxes and does not count. And the MB of the largest kept box."""
    with install_dependencies(PACKAGE) as place, open_sandbox() as where:
        listed = _run(where, BenchTool.of_server(b"{}", place), WAYS["imported in the call, single"], asks={}).value
        tool = BenchTool.of_server(Listing.from_json(listed).to_bytes(), place)
        found: dict[str, list[float]] = {name: [] for name in WAYS}
        for number in range(rounds + 1):
            for name, profile in WAYS.items():
                time.sleep(PAUSE_S)
                begun = time.perf_counter()
                outcome = _run(where, tool, profile)
                if number:
                    found[name].append((time.perf_counter() - begun) * 1000)
                    if (outcome.waited_ms is None) == name.startswith("started ahead"):
                        raise CannotMeasure(f"A call was not {name}.")
        held = weigh_waiting_boxes(where)
    return [MeasuredTimes(name, times) for name, times in found.items()], max(held)
