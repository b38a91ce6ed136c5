"""Whole hubs: an embedded one that tests share, and a place to start others."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.provision.processes import free_port
from tests.e2e.browser import chromium
from tests.e2e.processes import PATIENCE_S, ROOT, Process, clean_environment, python, run, until
from tests.e2e.wire import Agent, answers, boxes, remove_boxes
from tests.support.migrated_databases import FILE, copy_migrated_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

TOOLS_PATH = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "tests" / "tools")])
CANARY = "canary-in-the-hub-s-environment"
# That a call runs is read here, never from the boxes: some stand ready for calls to come.
RUNNING = "SELECT count(*) FROM invocations_invocation WHERE state = 'running'"
# Begins without an End. Both databases have these two tables.
OPEN_BEGINS = """
    SELECT count(*) FROM evidence_fact AS began WHERE began.kind IN ('invocation.began', 'dry_run.began') AND NOT EXISTS (
        SELECT 1 FROM evidence_fact AS ended WHERE ended.kind IN ('invocation.ended', 'dry_run.ended')
            AND ended.invocation_id = began.invocation_id
    )
"""
UNPAIRED = """
    SELECT count(*) FROM invocations_invocation AS call WHERE (
        SELECT count(*) FROM evidence_fact AS fact
        WHERE fact.invocation_id = call.id AND fact.kind IN ('invocation.began', 'invocation.ended', 'dry_run.began', 'dry_run.ended')
    ) <> 2
"""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What `seed_demo` printed."""

    text: str

    def password(self, person: str) -> str:
        found = re.search(rf" {person} / (\S+)", self.text)
        assert found, self.text
        return found[1]

    @property
    def key(self) -> str:
        found = re.search(r"API key\s+(\S+)", self.text)
        assert found, self.text
        return found[1]

    @property
    def curl(self) -> str:
        """The first command line, exactly as it stands there; where local models are installed a second one follows."""
        return self.text[self.text.index("curl ") :].partition("\n\n")[0]


@dataclass(slots=True)
class Embedded:
    """An embedded hub: its data, its settings, and its one process when it runs."""

    data: Path
    env: dict[str, str]
    credentials: Credentials | None = None
    process: Process | None = None
    prefix: list[str] = field(default_factory=list)  # the command that the serving process is started by, if any

    @classmethod
    def at(cls, data: Path, **settings: str) -> Embedded:
        env = clean_environment(TOOLHUB_DATA_DIR=str(data), TOOLHUB_BIND=f"127.0.0.1:{free_port()}", **settings)
        return cls(data, env)

    @property
    def url(self) -> str:
        return f"http://{self.env['TOOLHUB_BIND']}"

    @property
    def agent(self) -> Agent:
        assert self.credentials, "seed first"
        return Agent(self.url, self.credentials.key)

    def manage(self, *arguments: str) -> str:
        return run(python("manage.py", *arguments), self.env)

    def seed(self) -> None:
        self.credentials = Credentials(self.manage("seed_demo"))

    def start(self, *, within_s: float = PATIENCE_S) -> Process:
        process = Process([*self.prefix, *python("manage.py", "serve")], self.env, self.data / "serve.log")
        self.process = process
        try:
            process.wait_for(lambda: answers(f"{self.url}/readyz"), "the hub is ready", within_s=within_s)
        except BaseException:
            process.kill()
            raise
        return process

    def boxes(self) -> list[str]:
        return boxes(str(self.data.resolve()))

    def count(self, query: str) -> int:
        with closing(sqlite3.connect(f"file:{self.data}/toolhub.sqlite3?mode=ro", uri=True)) as database:
            return int(database.execute(query).fetchone()[0])

    @contextmanager
    def served(self, *, within_s: float = PATIENCE_S) -> Iterator[Embedded]:
        """It runs inside the block, and has left nothing when the block is over."""
        process = self.start(within_s=within_s)
        try:
            yield self
        finally:
            process.stop(signal.SIGINT)
        assert "Traceback" not in process.said(), process.said()
        assert self.boxes() == []


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Embedded:
    """A migrated and seeded hub with the sample tools, which is never started: tests take copies of it."""
    hub = Embedded.at(tmp_path_factory.mktemp("prepared"), TOOLHUB_TOOLS_PATH=TOOLS_PATH)
    copy_migrated_sqlite(hub.data / FILE)
    hub.credentials = Credentials(run(python("-m", "tests.e2e.arrange"), hub.env))
    return hub


def copy_of(prepared: Embedded, data: Path, **settings: str) -> Embedded:
    shutil.copytree(prepared.data, data)
    hub = Embedded.at(data, TOOLHUB_TOOLS_PATH=TOOLS_PATH, **settings)
    hub.credentials = prepared.credentials
    return hub


@pytest.fixture
def own_hub(prepared: Embedded, tmp_path: Path) -> Iterator[Embedded]:
    """A hub for a test that stops or breaks it. Not started yet."""
    hub = copy_of(prepared, tmp_path / "hub", TOOLHUB_LEASE_S="3")  # one that is killed is found out soon
    yield hub
    if hub.process is not None:
        hub.process.kill()
    until(lambda: not hub.boxes(), "the boxes of a hub that was killed are gone", within_s=PATIENCE_S)
    remove_boxes(str(hub.data.resolve()))


@pytest.fixture(scope="session")
def hub(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The embedded hub, serving, with the commerce pack and the sample tools. Shared: do not break it."""
    with copy_of(prepared, tmp_path_factory.mktemp("shared") / "hub", E2E_CANARY=CANARY).served() as served:
        yield served
    assert served.count(UNPAIRED) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium()


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go: a folder that somebody wants to look at, or one that goes with the tests."""
    wanted = os.environ.get("TOOLHUB_TEST_SHOTS")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
