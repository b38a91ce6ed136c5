"""Interrupted runs: is every agent run taken to its end, and nothing of it done twice, wherever a process is killed or something
goes away?
"""

from __future__ import annotations

import http.client
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
import redis

from tests.crash.run_plan import LOSSES_OF_RUNS, RUNS, RunLoss, RunMoment, select_moments
from tests.crash.run_world import LEASE_S, AskedRun, Follower, RunWorld
from tests.crash.world import armed
from tests.e2e.processes import until
from tests.e2e.wire import Agent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.crash.postgres import OwnPostgres
    from tests.crash.scripted_model import Gate
    from tests.e2e.console import Person
    from tests.e2e.processes import Process

SECONDS = 5.0  # a tool runs for so long when something goes away
LEASED = "SELECT count(*) FROM invocations_invocation WHERE state = 'running' AND lease_until > clock_timestamp()"
AT_ONCE = 4  # TOOLHUB_WORKER_CONCURRENCY


def name_of(case: RunMoment | RunLoss) -> str:
    return case.name if isinstance(case, RunMoment) else case.label


@pytest.mark.req("RUN-2", "TOOLS-18", "TOOLS-20")
@pytest.mark.parametrize("moment", select_moments(core=True), ids=name_of)
def test_no_run_is_lost_and_nothing_of_it_done_twice(moment: RunMoment, run_world: RunWorld, tmp_path: Path) -> None:
    kill_at(moment, run_world, tmp_path)


@pytest.mark.req("RUN-2", "TOOLS-18", "TOOLS-20")
@pytest.mark.long
@pytest.mark.parametrize("moment", select_moments(core=False), ids=name_of)
def test_no_run_is_lost_and_nothing_of_it_done_twice_anywhere_else(
    moment: RunMoment, run_world: RunWorld, tmp_path: Path
) -> None:
    kill_at(moment, run_world, tmp_path)


@pytest.mark.req("RUN-2", "TOOLS-18", "TOOLS-20")
@pytest.mark.long
@pytest.mark.parametrize("loss", LOSSES_OF_RUNS, ids=name_of)
def test_no_run_is_lost_whatever_else_goes_away(loss: RunLoss, run_world: RunWorld, postgres: OwnPostgres) -> None:
    lose(loss, run_world, postgres)


# A process is killed.


def kill_at(moment: RunMoment, agents: RunWorld, folder: Path) -> None:
    """The runs begin at once, and are at the same question when the process is told to die at its point."""
    world, now = agents.world, folder / "now"
    who, point = moment.first or (moment.by, moment.point)
    faults = {point: f"kill:{now}"}
    # The repairer of what a web process has left is the usual worker.
    worker = world.worker(
        **({moment.point: "kill"} if moment.first and who == "web" else faults if who == "worker" else {})
    )
    victim, address = worker, ""
    if who in ("web", "person"):
        victim, agent = world.second_web(faults)
        address = agent.url
    gate = agents.keep_answers(moment.after) if moment.after else None
    if gate is None:
        now.touch()
    runs = agents.begin(moment.runs, web=address if who == "web" else "")
    if gate is None:
        world.check_killed(victim)
        see_repairer_killed(moment, agents)
    agents.insist(runs)
    with followed(runs[0], address if gate and who == "web" else ""):
        if gate is not None:
            with agents.sign_in(address if who == "person" else "") as person:
                await_question(gate, runs, agents, person)
                now.touch()
                gate.opened.set()
                await_death(victim, runs, agents, person)
            world.check_killed(victim)
            see_repairer_killed(moment, agents)
        if who == "worker" or moment.first is not None:
            world.check_no_box_is_left()
        world.worker()
        with agents.sign_in() as person:
            agents.await_ends(runs, person)
    agents.check_fates(runs, moment.fate, kills=moment.kills)


@contextmanager
def followed(run: AskedRun, web: str) -> Iterator[None]:
    """Somebody follows the run meanwhile, at first at that web process, and is told each event once."""
    follower = Follower(run)
    follower.start(Agent(web or run.agent.url, run.agent.key))
    try:
        yield
        follower.check_told_once()
    finally:
        follower.leave()


def await_question(gate: Gate, runs: Sequence[AskedRun], agents: RunWorld, person: Person) -> None:
    """Agree to whatever waits, until all of them have asked their model what the gate keeps the answer to."""

    def look() -> bool:
        agents.agree(runs, person)
        return len(gate.names) == len(runs)

    until(look, f"each run asks its model for the {gate.turn}. time")


def await_death(victim: Process, runs: Sequence[AskedRun], agents: RunWorld, person: Person) -> None:
    """Agree to whatever waits, until the process has died. A person at a web process that dies gets no answer."""

    def look() -> bool:
        try:
            if victim.runs:
                agents.agree(runs, person)
        except (OSError, http.client.HTTPException):
            until(lambda: not victim.runs, "a person gets no answer because the process has died")
        return not victim.runs

    until(look, "the process comes to its point")


def see_repairer_killed(moment: RunMoment, agents: RunWorld) -> None:
    """A worker that takes up what the first has left dies of its own point, as soon as it can."""
    if moment.first is None:
        return
    world = agents.world
    if moment.first[0] == "worker":
        world.check_no_box_is_left()
        world.hub.begin_worker(**armed({moment.point: "kill"}))
    assert world.hub.worker is not None
    world.check_killed(world.hub.worker)


# Something else goes away.


def lose(loss: RunLoss, agents: RunWorld, postgres: OwnPostgres) -> None:
    world = agents.world
    world.worker()
    seconds = {"tool": 1, "agreed": 2}.get(loss.at)
    gate = agents.keep_answers(2) if loss.at == "asking" else None
    runs = agents.begin(
        RUNS, seconds={seconds: 3.0 * LEASE_S if loss.name == "database" else SECONDS} if seconds else {}
    )
    agents.insist(runs)
    with followed(runs[0], ""), agents.sign_in() as person:
        if gate is not None:
            until(lambda: len(gate.names) == RUNS, "each run asks its model for the second time")
        if loss.at in ("held", "agreed"):
            agents.await_held(runs)
        if loss.at == "agreed":
            agents.agree(runs, person)
        if loss.at in ("tool", "agreed"):
            until(lambda: count_alive(agents) == min(RUNS, AT_ONCE), "the tools run")
        take_away(loss, agents, postgres)
        if gate is not None:
            gate.opened.set()
        agents.await_ends(runs, person)
    world.worker()
    agents.check_fates(runs, loss.fate)


def take_away(loss: RunLoss, agents: RunWorld, postgres: OwnPostgres) -> None:
    hub = agents.world.hub
    match loss.name:
        case "redis":
            hub.redis.kill()
            hub.redis.start()
        case "messages":
            with closing(redis.Redis.from_url(hub.redis.url)) as client:
                client.flushall()
        case "postgresql":
            postgres.crash()
            postgres.start()
        case "database":
            hub.database.cut()
            until(lambda: not count_alive(agents), "the worker ends runs whose lease it cannot renew")
            until(lambda: hub.count(LEASED) == 0, "all leases are over")
            hub.database.mend()


def count_alive(agents: RunWorld) -> int:
    """How many tools run at this moment."""
    return sum(agents.world.store.at_work.values()) // 2  # each counts for its call and for its tool
