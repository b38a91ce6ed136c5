"""Embedded calls: what one costs over HTTP where one process is the whole hub, one caller, tools at `fresh`.

``python -m bench.embedded_calls [CHECKOUT]`` measures this alone. With another checkout its hub is measured beside this one's, in turn
(A B B A), so that both have the machine as it is at that time.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import hubs, idle
from bench.figures import ROOT, CannotMeasure, MeasuredTimes, judge_figure, print_table, run_part
from invocations.stored_steps import read_stored_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "sample.tools.echo"  # returns what it gets
ARGUMENTS = {ECHO: {"text": "x"}, hubs.TOOL: {"sku": "HEADPHONES-ANC", "quantity": 2}}
MOST_MS = {ECHO: 20, hubs.TOOL: 30}
LEVEL = "fresh"
EACH_ROUND = 25
WARM_WITHIN_S = 60
STEPS = "SELECT steps FROM invocations_invocation ORDER BY id DESC LIMIT ?"
HEAD = ("milliseconds", "N", "min", "p50", "p95", "hub's processor")


@dataclass(frozen=True, slots=True)
class EmbeddedHub:
    """One hub that is measured. ``used_s``: processor time of its processes while each tool was called."""

    name: str
    base: str
    key: str
    database: Path
    pid: int
    ms: dict[str, list[float]] = field(default_factory=lambda: {tool: [] for tool in ARGUMENTS})
    used_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ARGUMENTS, 0.0))
    steps: dict[str, list[list[dict[str, Any]]]] = field(default_factory=lambda: {tool: [] for tool in ARGUMENTS})

    def measure_round(self, tool: str) -> None:
        """Calls on one connection that is kept, as a client library does."""
        connection = http.client.HTTPConnection(self.base, timeout=60)
        before = idle.used_s(self.pid)
        self.ms[tool] += [self._call(connection, tool) for _ in range(EACH_ROUND)]
        self.used_s[tool] += idle.used_s(self.pid) - before
        self.steps[tool] += self._newest_steps(EACH_ROUND)

    def _call(self, connection: http.client.HTTPConnection, tool: str) -> float:
        body = {
            "actor": {"type": "agent", "id": "bench"},
            "arguments": ARGUMENTS[tool],
            "request_id": f"bench-{time.monotonic_ns()}",
        }
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        begun = time.perf_counter()
        connection.request("POST", f"/api/v1/tools/{tool}/invoke", json.dumps(body), headers)
        answered = connection.getresponse().read()
        took = (time.perf_counter() - begun) * 1000
        if json.loads(answered)["data"] is None:
            raise CannotMeasure(f"The call had no value: {answered.decode()[:500]}")
        return took

    def _newest_steps(self, count: int) -> list[list[dict[str, Any]]]:
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True) as database:
            return [read_stored_steps(json.loads(row[0])) for row in database.execute(STEPS, [count])][::-1]

    def warm(self) -> None:
        """Until both tools answer: the one that was just submitted is tried first. What was measured meanwhile is forgotten."""
        until = time.monotonic() + WARM_WITHIN_S
        for tool in ARGUMENTS:
            while True:
                try:
                    self.measure_round(tool)
                    break
                except CannotMeasure:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.5)
            self.ms[tool].clear()
            self.steps[tool].clear()
            self.used_s[tool] = 0.0

    def row(self, tool: str) -> list[str]:
        cpu = 1000 * self.used_s[tool] / len(self.ms[tool])
        return MeasuredTimes(f"{tool}, {self.name}", self.ms[tool]).row(f"{cpu:.1f}")


@contextmanager
def run_hub(name: str, checkout: Path) -> Iterator[EmbeddedHub]:
    """Started as `make run` does, with the tool beside it that returns what it gets."""
    with hubs.run_embedded_hub(checkout=checkout, TOOLHUB_SANDBOX_LEVEL=LEVEL) as (base, env, pid):
        data = Path(env["TOOLHUB_DATA_DIR"])
        shutil.copytree(ROOT / "tests/tools/sample", Path(env["TOOLHUB_TOOLS_PATH"], "sample"))
        hubs.run_python(env, "-m", "bench.hub_setup", checkout=checkout)
        key = json.loads((data / "demo-credentials.json").read_text())["api_key"]
        hub = EmbeddedHub(name, base.removeprefix("http://"), key, data / "toolhub.sqlite3", pid)
        hub.warm()
        yield hub


def measure_hubs(checkouts: dict[str, Path], calls: int) -> list[EmbeddedHub]:
    """Each hub's calls, in turn with those of the others."""
    with ExitStack() as running:
        measured = [running.enter_context(run_hub(name, checkout)) for name, checkout in checkouts.items()]
        for number in range(max(1, calls // EACH_ROUND)):
            for hub in measured if number % 2 == 0 else measured[::-1]:
                for tool in ARGUMENTS:
                    hub.measure_round(tool)
        return measured


def measure(calls: int = 300, beside: Path | None = None) -> list[list[str]]:
    checkouts = {"this checkout": ROOT} | ({f"{beside}": beside} if beside is not None else {})
    measured = measure_hubs(checkouts, calls)
    print_table(
        f"A governed call over HTTP, embedded hub, {LEVEL}, one caller",
        HEAD,
        [hub.row(tool) for tool in ARGUMENTS for hub in measured],
    )
    for hub in measured:
        for tool in ARGUMENTS:
            parts = hubs.split_steps(hub.ms[tool], hub.steps[tool])
            print_table(f"Where the time of {tool} goes, {hub.name}", HEAD[:-1], [each.row() for each in parts])
    ours = measured[0]
    p50 = {tool: MeasuredTimes(tool, ours.ms[tool]).p50 for tool in ARGUMENTS}
    return [
        judge_figure(
            f"{tool} on an embedded hub, {LEVEL}: p50 ≤ {most} ms", f"{p50[tool]:.1f} ms", reached=p50[tool] <= most
        )
        for tool, most in MOST_MS.items()
    ]


if __name__ == "__main__":
    others = [Path(word).resolve() for word in sys.argv[1:2]]
    sys.exit(run_part(partial(measure, beside=others[0] if others else None)))
