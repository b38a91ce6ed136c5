"""Redis outage: what callers notice when Redis is away for a minute.

``python3 -m scripts.provision measure bench.redis_outage [SECONDS]``: web, worker, keeper and upkeep on PostgreSQL and on a Redis of
their own, and 16 callers before it is stopped, while it is away and after it is back. No call may be refused for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.governed_calls import RestCaller, measure_load, run_production
from bench.hubs import describe_database, find_free_port
from bench.soak_deployments import SETTINGS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from bench.figures import MeasuredTimes

CALLERS, AWAY_S, WITH_S = 16, 60.0, 20.0
BEGINS_S = 10.0


class RedisServer:
    """A Redis that is stopped and begun again at one address."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which(os.environ.get("TOOLHUB_TEST_REDIS_SERVER", "redis-server"))
        if program is None:
            raise CannotMeasure("There is no redis-server. Type:  sudo apt-get install redis-server")
        self.port = find_free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._command = [program, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        until = time.monotonic() + BEGINS_S
        while time.monotonic() < until:
            with suppress(redis.ConnectionError), redis.Redis.from_url(self.url) as client:
                client.ping()
                return
            time.sleep(0.05)
        raise CannotMeasure("Redis does not answer.")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def _run_redis() -> Iterator[RedisServer]:
    with tempfile.TemporaryDirectory(prefix="toolhub-bench-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def measure_outage(database_url: str, away_s: float) -> list[tuple[str, float, MeasuredTimes, Counter[int]]]:
    """(when, calls a second, milliseconds of each, how often which status other than 200 came)."""
    found = []
    with _run_redis() as server, run_production(database_url, server.url, kept=True, **SETTINGS) as hub:
        for when, seconds in (("before", WITH_S), ("while Redis is away", away_s), ("after", WITH_S)):
            if when == "while Redis is away":
                server.stop()
            elif when == "after":
                server.start()
            found.append((when, *measure_load(partial(RestCaller, hub), CALLERS, seconds)))
    return found


def measure(away_s: float) -> list[list[str]]:
    verdicts = []
    for when, rate, times, refused in measure_outage(os.environ["TOOLHUB_TEST_DATABASE_URL"], away_s):
        said = f"{rate:.0f}/s, p50 {times.p50:.0f} ms, p95 {times.p95:.0f} ms"
        print_table(when, ("", ""), [(said, f"{len(times.ms)} calls")])
        verdicts.append(
            judge_figure(f"{CALLERS} callers {when}: none refused", str(dict(refused) or 0), reached=not refused)
        )
    return verdicts


if __name__ == "__main__":
    asked_s = float(sys.argv[1]) if len(sys.argv) > 1 else AWAY_S
    database = os.environ.get("TOOLHUB_TEST_DATABASE_URL", "")
    sys.exit(run_part(lambda: measure(asked_s), describe_services=lambda: describe_database(database)))
