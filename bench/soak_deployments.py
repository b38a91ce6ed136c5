"""Shapes that are soaked: the embedded hub and the production shape; what they hold, what they log, and an operator's work on keys."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis

from bench.figures import ROOT, CannotMeasure
from bench.governed_calls import run_production
from bench.hubs import run_embedded_hub

if TYPE_CHECKING:
    from collections.abc import Iterator

EMBEDDED, PRODUCTION = "embedded", "production"
SETTINGS: dict[str, Any] = {"TOOLHUB_RATE_REFUSED_CALLS": "0", "TOOLHUB_LOG_LEVEL": "WARNING"}
OWN_REDIS = "/11"  # the number of a database that nobody else uses
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
FAULT = re.compile(r"\b(ERROR|CRITICAL)\b|^Traceback|^\w+(\.\w+)*(Error|Exception)\b")
# In turn, each a process of its own beside the hub's, as an operator has it. Exit status 0 is what is right.
UPKEEP = (
    ("verify_log",),
    ("rotate_log_key",),
    ("verify_log",),
    ("rotate_keys",),
    ("rotate_log_key", "--retire"),
    ("rotate_keys", "--forget"),
)


@dataclass(frozen=True, slots=True)
class SoakDeployment:
    """A hub that is soaked: its address as host:port, and where its data and logs are."""

    name: str
    base: str
    env: dict[str, str]
    processes: dict[str, int]
    logs: dict[str, Path]

    def ask(self, query: str) -> int:
        """The first value of the first row."""
        if url := self.env.get("TOOLHUB_DATABASE_URL"):
            with psycopg.connect(url) as connection:
                row = connection.execute(query).fetchone()
        else:
            path = Path(self.env["TOOLHUB_DATA_DIR"], "toolhub.sqlite3")
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
                row = database.execute(query).fetchone()
        if row is None:
            raise CannotMeasure(f"There is no row of {query}")
        return int(row[0])

    def look(self) -> dict[str, float]:
        """Sizes of all processes (MiB, threads, descriptors), and what they hold elsewhere."""
        found: dict[str, float] = {}
        for name, pid in self.processes.items():
            found |= {f"{name} {unit}": value for unit, value in measure_process(pid, name).items()}
        if self.name == PRODUCTION:
            with redis.Redis.from_url(self.env["TOOLHUB_REDIS_URL"]) as client:
                found["Redis keys"] = int(client.dbsize())
            found["connections"] = self.ask(CONNECTIONS)
        return found

    def fault_lines(self) -> list[str]:
        """Lines of the logs that name a fault: none was caused, so each is one too many."""
        return [
            f"{name}: {line}"
            for name, path in self.logs.items()
            for line in path.read_text(errors="replace").splitlines()
            if FAULT.search(line)
        ]


def measure_process(pid: int, name: str) -> dict[str, float]:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  only how many
    except OSError:
        raise CannotMeasure(f"The process {name} has ended.") from None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if "VmRSS" not in fields:  # what is left of a process until its parent has heard of its end
        raise CannotMeasure(f"The process {name} has ended.")
    return {
        "MiB": int(fields["VmRSS"].split()[0]) / 1024,
        "threads": int(fields["Threads"]),
        "files": descriptors,
    }


@contextmanager
def open_deployment(name: str) -> Iterator[SoakDeployment]:
    if name == EMBEDDED:
        with run_embedded_hub(**SETTINGS) as (address, env, pid):
            shutil.copytree(ROOT / "tests/tools/sample", Path(env["TOOLHUB_TOOLS_PATH"], "sample"))
            log = Path(env["TOOLHUB_DATA_DIR"], "bench.log")
            yield SoakDeployment(name, urlsplit(address).netloc, env, {"hub": pid}, {"hub": log})
        return
    database, broker = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    own_broker = urlunsplit(urlsplit(broker)._replace(path=OWN_REDIS))
    with run_production(database, own_broker, kept=True, **SETTINGS) as hub:
        yield SoakDeployment(name, hub.base, hub.env, hub.processes, hub.logs)


@dataclass(slots=True)
class SoakUpkeep:
    """What operators do with keys and logs while calls go on: command by command, until it is told to stop."""

    shape: SoakDeployment
    every_s: float
    chance: random.Random
    done: int = 0
    wrong: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.wait(self.every_s * self.chance.uniform(0.5, 1.5)):
                self.command(*UPKEEP[self.done % len(UPKEEP)])
                self.done += 1
        except Exception as error:  # noqa: BLE001  the thread would end, and nobody hear of it
            self.wrong.append(f"the upkeep ended after {self.done} commands: {error!r}")

    def command(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=self.shape.env, capture_output=True, text=True
        )
        if done.returncode:
            self.wrong.append(f"{' '.join(words)}: exit status {done.returncode}: {done.stdout}{done.stderr}")


@contextmanager
def run_upkeep(shape: SoakDeployment, every_s: float, seed: int) -> Iterator[SoakUpkeep]:
    """Upkeep for as long as the block lasts."""
    stop, upkeep = threading.Event(), SoakUpkeep(shape, every_s, random.Random(seed))
    thread = threading.Thread(target=upkeep.run, args=(stop,))
    thread.start()
    try:
        yield upkeep
    finally:
        stop.set()
        thread.join()


def wait_for_seals(shape: SoakDeployment, patience_s: float = 120) -> int:
    """How many facts are still not sealed when all had time to be."""
    until = time.monotonic() + patience_s
    while (left := shape.ask("SELECT count(*) FROM evidence_pending")) and time.monotonic() < until:
        time.sleep(1)
    return left
