"""Brought servers: the cost of a call of an MCP server of others, forked after its import and started for the call.

The server is really installed, as for any tool, and called through boxes that stand ready. At ``single`` it is imported in the call,
which is what starting it for each call costs where the box costs nothing.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from bench.figures import CannotMeasure, MeasuredTimes
from bench.large_dependencies import install_dependencies
from bench.sandbox_harness import BenchTool, open_sandbox
from invocations.sandbox.base import Limits, Profile, RunStatus

if TYPE_CHECKING:
    from invocations.sandbox.docker import DockerSandbox

PACKAGE = "mcp-server-time==2026.10.19"
START = {"script": "mcp-server-time", "package": "mcp-server-time"}
ASKS = {"tool": "get_current_time", "structured": True}
ARGUMENTS = json.dumps({"timezone": "Europe/Berlin"}).encode()
LEVELS = ("fresh", "shared", "single")
LIMITS = Limits(wall_ms=20_000)


def _call(where: DockerSandbox, tool: BenchTool, level: str) -> None:
    call = tool.call(arguments=ARGUMENTS, server=START, asks=ASKS)
    outcome = where.run(Profile(LIMITS, isolation=level), call)
    if outcome.status is not RunStatus.OK or outcome.level != level:
        raise CannotMeasure(f"The server's call ended as {outcome.status} at {outcome.level}: {outcome.error_message}")


def measure_servers(rounds: int) -> list[MeasuredTimes]:
    """A row for each level, interleaved; the first round loads the boxes and does not count."""
    with install_dependencies(PACKAGE) as place, open_sandbox() as where:
        tool = BenchTool.of("", place)
        found: dict[str, list[float]] = {level: [] for level in LEVELS}
        for number in range(rounds + 1):
            for level in LEVELS:
                begun = time.perf_counter()
                _call(where, tool, level)
                if number:
                    found[level].append((time.perf_counter() - begun) * 1000)
    how = dict.fromkeys(LEVELS, "forked after import") | {"single": "imported in the call"}
    return [MeasuredTimes(f"{how[level]}, {level}", times) for level, times in found.items()]
