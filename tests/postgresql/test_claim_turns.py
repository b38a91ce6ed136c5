"""Claim turns: do threads that come while another claims get each a call, in one transaction, by the rules for one?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from access import services as access
from invocations.models import Attempt, Invocation, WorkClass
from invocations.queue import claims
from invocations.queue.claims import WantedCall, WorkerSlots, claim_next_call
from invocations.queue.run_rows import ClaimInFlight
from kernel.database.prepared_statements import fetch_prepared
from tests.support.concurrency import MEET_WITHIN_S
from tests.support.waiting_calls import waiting

if TYPE_CHECKING:
    from access.models import Agent
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)
CONCURRENCY, SPARE = 4, 1
WRITERS = b"SELECT number, xmin::text FROM invocations_attempt ORDER BY started_at, id"


@pytest.fixture(autouse=True)
def own_places(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """As in a worker that has just started, for calls that do not take long."""
    settings.TOOLHUB_WORKER_CONCURRENCY, settings.TOOLHUB_WORKER_SPARE = CONCURRENCY, SPARE
    settings.TOOLHUB_WORK_CLASSES = [WorkClass.QUICK]
    monkeypatch.setattr(claims, "places", WorkerSlots())


@pytest.fixture
def foreigner(stranger: Person) -> Agent:
    return access.create_agent(name="theirs", by=stranger.by)


def claim_together(count: int) -> list[Invocation]:
    """What so many threads get that come while another claims, and hold at once."""
    begun, go, hold = threading.Event(), threading.Event(), threading.Barrier(count)

    def first() -> None:
        with claims.turns.take(WantedCall()):
            begun.set()
            assert go.wait(MEET_WITHIN_S)

    def place() -> Invocation | None:
        try:
            with claim_next_call() as invocation:
                hold.wait(MEET_WITHIN_S)
                return invocation
        finally:
            connection.close()

    with ThreadPoolExecutor(count + 1) as pool:
        held = pool.submit(first)
        assert begun.wait(MEET_WITHIN_S)
        running = []
        for at in range(1, count + 1):
            running.append(pool.submit(place))
            while len(claims.turns._waiting) < at:
                pass
        go.set()
        held.result(MEET_WITHIN_S)
        found = [each.result(MEET_WITHIN_S) for each in running]
    return [each for each in found if each is not None]


def transactions() -> int:
    """How many have claimed what was claimed."""
    return len({writer for _, writer in fetch_prepared(WRITERS, ())})


def test_threads_that_wait_get_the_calls_whose_turn_it_is_in_one_transaction(caller: Caller, foreigner: Agent) -> None:
    mine, theirs = waiting(caller.agent, count=5), waiting(foreigner, count=1)

    found = claim_together(3)

    assert [each.pk for each in found] == [mine[0].pk, theirs[0].pk, mine[1].pk]
    assert [(each.state, each.attempt, each.run_rows is not None) for each in found] == [("running", 1, True)] * 3
    assert transactions() == 1
    assert set(Attempt.objects.values_list("invocation_id", "number")) == {(each.pk, 1) for each in found}


def test_no_tenant_gets_more_places_than_it_may_have(caller: Caller, foreigner: Agent) -> None:
    waiting(caller.agent, count=CONCURRENCY + 2)

    assert len(claim_together(CONCURRENCY + SPARE)) == CONCURRENCY
    (late,) = waiting(foreigner)
    assert late.pk in [each.pk for each in claim_together(CONCURRENCY + SPARE)]


def test_a_place_that_is_left_while_several_are_claimed_is_filled_once(
    caller: Caller, foreigner: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tenant had all its places when the free ones were counted."""
    at_work = [Invocation(tenant_id=caller.agent.tenant_id, work_class=WorkClass.QUICK) for _ in range(CONCURRENCY)]
    for each in at_work:
        claims.places.take(each)
    mine, theirs = waiting(caller.agent, count=3), waiting(foreigner)
    claim = claims.claim_calls

    def leave_meanwhile(*given: Any) -> list[Invocation]:
        if at_work:
            claims.places.leave(at_work.pop())
            at_work.clear()
        return claim(*given)

    monkeypatch.setattr(claims, "claim_calls", leave_meanwhile)

    assert {each.pk for each in claim_together(3)} == {theirs[0].pk, mine[0].pk}


def test_calls_that_may_take_long_get_no_more_than_half_of_the_places(caller: Caller, settings: Any) -> None:
    settings.TOOLHUB_WORK_CLASSES = [WorkClass.QUICK, WorkClass.LONG]
    waiting(caller.agent, count=4, work_class=WorkClass.LONG)
    waiting(caller.agent, count=4)

    found = claim_together(CONCURRENCY)

    assert sorted(each.work_class for each in found) == [WorkClass.LONG] * 2 + [WorkClass.QUICK] * 2


@pytest.mark.parametrize("together", [True, False])
def test_a_claimed_call_that_cannot_be_read_takes_no_place_and_no_other_call_with_it(
    together: bool, caller: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, *others = waiting(caller.agent, count=3)
    read = ClaimInFlight.read

    def fail_for_one(self: ClaimInFlight) -> Invocation | None:
        found = read(self)
        if found is not None and found.pk == broken.pk:
            raise LookupError("not as it was written")
        return found

    monkeypatch.setattr(ClaimInFlight, "read", fail_for_one)

    if together:
        assert [each.pk for each in claim_together(3)] == [each.pk for each in others]
        assert "not as it was written" in caplog.text
    else:
        with pytest.raises(LookupError), claim_next_call():
            pass
    assert not claims.places.any_taken()


def test_a_transaction_claims_one_call_at_most_of_tools_that_take_one_at_a_time(caller: Caller) -> None:
    """Two workers that had one each, and wanted the other's, would wait for each other."""
    for name in ("one", "two", "three"):
        waiting(caller.agent, tool=f"sample.tools.{name}", serial=True, serial_key=f"sample.tools.{name}")

    found = claim_together(3)

    assert sorted(each.tool for each in found) == ["sample.tools.one", "sample.tools.three", "sample.tools.two"]
    assert transactions() == 3


def test_while_a_tenant_has_all_its_places_its_messages_claim_nothing(
    caller: Caller, foreigner: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting(caller.agent, count=CONCURRENCY + 2)
    claimed, claim = list[int](), claims.claim_calls
    monkeypatch.setattr(claims, "claim_calls", lambda *given: claimed.append(given[0]) or claim(*given))  # type: ignore[func-returns-value]
    places = [claim_next_call() for _ in range(CONCURRENCY)]
    held = [place.__enter__() for place in places]
    assert all(held)

    with claim_next_call() as none:
        assert none is None
    assert (len(claimed), claims.places.has_missed()) == (CONCURRENCY, True)
    (late,) = waiting(foreigner)
    with claim_next_call() as other:
        assert other is not None
        assert other.pk == late.pk
    for place in places:
        place.__exit__(None, None, None)
