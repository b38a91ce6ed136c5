"""Call hours: do they say of each hour what its calls say, for one tenant, whenever those have ended?"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection, transaction

from invocations.call_hours import counts
from invocations.call_hours.counts import CallCounts, load_call_counts, measure_latency
from invocations.call_hours.models import CallHour
from invocations.call_hours.rollup import HOUR, KEPT, count_due_hours, count_hour, floor_to_hour, list_due_hours
from invocations.call_outcomes import CallOutcome, build_outcome_filter, classify_call
from invocations.models import Invocation, State
from kernel.database.connections import release_connection
from tests.support.begin_end_pairs import keep_end
from tests.support.made_calls import ECHO, make_calls

if TYPE_CHECKING:
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 29, 12, 40, tzinfo=UTC)
WEEK = timedelta(days=7)
ENDS: list[tuple[State, str, CallOutcome]] = [
    (State.SUCCEEDED, "", CallOutcome.SUCCEEDED),
    (State.FAILED, "DOMAIN.OUT_OF_STOCK", CallOutcome.REFUSED),
    (State.FAILED, "DOMAIN.UPSTREAM_ERROR", CallOutcome.FAILED),
    (State.FAILED, "TOOL.EXECUTION_FAILED", CallOutcome.FAILED),
    (State.TIMED_OUT, "TOOL.TIMEOUT", CallOutcome.FAILED),
    (State.DENIED, "POLICY.DENIED", CallOutcome.DENIED),
    (State.OUTCOME_UNKNOWN, "SANDBOX.WORKER_LOST", CallOutcome.UNKNOWN),
    (State.CANCELLED, "", CallOutcome.ABANDONED),
    (State.EXPIRED, "", CallOutcome.ABANDONED),
    (State.HELD, "", CallOutcome.OPEN),
    (State.RUNNING, "", CallOutcome.OPEN),
]


def load(caller: Caller, since: timedelta = WEEK) -> CallCounts:
    return load_call_counts(tenant_id=caller.by.tenant_id, since=NOW - since, now=NOW)


@pytest.mark.parametrize(("state", "reason", "expected"), ENDS)
def test_the_ends_of_calls_are_told_apart_and_found_again(
    state: State, reason: str, expected: CallOutcome, caller: Caller
) -> None:
    make_calls(caller, NOW, state=state, reason=reason)

    assert classify_call(state, reason) is expected
    found = {each for each in CallOutcome if Invocation.objects.filter(build_outcome_filter(each)).exists()}
    assert found == {expected}


def test_what_is_rolled_up_says_the_same_as_the_calls_themselves(caller: Caller) -> None:
    for hours_ago, (state, reason, _) in enumerate(ENDS):
        make_calls(caller, NOW - hours_ago * HOUR, state=state, reason=reason, times=hours_ago + 1)
    make_calls(caller, NOW - 30 * HOUR, tool="other.tools.one", times=3)
    before = load(caller)

    assert count_due_hours(NOW) == len(ENDS)
    after = load(caller)

    assert CallHour.objects.exists()
    assert (after.hours, after.tools, after.agents, after.reasons) == (
        before.hours,
        before.tools,
        before.agents,
        before.reasons,
    )
    assert after.total.total() == sum(range(1, len(ENDS) + 1)) + 3
    assert after.tools["other.tools.one"] == Counter({CallOutcome.SUCCEEDED: 3})


def test_hours_that_are_over_are_counted_once_and_this_one_is_not(caller: Caller) -> None:
    make_calls(caller, NOW)
    make_calls(caller, NOW - 26 * HOUR)
    make_calls(caller, NOW - KEPT - HOUR)

    assert list_due_hours(NOW) == [floor_to_hour(NOW - 26 * HOUR)]
    assert count_due_hours(NOW) == 1
    assert list_due_hours(NOW) == []
    assert load(caller).total.total() == 2


def test_an_hour_is_counted_anew_until_its_last_call_has_ended(caller: Caller) -> None:
    (call,) = make_calls(caller, NOW - 3 * HOUR, state=State.RUNNING)
    count_due_hours(NOW)
    assert load(caller).total == Counter({CallOutcome.OPEN: 1})

    keep_end(call, state=State.SUCCEEDED, at=NOW)

    assert list_due_hours(NOW) == [floor_to_hour(NOW - 3 * HOUR)]
    count_due_hours(NOW)
    assert load(caller).total == Counter({CallOutcome.SUCCEEDED: 1})
    assert list_due_hours(NOW) == []


def test_a_call_that_goes_on_does_not_have_its_hour_counted_again_and_again(caller: Caller) -> None:
    _, running = make_calls(caller, NOW - 3 * HOUR, state=State.HELD, times=2)
    count_due_hours(NOW)

    assert list_due_hours(NOW) == []
    keep_end(running, state=State.SUCCEEDED, at=NOW)
    assert count_due_hours(NOW) == 1
    assert list_due_hours(NOW) == []
    assert load(caller).total == Counter({CallOutcome.OPEN: 1, CallOutcome.SUCCEEDED: 1})


@pytest.mark.django_db(transaction=True)
def test_who_comes_second_to_an_hour_writes_nothing(caller: Caller) -> None:
    make_calls(caller, NOW - 3 * HOUR)
    hour = floor_to_hour(NOW - 3 * HOUR)
    if connection.vendor != "postgresql":
        assert count_hour(hour)  # there, transactions take turns
        return

    def count_beside() -> bool:
        try:
            return count_hour(hour)
        finally:
            release_connection()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        assert count_hour(hour)
        assert not pool.submit(count_beside).result()

    assert load(caller).total.total() == 1


def test_counting_an_hour_twice_leaves_one_count(caller: Caller) -> None:
    make_calls(caller, NOW - 3 * HOUR, times=2)

    assert [count_hour(floor_to_hour(NOW - 3 * HOUR)) for _ in range(2)] == [True, True]

    assert load(caller).total.total() == 2


@pytest.mark.req("TOOLS-22")
def test_a_tenant_s_calls_are_counted_for_it_alone(caller: Caller, foreign_caller: Caller) -> None:
    make_calls(caller, NOW - 3 * HOUR)
    make_calls(foreign_caller, NOW - 3 * HOUR, times=4)
    make_calls(foreign_caller, NOW, times=5)

    for _ in range(2):
        assert load(caller).total.total() == 1
        assert load(foreign_caller).total.total() == 9
        count_due_hours(NOW)


def test_the_time_of_calls_is_of_those_that_ran_and_waited_for_nobody(caller: Caller) -> None:
    rows = make_calls(caller, NOW - HOUR, times=20)
    for place, row in enumerate(rows):
        Invocation.objects.filter(pk=row.pk).update(finished_at=row.created_at + timedelta(milliseconds=place + 1))
    (waited,) = make_calls(caller, NOW - HOUR)
    Invocation.objects.filter(pk=waited.pk).update(held_until=NOW, finished_at=NOW)

    found = measure_latency(tenant_id=caller.by.tenant_id, since=NOW - WEEK)

    assert (found.p50_ms, found.p95_ms) == (10.0, 19.0)
    assert load(caller).tools[ECHO].total() == 21


def test_the_time_of_calls_is_not_looked_for_behind_many_that_were_denied(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts, "LOOKED_AT", 3)
    (old,) = make_calls(caller, NOW - 2 * HOUR)
    Invocation.objects.filter(pk=old.pk).update(finished_at=old.created_at + timedelta(milliseconds=7))
    found = []
    for times in (2, 1):
        made = make_calls(caller, NOW - HOUR, state=State.DENIED, reason="POLICY.DENIED", times=times)
        Invocation.objects.filter(pk__in=[each.pk for each in made]).update(attempt=0)
        found.append(measure_latency(tenant_id=caller.by.tenant_id, since=NOW - WEEK).p50_ms)

    assert found == [7.0, None]
