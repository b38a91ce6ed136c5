"""Governed calls: what one costs over HTTP in the production shape, one web process and one worker on PostgreSQL and Redis."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import psycopg

from bench import alternatives
from bench.figures import ROOT, CannotMeasure, MeasuredTimes, describe_machine, print_table
from bench.hubs import (
    START_S,
    describe_database,
    find_free_port,
    make_own_database,
    seed_hub,
    split_steps,
    wait_until_it_answers,
)
from invocations.stored_steps import read_stored_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOOL = "sample.tools.echo"  # returns what it gets
BODY = {"actor": {"type": "agent", "id": "bench"}, "arguments": {"text": "x"}}
STEPS = "SELECT steps FROM invocations_invocation ORDER BY id DESC LIMIT %s"
# Longer than between two statements of one transaction.
HELD = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '100 ms'
"""
GOVERNED = "governed call over HTTP"
GOVERNED_MCP = "governed call over MCP"
SLEEPING = "sample.tools.sleeps"
MCP_REVISION = "2026-07-28"
CALLERS = (1, 16, 64)
EACH_ROUND = 10  # calls that cost little
NO_ANSWER = 0  # in place of a status


@dataclass(frozen=True, slots=True)
class ProductionHub:
    base: str
    key: str
    database: str
    env: dict[str, str] = field(default_factory=dict)  # of its processes
    processes: dict[str, int] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)

    def newest_steps(self, count: int) -> list[list[dict[str, Any]]]:
        with psycopg.connect(self.database) as connection:
            return [read_stored_steps(row[0]) for row in connection.execute(STEPS, [count])][::-1]


@contextmanager
def run_production(
    database_url: str, redis_url: str, checkout: Path = ROOT, /, *, kept: bool = False, **settings: str
) -> Iterator[ProductionHub]:
    """Web and worker as processes of their own, everything as `docs/how-to/run-the-production-shape.md` starts it.

    ``kept``: with keeper and upkeep too. What is timed goes without: on two cores they would be timed with it. ``checkout``: the
    checkout that they run from.
    """
    with make_own_database(database_url, checkout=checkout) as env:
        host = f"127.0.0.1:{find_free_port()}"
        env |= {
            "TOOLHUB_REDIS_URL": redis_url,
            "TOOLHUB_BIND": host,
            "TOOLHUB_INSTANCE": env["TOOLHUB_DATA_DIR"],
            "TOOLHUB_SANDBOX_LEVEL": "shared",
        }
        env |= settings
        key = seed_hub(env, checkout=checkout)
        programs = {
            "web": ["manage.py", "serve", "--no-access-log"],
            "worker": ["-m", "celery", "-A", "toolhub", "worker", "--loglevel", "WARNING"],
        }
        if kept:
            programs |= {name: ["manage.py", words] for name, words in {"keeper": "keep", "upkeep": "upkeep"}.items()}
        processes = {}
        logs = {name: Path(env["TOOLHUB_DATA_DIR"], f"{name}.log") for name in programs}
        try:
            for name, words in programs.items():
                with logs[name].open("wb") as output:
                    processes[name] = subprocess.Popen(
                        [sys.executable, *words],
                        cwd=checkout,
                        env=env,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                    )
            wait_until_it_answers(f"http://{host}", processes["web"], logs["web"])
            pids = {name: process.pid for name, process in processes.items()}
            hub = ProductionHub(host, key, env["TOOLHUB_DATABASE_URL"], env, pids, logs)
            _warm(hub)
            yield hub
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _warm(hub: ProductionHub) -> None:
    until = time.monotonic() + START_S
    good = 0
    while good < 20:
        status, _ = RestCaller(hub).call()
        good = good + 1 if status == 200 else 0
        if time.monotonic() > until:
            raise CannotMeasure(f"Calls are not answered: {status}")


class Caller(Protocol):
    """A client that makes one call after the other."""

    def call(self) -> tuple[int, float]:
        """(status, milliseconds)."""


class RestCaller:
    """One connection that is kept, as a client library does."""

    def __init__(self, hub: ProductionHub) -> None:
        self._hub = hub
        self._connection = http.client.HTTPConnection(hub.base, timeout=60)
        self._headers = {"Authorization": f"Bearer {hub.key}", "Content-Type": "application/json"}
        self._number = 0

    def call(self, tool: str = TOOL) -> tuple[int, float]:
        """(status, milliseconds)."""
        self._number += 1
        body = json.dumps(BODY | {"request_id": f"bench-{id(self):x}-{self._number:06}"})
        begun = time.perf_counter()
        self._connection.request("POST", f"/api/v1/tools/{tool}/invoke", body, self._headers)
        response = self._connection.getresponse()
        response.read()
        return response.status, (time.perf_counter() - begun) * 1000


