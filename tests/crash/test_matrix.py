"""Crashes: is every call ended exactly once, and every effect had once, wherever a process is killed?"""

from __future__ import annotations

import pytest

from invocations.models import FINAL
from tests.crash.plan import MOMENTS, Moment, cases, name_of
from tests.crash.world import World, armed, some_key
from tests.e2e.processes import until
from tests.e2e.wire import Answer, in_background


@pytest.mark.req("TOOLS-18", "TOOLS-20", "SPEC-9")
@pytest.mark.parametrize(("moment", "kind"), cases(MOMENTS, core=True), ids=name_of)
def test_nothing_is_lost_or_done_twice(moment: Moment, kind: str, world: World) -> None:
    kill_at(moment, kind, world)


@pytest.mark.req("TOOLS-18", "TOOLS-20", "SPEC-9")
@pytest.mark.long
@pytest.mark.parametrize(("moment", "kind"), cases(MOMENTS, core=False), ids=name_of)
def test_nothing_is_lost_or_done_twice_anywhere_else(moment: Moment, kind: str, world: World) -> None:
    kill_at(moment, kind, world)


def kill_at(moment: Moment, kind: str, world: World) -> None:
    ways = {"web": kill_web, "worker": kill_worker, "sweeper": kill_sweeper}
    answer = ways[moment.by](moment, kind, world)
    world.check_fate(answer, moment.fates[kind], kind)


def kill_web(moment: Moment, kind: str, world: World) -> Answer:
    """The caller loses its line, and asks another web process with the same key."""
    world.worker()
    web, agent = world.second_web({moment.point: "kill"})
    key = some_key()
    seconds = 2 if moment.point == "wait.looked" else 0
    caller = in_background(lambda: world.call(kind, key, agent=agent, seconds=seconds))
    world.check_killed(web, caller)
    caller.thread.join()
    assert caller.answers == []

    answer = world.stable_answer(kind, key, seconds=seconds)

    assert world.calls_of_key(key) == [answer.call_id]
    return answer


def kill_worker(moment: Moment, kind: str, world: World) -> Answer:
    """The caller goes on waiting, and is answered by what another worker or the sweeper makes of the call."""
    worker = world.worker(**{moment.point: "kill"})
    key = some_key()
    caller = in_background(lambda: world.call(kind, key))
    world.check_killed(worker, caller)
    world.check_no_box_is_left()
    world.worker()

    answer = world.stable_answer(kind, key)

    assert value_and_state(caller.answer()) == value_and_state(answer)
    assert world.calls_of_key(key) == [answer.call_id]
    return answer


def kill_sweeper(moment: Moment, kind: str, world: World) -> Answer:
    """The call was left open by a process that was killed; so is the one that repairs it. Its caller was promised the answer."""
    key = some_key()
    if moment.point.startswith("relay."):
        world.worker(**{moment.point: "kill"})
        web, agent = world.second_web({"accept.committed": "kill"})
        caller = in_background(lambda: world.call(kind, key, agent=agent, prefer="respond-async"))
        world.check_killed(web, caller)
        caller.thread.join()
    else:
        worker = world.worker(**{"claim.committed": "kill"})
        assert world.call(kind, key, prefer="respond-async").status == 202
        world.check_killed(worker)
        world.hub.begin_worker(**armed({moment.point: "kill"}))  # it repairs, and dies of it, as soon as it can
    (promised,) = world.calls_of_key(key)
    sweeper = world.hub.worker
    assert sweeper is not None
    world.check_killed(sweeper)
    world.check_no_box_is_left()
    world.worker()
    until(lambda: world.agent.state(promised) in FINAL, "the promised answer is there")

    answer = world.stable_answer(kind, key)

    assert answer.call_id == promised
    return answer


def value_and_state(answer: Answer) -> tuple[int, object, object, object]:
    body = answer.json()
    return answer.status, body["data"], body["call"]["call_id"], body["call"]["state"]
