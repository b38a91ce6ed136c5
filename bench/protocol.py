"""What does a governed call cost over HTTP in the production shape: one web process and one worker on PostgreSQL and Redis?"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from bench.figures import ROOT, CannotMeasure, Times
from bench.hubs import START_S, free_port, manage, own_database, parts_of, wait_until_it_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOL = "sample.tools.echo"  # returns what it gets
BODY = {"actor": {"type": "agent", "id": "bench"}, "arguments": {"text": "x"}}
STEPS = "SELECT steps FROM invocations_invocation ORDER BY id DESC LIMIT %s"
IDLE = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%%'"


@dataclass(frozen=True, slots=True)
class Hub:
    base: str
    key: str
    database: str
    env: dict[str, str] = field(default_factory=dict)  # of its processes

    def newest_steps(self, count: int) -> list[list[dict[str, Any]]]:
        with psycopg.connect(self.database) as connection:
            return [row[0] for row in connection.execute(STEPS, [count])][::-1]


@contextmanager
def production(database_url: str, redis_url: str, **settings: str) -> Iterator[Hub]:
    """Web and worker as processes of their own, everything as `docs/how-to/run-the-production-shape.md` starts it."""
    with own_database(database_url) as env:
        host = f"127.0.0.1:{free_port()}"
        env |= {
            "TOOLHUB_REDIS_URL": redis_url,
            "TOOLHUB_BIND": host,
            "TOOLHUB_INSTANCE": env["TOOLHUB_DATA_DIR"],
            "TOOLHUB_SANDBOX_LEVEL": "shared",
        }
        env |= settings
        manage(env, "manage.py", "migrate", "--no-input")
        shutil.copytree(ROOT / "tests/tools/sample", Path(env["TOOLHUB_TOOLS_PATH"], "sample"))
        said = manage(env, "manage.py", "seed_demo")
        manage(env, "-m", "bench.arrange")
        key = said.split("API key")[1].split()[0]
        port = host.partition(":")[2]
        web = ["uvicorn", "toolhub.asgi:application", "--host", "127.0.0.1", "--port", port, "--no-access-log"]
        worker = ["celery", "-A", "toolhub", "worker", "--loglevel", "WARNING"]
        processes = []
        logs = []
        try:
            for name, words in {"web": web, "worker": worker}.items():
                logs.append(log := Path(env["TOOLHUB_DATA_DIR"], f"{name}.log"))
                with log.open("wb") as output:
                    processes.append(
                        subprocess.Popen(
                            [sys.executable, "-m", *words],
                            cwd=ROOT,
                            env=env,
                            stdin=subprocess.DEVNULL,
                            stdout=output,
                            stderr=subprocess.STDOUT,
                        )
                    )
            wait_until_it_answers(f"http://{host}", processes[0], logs[0])
            hub = Hub(host, key, env["TOOLHUB_DATABASE_URL"], env)
            _warm(hub)
            yield hub
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _warm(hub: Hub) -> None:
    until = time.monotonic() + START_S
    good = 0
    while good < 20:
        status, _ = Caller(hub).call()
        good = good + 1 if status == 200 else 0
        if time.monotonic() > until:
            raise CannotMeasure(f"Calls are not answered: {status}")


class Caller:
    """One connection that is kept, as a client library does."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._connection = http.client.HTTPConnection(hub.base, timeout=60)
        self._headers = {"Authorization": f"Bearer {hub.key}", "Content-Type": "application/json"}
        self._number = 0

    def call(self) -> tuple[int, float]:
        """(status, milliseconds)."""
        self._number += 1
        body = json.dumps(BODY | {"request_id": f"bench-{id(self):x}-{self._number:06}"})
        begun = time.perf_counter()
        self._connection.request("POST", f"/api/v1/tools/{TOOL}/invoke", body, self._headers)
        response = self._connection.getresponse()
        response.read()
        return response.status, (time.perf_counter() - begun) * 1000


def load(hub: Hub, callers: int, seconds: float) -> tuple[float, Times, int]:
    """(calls a second, milliseconds of each, failures)."""
    took: list[float] = []
    failed: list[int] = []
    until = time.perf_counter() + seconds

    def work() -> None:
        caller = Caller(hub)
        while time.perf_counter() < until:
            status, ms = caller.call()
            took.append(ms)
            if status != 200:
                failed.append(status)

    threads = [threading.Thread(target=work) for _ in range(callers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(took) / (time.perf_counter() - begun), Times(f"{callers} callers", took), len(failed)


def one_caller(hub: Hub, count: int) -> tuple[Times, list[Times]]:
    """One after the other: the whole call, and its parts by the steps that the hub has recorded."""
    caller = Caller(hub)
    took = [caller.call()[1] for _ in range(count)]
    return Times("governed call over HTTP", took), parts_of(took, hub.newest_steps(count))


def main() -> None:
    url, redis_url = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    with production(url, redis_url) as hub:
        whole, parts = one_caller(hub, 100)
        for each in (whole, *parts):
            print(each.row())
        for callers in (1, 16, 64):
            rate, times, failures = load(hub, callers, 10)
            print(times.row(f"{rate:.0f}/s", f"{failures} failed"))


if __name__ == "__main__":
    main()
