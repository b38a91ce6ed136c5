"""Queue order: does every tenant's call get its turn, a serial tool one call at a time, and a quick call its place beside long
ones?
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from access import services as access
from invocations.models import Invocation, State, WorkClass
from invocations.queue import claims
from invocations.queue.claims import FreePlaces, WorkerSlots, claim_call, claim_next_call
from kernel.ids import new_id
from tests.support.begin_end_pairs import end_call
from tests.support.concurrency import at_once
from tests.support.waiting_calls import waiting

if TYPE_CHECKING:
    from access.models import Agent
    from tests.conftest import Caller, Person

CONCURRENCY, SPARE = 4, 1
PATIENCE_S = 60


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """As in a worker that has just started."""
    settings.TOOLHUB_WORKER_CONCURRENCY, settings.TOOLHUB_WORKER_SPARE = CONCURRENCY, SPARE
    monkeypatch.setattr(claims, "places", WorkerSlots())


@pytest.fixture
def foreigner(stranger: Person) -> Agent:
    return access.create_agent(name="theirs", by=stranger.by)


def over(invocation: Invocation) -> None:
    end_call(invocation, State.SUCCEEDED)


@pytest.mark.req("CARD-5")
@pytest.mark.django_db
def test_the_tenant_with_fewer_running_calls_comes_first(caller: Caller, foreigner: Agent) -> None:
    mine = waiting(caller.agent, count=3)
    theirs = waiting(foreigner, count=2)

    turns = [claim_call() for _ in range(6)]

    assert [turn and turn.pk for turn in turns] == [
        mine[0].pk,
        theirs[0].pk,
        mine[1].pk,
        theirs[1].pk,
        mine[2].pk,
        None,
    ]


@pytest.mark.req("CARD-5")
@pytest.mark.django_db
def test_answers_of_models_that_are_on_their_way_take_no_turn_from_calls_of_tools(
    caller: Caller, foreigner: Agent
) -> None:
    streams = waiting(caller.agent, tool="model.script.main", count=3)
    Invocation.objects.filter(pk__in=[each.pk for each in streams]).update(state=State.RUNNING)
    [mine], [theirs] = waiting(caller.agent), waiting(foreigner)

    turns = [claim_call() for _ in range(2)]

    assert [turn and turn.pk for turn in turns] == [mine.pk, theirs.pk]


@pytest.mark.req("CARD-5")
@pytest.mark.django_db(transaction=True)
def test_many_slow_calls_of_one_tenant_do_not_keep_out_the_quick_one_of_another(
    caller: Caller, foreigner: Agent
) -> None:
    """All the places of a worker are threads here, as they are there."""
    waiting(caller.agent, count=20)
    slow_at_work = threading.Semaphore(0)
    may_end = threading.Event()
    ran: Counter[Any] = Counter()

    def place(number: int) -> None:
        try:
            while not may_end.is_set():
                with claim_next_call() as invocation:
                    if invocation is None:
                        connection.close()
                        may_end.wait(0.01)
                        continue
                    ran[invocation.tenant_id] += 1
                    if invocation.agent_id == foreigner.pk:
                        over(invocation)
                        may_end.set()
                        return
                    slow_at_work.release()
                    assert may_end.wait(PATIENCE_S)
                    over(invocation)
        finally:
            connection.close()

    def comes_late(number: int) -> None:
        for _ in range(CONCURRENCY):
            assert slow_at_work.acquire(timeout=PATIENCE_S)
        waiting(foreigner)

    at_once(CONCURRENCY + SPARE + 1, lambda number: place(number) if number else comes_late(number))

    assert ran[foreigner.tenant_id] == 1
    assert ran[caller.agent.tenant_id] == CONCURRENCY


@pytest.mark.req("CARD-5")
@pytest.mark.django_db
def test_of_a_workers_places_a_tenant_has_all_but_the_spare_ones(caller: Caller, foreigner: Agent) -> None:
    waiting(caller.agent, count=CONCURRENCY + SPARE)

    with ExitStack() as held:
        mine = [held.enter_context(claim_next_call()) for _ in range(CONCURRENCY + SPARE)]
        (late,) = waiting(foreigner)
        other = held.enter_context(claim_next_call())
        assert [bool(each) for each in mine] == [True] * CONCURRENCY + [False] * SPARE
        assert other is not None
        assert other.pk == late.pk

    with claim_next_call() as freed:
        assert freed is not None


@pytest.mark.req("CARD-5")
@pytest.mark.django_db
def test_calls_that_may_take_long_leave_half_of_the_places_to_quick_ones(caller: Caller, foreigner: Agent) -> None:
    for agent in (caller.agent, foreigner):
        waiting(agent, count=3, work_class=WorkClass.LONG)
    waiting(caller.agent, count=2)

    with ExitStack() as held:
        got = [held.enter_context(claim_next_call()) for _ in range(CONCURRENCY + SPARE)]

    classes = Counter(each.work_class for each in got if each is not None)
    assert classes == {WorkClass.LONG: CONCURRENCY // 2, WorkClass.QUICK: 2}


@pytest.mark.req("CARD-5")
@pytest.mark.django_db
def test_a_worker_for_calls_that_may_take_long_has_all_its_places_for_them(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_WORK_CLASSES = [WorkClass.LONG]
    waiting(caller.agent, count=CONCURRENCY, work_class=WorkClass.LONG)

    with ExitStack() as held:
        got = [held.enter_context(claim_next_call()) for _ in range(CONCURRENCY)]

    assert None not in got


@pytest.mark.req("TOOLS-5")
@pytest.mark.django_db(transaction=True)
def test_who_comes_second_to_a_serial_tool_takes_another_call_that_waits(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        waiting(caller.agent, tool="sample.tools.one", serial=True, serial_key="sample.tools.one")
    (other,) = waiting(caller.agent)
    claim, first = claims._claim, iter([True])

    def as_if_both_had_looked_at_once(free: FreePlaces) -> Invocation | None:
        if next(first, False):
            raise IntegrityError("unfinished_call_serial_key_runs_once")
        return claim(free)

    assert claim_call() is not None
    monkeypatch.setattr(claims, "_claim", as_if_both_had_looked_at_once)

    turn = claim_call()

    assert turn is not None
    assert turn.pk == other.pk


@pytest.mark.req("TOOLS-5")
@pytest.mark.django_db(transaction=True)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tools=st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=12),
    workers=st.integers(min_value=2, max_value=4),
)
def test_calls_of_a_serial_tool_never_overlap_and_all_get_their_turn(
    tools: list[str], workers: int, caller: Caller
) -> None:
    example = new_id().hex
    for name in tools:
        tool = f"sample.tools.{name}_{example}"
        waiting(caller.agent, tool=tool, serial=True, serial_key=tool)
    lock = threading.Lock()
    at_work: Counter[str] = Counter()
    overlapped: list[str] = []

    def work(number: int) -> int:
        """Claims as a worker process does, which knows nothing of the places of others."""
        done = 0
        while Invocation.objects.filter(state=State.QUEUED).exists():
            invocation = claim_call()
            if invocation is None:
                continue
            with lock:
                at_work[invocation.tool] += 1
                overlapped.extend([invocation.tool] if at_work[invocation.tool] > 1 else [])
            with lock:
                at_work[invocation.tool] -= 1
            over(invocation)
            done += 1
        return done

    done = at_once(workers, work)

    assert overlapped == []
    assert sum(each for each in done if isinstance(each, int)) == len(tools), done
    assert set(Invocation.objects.values_list("state", "attempt")) == {(State.SUCCEEDED, 1)}