class McpCaller:
    """A client of MCP on one connection that is kept; each call stands for itself, as revision 2026-07-28 has it."""

    def __init__(self, hub: ProductionHub) -> None:
        self._connection = http.client.HTTPConnection(hub.base, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {hub.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MCP_REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": TOOL,
        }
        meta = {
            "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": TOOL, "arguments": BODY["arguments"], "_meta": meta}
        self._body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    def call(self) -> float:
        """Milliseconds, on a connection that is kept; one that the server closed meanwhile is opened again before."""
        try:
            return self._asked()
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            self._connection.close()
            return self._asked()

    def _asked(self) -> float:
        begun = time.perf_counter()
        self._connection.request("POST", "/mcp", self._body, self._headers)
        body = self._connection.getresponse().read()
        took = (time.perf_counter() - begun) * 1000
        answer = json.loads(body)
        if answer.get("result", {}).get("isError", True):
            raise CannotMeasure(f"A call over MCP had no value: {body.decode()[:500]}")
        return took


def measure_load(
    open_caller: Callable[[], Caller], callers: int, seconds: float
) -> tuple[float, MeasuredTimes, Counter[int]]:
    """(calls a second, milliseconds of each, how often which status other than 200 came)."""
    took: list[float] = []
    failed: list[int] = []
    until = time.perf_counter() + seconds

    def work() -> None:
        caller = open_caller()
        while time.perf_counter() < until:
            try:
                status, ms = caller.call()
            except (OSError, http.client.HTTPException):  # no answer; the next call is made on another connection
                failed.append(NO_ANSWER)
                caller = open_caller()
                continue
            took.append(ms)
            if status != 200:
                failed.append(status)

    threads = [threading.Thread(target=work) for _ in range(callers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(took) / (time.perf_counter() - begun), MeasuredTimes(f"{callers} callers", took), Counter(failed)


def compare_alternatives(
    hub: ProductionHub, redis_url: str, rounds: int
) -> tuple[list[MeasuredTimes], list[MeasuredTimes]]:
    """The governed call and what somebody would use instead, in turn: (times of each, parts of the governed call)."""
    caller, client = RestCaller(hub), McpCaller(hub)
    client.call()  # the first finds nothing made yet
    steps: list[list[dict[str, Any]]] = []
    with alternatives.open_alternatives(redis_url) as ways:
        found: dict[str, list[float]] = {name: [] for name in (GOVERNED, GOVERNED_MCP, *ways)}
        for _ in range(rounds):
            for _ in range(EACH_ROUND):
                found[GOVERNED].append(caller.call()[1])
            steps += hub.newest_steps(EACH_ROUND)
            for _ in range(EACH_ROUND):
                found[GOVERNED_MCP].append(client.call())
            for name, ask in ways.items():
                for _ in range(1 if name == alternatives.DOCKER else EACH_ROUND):
                    begun = time.perf_counter()
                    ask()
                    found[name].append((time.perf_counter() - begun) * 1000)
    parts = split_steps(found[GOVERNED], steps)
    return [MeasuredTimes(name, took) for name, took in found.items()], parts


def count_idle_transactions(hub: ProductionHub, callers: int) -> int:
    """While tools run that sleep until they are ended: how many connections are at most in a transaction and idle."""
    threads = [threading.Thread(target=RestCaller(hub).call, args=(SLEEPING,)) for _ in range(callers)]
    for thread in threads:
        thread.start()
    most = 0
    with psycopg.connect(hub.database, autocommit=True) as connection:
        while any(thread.is_alive() for thread in threads):
            row = connection.execute(HELD).fetchone()
            most = max(most, row[0] if row else 0)
            time.sleep(0.01)
    return most


def main() -> None:
    """Only this part of the benchmark, and shorter."""
    url, redis_url = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    print_table("Machine", ("", ""), [*describe_machine(), *describe_database(url)])
    with run_production(url, redis_url) as hub:
        times, parts = compare_alternatives(hub, redis_url, 10)
        for each in (*times, *parts):
            print(each.row())
        for callers in CALLERS:
            rate, took, failed = measure_load(partial(RestCaller, hub), callers, 5)
            print(took.row(f"{rate:.0f}/s", f"{dict(failed) or 'none'} failed"))
        print(count_idle_transactions(hub, 4), "connections idle in a transaction")


if __name__ == "__main__":
    main()
