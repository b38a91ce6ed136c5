"""A hub in the production shape whose processes a test kills where it likes, and what must hold of it whatever was killed."""

from __future__ import annotations

import signal
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg

from kernel.ids import decode, encode
from scripts.provision.processes import free_port
from tests.crash.plan import KEYED
from tests.crash.store import Store, open_store
from tests.e2e.conftest import OPEN_BEGINS, UNPAIRED
from tests.e2e.processes import Process, python, until
from tests.e2e.production import Production, production_at
from tests.e2e.wire import Agent, Answer, Waiting, answers, describe_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.crash.plan import Fate

OPEN = "SELECT count(*) FROM invocations_invocation WHERE state IN ('queued', 'running')"
RESERVED = "SELECT COALESCE(sum(reserved), 0) FROM access_budgetwindow"
UNSETTLED = "SELECT count(*) FROM access_reservation WHERE settled IS NULL"
# What the windows say was used, less what the reservations of their calls were settled with.
UNEXPLAINED = """
    SELECT COALESCE(sum(w.used), 0) - COALESCE((SELECT sum(r.settled) FROM access_reservation r), 0) FROM access_budgetwindow w
"""
USED_CALLS = """
    SELECT COALESCE(sum(w.used), 0) FROM access_budgetwindow w JOIN access_budget b ON b.id = w.budget_id
    WHERE b.dimension = 'calls' AND b.scope = 'agent'
"""
TOOK_A_CALL = """
    SELECT count(*) FROM invocations_invocation WHERE agent_id = (SELECT agent_id FROM access_budget WHERE dimension = 'calls'
        AND scope = 'agent') AND state IN ('succeeded', 'failed', 'outcome_unknown') AND NOT dry_run
"""
ATTEMPTS = "SELECT count(*) FROM invocations_attempt WHERE invocation_id = %s"
OPEN_ATTEMPTS = """
    SELECT count(*) FROM invocations_attempt a JOIN invocations_invocation i ON i.id = a.invocation_id
    WHERE a.finished_at IS NULL AND i.state NOT IN ('queued', 'running')
"""
NOT_NOW = ("EVIDENCE.UNAVAILABLE", "QUEUE.UNAVAILABLE")
RETRIED = "SELECT count(*) FROM evidence_fact WHERE invocation_id = %s AND kind = 'invocation.retried'"
OF_KEY = "SELECT id FROM invocations_invocation WHERE idempotency_key = %s"

BOXES_END_S = 180.0  # a busy engine was seen to tell of an end after 23 s, and it tells of several one after another


