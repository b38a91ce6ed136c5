"""Paused runs: do agent runs that wait for people cost a thread, a process or a connection, and do all of them go on when people
agree?
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import redis

from tests.crash.arrange import ASKS
from tests.e2e.processes import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.crash.run_world import AskedRun, RunWorld
    from tests.e2e.production import Production

AT_ONCE = 10  # are sent at once, and then the next
IDLE = 2  # threads and connections that a pool keeps or gives up meanwhile
WITHIN_S = 1800.0  # for a loaded machine; nothing is concluded from how long something took
OTHERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
ENDS = "SELECT state, stop_reason, count(*) FROM invocations_agentrun WHERE id = ANY(%s) GROUP BY 1, 2"


@dataclass(frozen=True, slots=True)
class Held:
    """What web and worker hold of the machine: threads of theirs and of their children, and connections."""

    web_threads: int
    worker_threads: int
    to_database: int
    to_redis: int

    def is_at_most(self, other: Held) -> bool:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(held <= before + IDLE for held, before in pairs)


@pytest.mark.req("LLM-11", "SVC-4")
@pytest.mark.long
@pytest.mark.parametrize("count", [20, 500])
def test_runs_that_wait_for_people_hold_no_thread_and_no_connection(count: int, run_world: RunWorld) -> None:
    run_world.world.worker()
    hub = run_world.world.hub
    check_finished(begin_and_agree(run_world, 4 * AT_ONCE), run_world)
    with_none = count_held(hub)

    runs = begin_held(run_world, count)
    until(
        lambda: count_held(hub).is_at_most(with_none),
        f"{count} runs that wait hold no more than none did: {with_none} before, now {count_held(hub)}",
    )
    with_all = count_held(hub)
    print(f"\n{with_none} with no run that waits\n{with_all} with {count}")

    agree_to_all(run_world, runs)
    check_finished(runs, run_world)


def begin_and_agree(agents: RunWorld, count: int) -> list[AskedRun]:
    runs = begin_held(agents, count)
    agree_to_all(agents, runs)
    return runs


def begin_held(agents: RunWorld, count: int) -> list[AskedRun]:
    """Runs whose only call of a tool waits for a person."""
    runs: list[AskedRun] = []
    for begun in range(0, count, AT_ONCE):
        several = agents.begin(min(AT_ONCE, count - begun), tools=(ASKS,))
        agents.insist(several)
        runs += several
    agents.await_held(runs, within_s=WITHIN_S)
    return runs


def agree_to_all(agents: RunWorld, runs: list[AskedRun]) -> None:
    with agents.sign_in() as person:
        assert agents.agree(runs, person) == len(runs)
        agents.await_ends(runs, person, within_s=WITHIN_S)


def check_finished(runs: list[AskedRun], agents: RunWorld) -> None:
    """Each has its answer, and everything was done and asked once."""
    assert agents.query(ENDS, [run.row for run in runs]) == [("succeeded", "finished", len(runs))]
    assert [agents.world.store.effects[f"{run.name}/1"] for run in runs] == [1] * len(runs)
    assert [agents.model.asked[run.name, turn] for run in runs for turn in (1, 2)] == [1] * 2 * len(runs)
    answers = {run.agent.get(f"/runs/{run.id}").json()["data"]["answer"]["text"] for run in runs[:: len(runs) // 10]}
    assert answers == {"1 of 1"}
    agents.world.check_rest()


def count_held(hub: Production) -> Held:
    assert hub.web is not None
    assert hub.worker is not None
    with psycopg.connect(hub.database_url) as connection:
        row = connection.execute(OTHERS).fetchone()
    assert row is not None
    with closing(redis.Redis.from_url(hub.redis.url)) as client:
        clients = len(client.client_list()) - 1
    return Held(count_threads(hub.web.pid), count_threads(hub.worker.pid), int(row[0]), clients)


def count_threads(pid: int) -> int:
    return sum(len(list(Path("/proc", str(each), "task").iterdir())) for each in (pid, *find_children(pid)))


def find_children(pid: int) -> Iterator[int]:
    for children in Path("/proc", str(pid), "task").glob("*/children"):
        for child in children.read_text().split():
            yield int(child)
            yield from find_children(int(child))
