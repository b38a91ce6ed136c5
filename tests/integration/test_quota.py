"""Does a grant's limit hold, however many calls come at once?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from access.models import QuotaWindow
from access.problems import QuotaExceeded
from evidence.models import Fact
from invocations import acceptance, services
from invocations.models import Invocation, State
from invocations.preflight import check_quota, window_start
from tests.calls import PAIR, kinds_of, row_of
from tests.threads import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.calls import Bell
    from tests.conftest import Caller

ECHO = "sample.tools.echo"
CALLERS = 20
LIMIT = 7


@pytest.mark.req("TOOLS-29")
@pytest.mark.django_db(transaction=True)
def test_twenty_calls_at_once_get_exactly_as_many_as_the_grant_allows(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    given = grant(calls_limit=LIMIT, window_s=31_536_000)

    answers = at_once(
        CALLERS, lambda number: caller.invoke(ECHO, {"text": str(number)}, headers={"Prefer": "respond-async"})
    )

    statuses = sorted(answer.status_code for answer in answers)  # type: ignore[union-attr]
    assert statuses == [202] * LIMIT + [429] * (CALLERS - LIMIT)
    assert QuotaWindow.objects.get(grant=given).used == LIMIT
    assert Invocation.objects.filter(state=State.QUEUED).count() == LIMIT
    assert Fact.objects.filter(kind="invocation.began").count() == CALLERS
    assert Fact.objects.filter(kind="invocation.ended").count() == CALLERS - LIMIT
    assert len(bell.rung) == LIMIT
    bell.deliver()
    assert Fact.objects.filter(kind="invocation.ended").count() == CALLERS


@pytest.mark.req("TOOLS-29", "TOOLS-14")
@pytest.mark.django_db
def test_a_call_beyond_the_limit_says_when_to_come_again(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant(calls_limit=1, window_s=31_536_000)

    first, second = caller.invoke(ECHO, {}), caller.invoke(ECHO, {})

    assert first.status_code == 200
    assert first.json()["call"]["budget"]["remaining"] == 1
    assert second.status_code == 429
    error = second.json()["error"]
    assert (error["code"], error["reason"]) == ("RATE_LIMITED", "QUOTA.BUDGET_EXCEEDED")
    assert int(second.headers["Retry-After"]) == error["retry_after_s"] > 0
    assert error["details"]["budget"]["remaining"] == 0
    assert second.json()["call"]["refused_at"] == "quota"
    assert kinds_of(row_of(second)) == PAIR


@pytest.mark.django_db
def test_a_new_window_begins_with_a_full_budget(caller: Caller, grant: Callable[..., Any]) -> None:
    given = grant(calls_limit=1, window_s=60)
    now = datetime(2026, 5, 1, 12, 0, 59, tzinfo=UTC)
    acceptance.consume_quota(given, now)

    with pytest.raises(QuotaExceeded) as caught:
        check_quota([given], now)
    assert caught.value.retry_after == 1

    later = datetime(2026, 5, 1, 12, 1, 0, tzinfo=UTC)
    assert window_start(given, later) == later
    assert check_quota([given], later)[1]["remaining"] == 1


@pytest.mark.django_db
def test_a_refused_call_costs_nothing(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant(calls_limit=2)

    caller.invoke(ECHO, {"text": 5})  # not by the schema

    assert not QuotaWindow.objects.exists()


@pytest.mark.django_db
def test_a_preflight_costs_nothing(caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable()
    grant(calls_limit=2)
    body = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}}

    answers = [caller.post(f"/tools/{ECHO}/preflight", body).json()["data"] for _ in range(3)]

    assert [answer["budget_snapshot"]["remaining"] for answer in answers] == [2, 2, 2]
    assert not QuotaWindow.objects.exists()


@pytest.mark.django_db
def test_a_second_grant_serves_when_the_first_is_used_up(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    narrow = grant(ECHO, calls_limit=1, window_s=31_536_000)
    wide = grant("*", calls_limit=1, window_s=31_536_000)

    used = [row_of(caller.invoke(ECHO, {})).grant_id for _ in range(2)]
    third = caller.invoke(ECHO, {})

    assert used == [narrow.pk, wide.pk]  # the most specific first
    assert third.status_code == 429