@dataclass(slots=True)
class World:
    """The hub, the store that its tools have their effects in, and a second web process where a test kills one."""

    hub: Production
    store: Store
    others: list[Process] = field(default_factory=list)

    @property
    def agent(self) -> Agent:
        return self.hub.agent

    def worker(self, **faults: str) -> Process:
        """See that a worker runs which breaks at these points, and no other."""
        return self.hub.use_worker(**armed(faults))

    def second_web(self, faults: dict[str, str]) -> tuple[Process, Agent]:
        """A web process beside the usual one, which breaks at these points."""
        port = free_port()
        env = self.hub.env | {"TOOLHUB_BIND": f"127.0.0.1:{port}"} | armed(faults)
        web = Process(python("manage.py", "serve"), env, self.hub.folder / f"web-{port}.log")
        self.others.append(web)
        url = f"http://127.0.0.1:{port}"
        web.wait_for(lambda: answers(f"{url}/readyz"), "the second web process is ready")
        return web, Agent(url, self.hub.credentials.key)

    @contextmanager
    def another_worker(self) -> Iterator[Process]:
        """One more beside the usual one, while the block runs."""
        command = python("-m", "celery", "-A", "toolhub", "worker", "--loglevel", "INFO")
        worker = Process(command, self.hub.env, self.hub.folder / "second-worker.log")
        self.others.append(worker)
        worker.wait_for(lambda: " ready." in worker.said(), "the second worker is ready")
        yield worker
        worker.stop()

    def begin(self, tool: str, seconds: float) -> str:
        """The id of a call whose answer is fetched later."""
        return self.agent.begin(f"sample.tools.{tool}", {"store": self.store.url, "seconds": seconds})

    def call(
        self, kind: str, key: str, *, agent: Agent | None = None, seconds: float = 0, prefer: str = "", **more: Any
    ) -> Answer:
        headers = {"Idempotency-Key": key} | ({"Prefer": prefer} if prefer else {})
        arguments = {"store": self.store.url, "seconds": seconds}
        return (agent or self.agent).invoke(f"sample.tools.{kind}", arguments, headers, **more)

    def stable_answer(self, kind: str, key: str, **more: Any) -> Answer:
        """What a caller who does not let go gets in the end; and gets again, byte for byte."""

        def ask() -> list[Answer]:
            answer = self.call(kind, key, prefer="wait=10", **more)
            goes_on = answer.status in (202, 409) or (answer.status == 503 and answer.reason in NOT_NOW)
            return [] if goes_on else [answer]

        first, again, last = (until(ask, "the call with this key is answered")[0] for _ in range(3))
        assert (again.status, again.body) == (first.status, first.body)
        assert (last.status, last.body) == (first.status, first.body)
        assert [each.headers.get("idempotency-replayed") for each in (again, last)] == ["true", "true"]
        return last

    def check_fate(self, answer: Answer, fate: Fate, kind: str) -> None:
        """See that the call became what it should, and that the whole hub is as if nothing had happened."""
        call_id = answer.call_id
        row = decode("inv", call_id)
        assert answer.json()["call"]["state"] == fate.state, answer
        assert self.hub.count(ATTEMPTS, row) == fate.attempts
        assert self.hub.count(RETRIED, row) == fate.attempts - 1
        assert self.store.runs[call_id] == fate.runs
        assert self.store.most_at_once[call_id] == min(fate.runs, 1), "runs of one call overlapped"
        if kind == KEYED:
            assert self.store.effects[call_id] == 1, "a keyed effect takes place once"
        else:
            assert fate.attempts == 1, "without a key nothing runs again"
        self.agent.check_pair(call_id)
        self.check_rest()

    def check_rest(self) -> None:
        """What holds of a hub in which no call goes on."""
        until(lambda: self.hub.count(OPEN) == 0, "no call goes on")
        assert self.hub.count(UNPAIRED) == 0
        assert self.hub.count(OPEN_BEGINS) == 0
        assert self.hub.count(OPEN_ATTEMPTS) == 0
        assert self.hub.count(UNSETTLED) == 0
        assert self.hub.count(RESERVED) == 0
        assert self.hub.count(UNEXPLAINED) == 0
        assert self.hub.count(USED_CALLS) == self.hub.count(TOOK_A_CALL)

    def check_killed(self, process: Process, caller: Waiting | None = None) -> None:
        """See that the process has come to its point, and died of it. An answer says that the point was passed, or that what was
        committed there was seen by its caller before the system had taken the process away.
        """
        until(lambda: not process.runs or (caller and caller.answers), "the process comes to its point")
        until(lambda: not process.runs, f"{caller and caller.answers}\n{process.said()}")
        assert process.ended() == -signal.SIGKILL, process.said()

    def check_no_box_is_left(self) -> None:
        """To be asked while no worker runs: what a dead one had ends with it."""
        try:
            until(lambda: not self.hub.boxes(), "no box is left of a worker that was killed", within_s=BOXES_END_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{describe_boxes(self.hub.boxes())}") from None

    def calls_of_key(self, key: str) -> list[str]:
        """The ids of all calls that were made with the key."""
        with psycopg.connect(self.hub.database_url) as connection:
            return [encode("inv", row[0]) for row in connection.execute(OF_KEY, [key]).fetchall()]


def armed(faults: dict[str, str]) -> dict[str, str]:
    text = ",".join(f"{point}={what}" for point, what in faults.items())
    return {"TOOLHUB_FAULTS": text} if text else {}


def some_key() -> str:
    return f"key-{uuid.uuid4().hex}"


@contextmanager
def world_at(folder: Path, server: str = "", **settings: str) -> Iterator[World]:
    with open_store() as store:
        arrange = ["-m", "tests.crash.arrange", str(store.port)]
        wanted = {"TOOLHUB_SANDBOX_NETWORKS": "127.0.0.1/32", "TOOLHUB_SWEEP_INTERVAL_S": "1"} | settings
        with production_at(folder, arrange=arrange, postgresql=server, **wanted) as hub:
            world = World(hub, store)
            try:
                yield world
            finally:
                for process in world.others:
                    process.kill()
