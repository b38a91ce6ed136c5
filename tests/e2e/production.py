"""The production shape: how does a test run a hub in the production shape: web, worker, PostgreSQL and Redis, each of which it
may stop?
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg

from kernel.ids import decode
from kernel.names import QUEUE_INVOCATIONS, RUN_INVOCATION
from scripts.provision.processes import free_port
from tests.e2e.conftest import OPEN_BEGINS, RUNNING, TOOLS_PATH, UNPAIRED, Credentials
from tests.e2e.processes import Process, clean_environment, python, run, until
from tests.e2e.services import Line, OwnRedis, own_database
from tests.e2e.wire import Agent, answers, boxes
from tests.support.migrated_databases import find_migrated_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(slots=True)
class Production:
    """A hub in the production shape, reached through lines that a test may cut."""

    folder: Path
    env: dict[str, str]
    database_url: str
    database: Line
    redis: OwnRedis
    credentials: Credentials = field(default_factory=lambda: Credentials(""))
    web: Process | None = None
    worker: Process | None = None
    worker_settings: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{self.env['TOOLHUB_BIND']}"

    @property
    def agent(self) -> Agent:
        return Agent(self.url, self.credentials.key)

    def count(self, query: str, *values: object) -> int:
        """Asked of the server itself, whatever happens to the line."""
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute(query, values).fetchone()
        assert row
        return int(row[0])

    def boxes(self) -> list[str]:
        return boxes(self.env["TOOLHUB_INSTANCE"])

    def until_it_runs(self) -> None:
        """Wait until a worker has taken the one call that there is."""
        until(lambda: self.count(RUNNING) == 1, "the call runs")

    def start_web(self) -> None:
        self.web = Process(python("manage.py", "serve"), self.env, self.folder / "web.log")
        self.web.wait_for(lambda: answers(f"{self.url}/readyz"), "the web process is ready")

    def use_worker(self, **settings: str) -> Process:
        """See that a worker with these settings beside the usual ones runs, and no other."""
        if self.worker is not None and self.worker.runs:
            if settings == self.worker_settings:
                return self.worker
            self.worker.stop()
        worker = self.begin_worker(**settings)
        said = (" ready.", "The notifications of PostgreSQL are heard")
        worker.wait_for(lambda: all(each in worker.said() for each in said), "the worker is ready")
        return worker

    def begin_worker(self, **settings: str) -> Process:
        """Start one, and wait for nothing."""
        command = python("-m", "celery", "-A", "toolhub", "worker", "--loglevel", "INFO")
        self.worker, self.worker_settings = Process(command, self.env | settings, self.folder / "worker.log"), settings
        return self.worker

    def ring_again(self, call_id: str) -> None:
        """Deliver the message of a call once more, as a broker may, and see that a worker has dealt with it."""
        message = json.dumps({"invocation_id": str(decode("inv", call_id))})
        options = ("--kwargs", message, "--queue", QUEUE_INVOCATIONS)
        task = run(python("-m", "celery", "-A", "toolhub", "call", RUN_INVOCATION, *options), self.env).strip()
        worker = self.use_worker()
        worker.wait_for(lambda: f"{RUN_INVOCATION}[{task}] succeeded" in worker.said(), "the message was dealt with")


ARRANGE = ("-m", "tests.e2e.arrange")


@dataclass(frozen=True, slots=True)
class Arranged:
    """What a hub is before it is started: its database, the folder of its keys, and what was said when it was made."""

    database_url: str = ""
    folder: Path | None = None
    said: str = ""


@cache
def arranged() -> Arranged:
    """A hub with the sample tools, made once in a run of the tests and never started: tests take copies of it."""
    stack = ExitStack()
    atexit.register(stack.close)
    url = stack.enter_context(own_database(like=find_migrated_postgresql()))
    folder = Path(stack.enter_context(TemporaryDirectory()))
    env = clean_environment(
        TOOLHUB_DATABASE_URL=url,
        TOOLHUB_REDIS_URL=os.environ["TOOLHUB_TEST_REDIS_URL"],
        TOOLHUB_DATA_DIR=str(folder),
        TOOLHUB_TOOLS_PATH=TOOLS_PATH,
    )
    return Arranged(url, folder, run(python(*ARRANGE), env))


@contextmanager
def production_at(
    folder: Path, arrange: Sequence[str] = (), postgresql: str = "", **settings: str
) -> Iterator[Production]:
    """A hub with the sample tools, or with what else ``arrange`` makes, serving inside the block; afterwards each of its calls has
    its pair, and no box is left. ``postgresql``: the server, when it is not that of the tests.
    """
    prepared = Arranged("" if postgresql else find_migrated_postgresql()) if arrange else arranged()
    with own_database(postgresql, like=prepared.database_url) as database_url:
        server = urlsplit(database_url)
        line = Line(server.hostname or "", server.port or 5432)
        near = server._replace(netloc=f"{server.username}:{server.password}@127.0.0.1:{line.port}")
        redis = OwnRedis(folder)
        usual = {"TOOLHUB_REDIS_URL": redis.url, "TOOLHUB_LEASE_S": "3", "TOOLHUB_DRAIN_S": "0"}
        env = clean_environment(
            TOOLHUB_DATABASE_URL=urlunsplit(near),
            TOOLHUB_DATA_DIR=str(folder),
            TOOLHUB_INSTANCE=str(folder),
            TOOLHUB_TOOLS_PATH=TOOLS_PATH,
            TOOLHUB_BIND=f"127.0.0.1:{free_port()}",
            **usual | settings,
        )
        hub = Production(folder, env, database_url, line, redis)
        try:
            line.mend()
            redis.start()
            if prepared.folder:
                shutil.copytree(prepared.folder, folder, dirs_exist_ok=True)
            hub.credentials = Credentials(prepared.said or run(python(*arrange), env))
            hub.start_web()
            hub.use_worker()
            yield hub
            assert hub.count(UNPAIRED) == 0
            assert hub.count(OPEN_BEGINS) == 0
            for process in (hub.web, hub.worker):
                if process is not None and process.runs:
                    process.stop()
            assert hub.boxes() == []
        finally:
            for process in (hub.web, hub.worker):
                if process is not None:
                    process.kill()
            redis.stop()
            line.cut()
