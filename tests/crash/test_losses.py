"""Losses: is every call ended exactly once when something goes away that is not ours to restart: a box, Redis, the database, the
engine?
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import redis

from tests.crash.plan import LOSSES, Loss, cases, name_of
from tests.crash.world import World, some_key
from tests.e2e.processes import until
from tests.e2e.wire import Waiting, in_background
from tests.support.engine_proxy import EngineProxy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crash.postgres import OwnPostgres

SECONDS = 6.0  # the tool runs for so long
LEASE_S = 9  # of the worker that loses its database: the run ends within the last fifth of it
LEASED = "SELECT count(*) FROM invocations_invocation WHERE state = 'running' AND lease_until > clock_timestamp()"
OF_THE_SERVER = [loss for loss in LOSSES if loss.name == "postgresql"]
ELSE = [loss for loss in LOSSES if loss not in OF_THE_SERVER]
ENGINE = "unix:///var/run/docker.sock"


@pytest.mark.req("TOOLS-18", "TOOLS-20")
@pytest.mark.parametrize(("loss", "kind"), cases(LOSSES, core=True), ids=name_of)
def test_nothing_is_lost_or_done_twice(loss: Loss, kind: str, world: World, tmp_path: Path) -> None:
    lose(loss, kind, world, tmp_path)


@pytest.mark.req("TOOLS-18", "TOOLS-20")
@pytest.mark.long
@pytest.mark.parametrize(("loss", "kind"), cases(OF_THE_SERVER, core=False), ids=name_of)
def test_nothing_is_lost_or_done_twice_when_postgresql_crashes(
    loss: Loss, kind: str, fragile_world: World, postgres: OwnPostgres
) -> None:
    key = some_key()
    fragile_world.worker()
    caller = begin(fragile_world, kind, key, SECONDS)
    postgres.crash()
    postgres.start()
    caller.thread.join()
    check(fragile_world, loss, kind, key, SECONDS)


@pytest.mark.req("TOOLS-18", "TOOLS-20")
@pytest.mark.long
@pytest.mark.parametrize(("loss", "kind"), cases(ELSE, core=False), ids=name_of)
def test_nothing_is_lost_or_done_twice_whatever_else_goes(loss: Loss, kind: str, world: World, tmp_path: Path) -> None:
    lose(loss, kind, world, tmp_path)


def lose(loss: Loss, kind: str, world: World, folder: Path) -> None:
    key = some_key()
    if loss.name == "messages":
        seconds = 0.0
        lose_messages(world, kind, key)
    elif loss.name == "database":
        seconds = 3.0 * LEASE_S
        lose_database(world, kind, key, seconds)
    elif loss.name == "engine":
        seconds = SECONDS
        lose_engine(world, kind, key, seconds, folder)
    else:
        seconds = SECONDS
        lose_while_the_tool_runs(loss, kind, key, world)
    check(world, loss, kind, key, seconds)


def check(world: World, loss: Loss, kind: str, key: str, seconds: float) -> None:
    answer = world.stable_answer(kind, key, seconds=seconds)
    assert world.calls_of_key(key) == [answer.call_id]
    world.check_fate(answer, loss.fates[kind], kind)


def lose_while_the_tool_runs(loss: Loss, kind: str, key: str, world: World) -> None:
    worker = world.worker()
    caller = begin(world, kind, key, SECONDS)
    match loss.name:
        case "worker":
            worker.kill()
            world.check_no_box_is_left()
            world.worker()
        case "box":
            kill_the_box(world)
        case "redis":
            world.hub.redis.kill()
            world.hub.redis.start()
        case "database_briefly":
            world.hub.database.cut()
            world.hub.database.mend()
    caller.thread.join()


def lose_database(world: World, kind: str, key: str, seconds: float) -> None:
    """Nobody can be asked, and the run has ended all the same before its lease is over."""
    world.hub.use_worker(TOOLHUB_LEASE_S=str(LEASE_S))
    caller = begin(world, kind, key, seconds)
    world.hub.database.cut()
    until(lambda: not alive(world), "the worker ends a run whose lease it cannot renew")
    leased = world.hub.count(LEASED)
    until(lambda: world.hub.count(LEASED) == 0, "the lease is over")
    world.hub.database.mend()
    caller.thread.join()
    world.worker()
    assert leased == 1, "a run ends before its lease does"


def begin(world: World, kind: str, key: str, seconds: float) -> Waiting:
    """A call whose tool has had its effect, and runs on."""
    caller = in_background(lambda: world.call(kind, key, seconds=seconds))
    until(lambda: alive(world) or not caller.thread.is_alive(), "the tool runs")
    assert not caller.answers, caller.answers
    return caller


def alive(world: World) -> int:
    """How many tools run at this moment."""
    return sum(world.store.at_work.values())


def kill_the_box(world: World) -> None:
    """And with it the one that stands ready for the next call."""
    busy = world.hub.boxes()
    subprocess.run(["docker", "kill", "--signal", "KILL", *busy], check=True, capture_output=True, timeout=60)


def lose_messages(world: World, kind: str, key: str) -> None:
    worker = world.worker()
    worker.stop()
    assert world.call(kind, key, prefer="respond-async").status == 202
    with closing(redis.Redis.from_url(world.hub.redis.url)) as client:
        client.flushall()
    world.worker()


def lose_engine(world: World, kind: str, key: str, seconds: float, folder: Path) -> None:
    engine = EngineProxy(folder, ENGINE)
    world.hub.use_worker(TOOLHUB_DOCKER_URL=engine.url)
    caller = begin(world, kind, key, seconds)
    engine.cut()
    engine.mend()
    caller.thread.join()
    engine.cut()
