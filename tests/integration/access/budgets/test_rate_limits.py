"""Rate limits: are calls and failures that come too fast told to slow down, with Redis and without?"""

from __future__ import annotations

import json
import logging
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import F
from django.test import Client
from throttled import utils

from access.budgets import rate_limits
from access.budgets.services import set_budget
from access.problems import RateLimited
from evidence.models import Fact
from invocations.models import Invocation, Tally
from invocations.queue import sweeper
from kernel.ids import new_id
from kernel.outages import Outage
from tests.support.calls import ask, assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.budgets.lines import BudgetLine
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"
TEN_A_MINUTE = rate_limits.RateLimit(amount=10, window_s=60, burst=2)


class Clock:
    """The time of rates that are counted in memory."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(utils, "now_mono_f", found)
    rate_limits.make_memory_store.cache_clear()
    monkeypatch.setattr(rate_limits, "outage", Outage(rate_limits.log, gone="gone", back="back"))
    return found


@pytest.fixture
def redis_url() -> str:
    url = os.environ.get("TOOLHUB_TEST_REDIS_URL", "")
    assert url, "TOOLHUB_TEST_REDIS_URL names no Redis. Type `make test`, or `scripts/testenv start`."
    return url


def closed_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def waits(key: str, times: int, *, rate: rate_limits.RateLimit = TEN_A_MINUTE) -> list[float]:
    return [round(rate_limits.seconds_to_wait(key, rate, take=True), 3) for _ in range(times)]


@pytest.mark.req("TOOLS-29")
def test_a_burst_may_come_at_once_and_the_rest_evenly_spread(clock: Clock) -> None:
    assert waits("a", 3) == [0, 0, 6]

    clock.now += 5.9
    assert waits("a", 1) == [pytest.approx(0.1)]
    clock.now += 0.1
    assert waits("a", 2) == [0, 6]
    clock.now += 3600
    assert waits("a", 3) == [0, 0, 6]


def test_looking_counts_nothing(clock: Clock) -> None:
    looks = [rate_limits.seconds_to_wait("a", TEN_A_MINUTE, take=False) for _ in range(5)]

    assert looks == [0] * 5
    assert waits("a", 3) == [0, 0, 6]
    assert rate_limits.seconds_to_wait("a", TEN_A_MINUTE, take=False) == pytest.approx(6)


def test_with_redis_all_processes_count_together(clock: Clock, settings: Any, redis_url: str) -> None:
    settings.TOOLHUB_REDIS_URL = redis_url
    key = str(new_id())

    assert [wait > 0 for wait in waits(key, 3)] == [False, False, True]
    rate_limits._redis.cache_clear()  # as another process would begin
    rate_limits._limiter.cache_clear()

    assert waits(key, 1)[0] > 0
    assert rate_limits.make_memory_store().get(f"{rate_limits.PREFIX}:v1:gcra:{key}") is None


def test_without_an_answer_of_redis_each_process_counts_for_itself_and_says_so_once(
    clock: Clock, settings: Any, caplog: pytest.LogCaptureFixture, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TOOLHUB_REDIS_URL = f"redis://127.0.0.1:{closed_port()}/0"
    monkeypatch.setattr(logging.getLogger("toolhub"), "propagate", True)
    key = str(new_id())

    with caplog.at_level("WARNING", logger="toolhub.rates"):
        assert waits(key, 3) == [0, 0, 6]
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        rate_limits.outage._until = 0.001  # the time to try again has come
        settings.TOOLHUB_REDIS_URL = redis_url
        assert waits(key, 1) == [0]
        assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.req("TOOLS-29", "TOOLS-14")
@pytest.mark.django_db
def test_calls_beyond_the_rate_are_refused_with_the_time_to_wait_and_written_down(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, clock: Clock
) -> None:
    enable()
    grant()
    budget = set_budget(
        scope="agent", agent_id=caller.agent.pk, dimension="rate", amount=10, window_s=60, by=operator.by
    )
    for _ in range(3):
        assert ask(caller, ECHO)["allow"] is True  # a preflight only looks

    first, second = caller.invoke(ECHO, {}), caller.invoke(ECHO, {})

    assert first.status_code == 200
    body = assert_problem(second, 429, "QUOTA.RATE_LIMITED")
    assert second.headers["Retry-After"] == "6"
    assert body["error"]["details"]["budget"]["budget"] == budget.wire_id
    assert body["call"]["refused_at"] == "quota"
    assert ask(caller, ECHO)["refused_at"] == "quota"
    clock.now += 6
    assert caller.invoke(ECHO, {}).status_code == 200


@pytest.mark.django_db
def test_a_rate_that_is_changed_counts_with_the_next_call(
    caller: Caller, operator: Person, lines: Callable[..., list[BudgetLine]], clock: Clock
) -> None:
    what: dict[str, Any] = {"scope": "tenant", "dimension": "rate", "window_s": 60, "by": operator.by}
    set_budget(**what, amount=10)
    rate_limits.check_rates(lines(), take=True)
    with pytest.raises(RateLimited):
        rate_limits.check_rates(lines(), take=True)

    set_budget(**what, amount=100)

    rate_limits.check_rates(lines(), take=True)


# What the hub limits by itself.


@pytest.mark.django_db
def test_who_is_refused_all_the_time_does_not_fill_the_log(
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    settings: Any,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    settings.TOOLHUB_RATE_FAILED_KEYS = settings.TOOLHUB_RATE_REFUSED_CALLS = 1
    monkeypatch.setattr(logging.getLogger("toolhub"), "propagate", True)

    def be_refused() -> list[str]:
        caplog.clear()
        with caplog.at_level("WARNING", logger="toolhub.rates"):
            for _ in range(4):
                Client().get("/api/v1/tools", headers={"Authorization": "Bearer none"})
                caller.invoke(ECHO, {"text": 5})  # not by the schema
        return [record.getMessage().rpartition("(")[2].partition(":")[0] for record in caplog.records]

    assert be_refused() == ["failed-keys", "refused-calls"]
    assert be_refused() == []
    clock.now += 61
    assert be_refused() == ["failed-keys", "refused-calls"]


@pytest.mark.django_db
def test_requests_without_a_valid_key_are_told_to_slow_down_and_valid_ones_are_answered(
    caller: Caller, settings: Any, clock: Clock
) -> None:
    settings.TOOLHUB_RATE_FAILED_KEYS = 3

    answers = [Client().get("/api/v1/tools", headers={"Authorization": f"Bearer {n}"}) for n in range(5)]

    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    body = assert_problem(answers[-1], 429, "QUOTA.RATE_LIMITED")
    assert answers[-1].headers["Retry-After"] == "20"
    assert body["error"]["details"]["because"]["reason"] == "AUTH.UNAUTHENTICATED"
    assert caller.get("/tools").status_code == 200
    clock.now += 20
    assert Client().get("/api/v1/tools").status_code == 401


@pytest.mark.django_db
def test_refused_calls_without_end_do_not_fill_the_evidence(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, settings: Any, clock: Clock
) -> None:
    settings.TOOLHUB_RATE_REFUSED_CALLS = 3
    enable()
    grant()

    answers = [caller.invoke(ECHO, {"text": 5}) for _ in range(6)]  # not by the schema

    assert [answer.status_code for answer in answers] == [422, 422, 422, 429, 429, 429]
    body = assert_problem(answers[-1], 429, "QUOTA.RATE_LIMITED")
    assert body["error"]["details"]["because"]["reason"] == "SCHEMA.VALIDATION_FAILED"  # it still says what is wrong
    assert Invocation.objects.count() == 3
    assert Fact.objects.filter(kind__startswith="invocation.").count() == 6
    Tally.objects.update(minute=F("minute") - 2)
    done = [sweeper.sweep_once()["counted_witnessed"] for _ in range(2)]
    witnesses = Fact.objects.filter(kind="request.rejected", subject=caller.agent.wire_id, outcome="denied")
    assert done == [witnesses.count(), 0]
    assert sum(json.loads(bytes(fact.leaf))["data"]["calls"] for fact in witnesses) == 3  # of which no other fact says
    assert not Tally.objects.exists()
    assert caller.invoke(ECHO, {}).status_code == 200  # a call that may be made is made


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("", "unknown"),
        ("a socket", "unknown"),
    ],
)
def test_addresses_that_one_customer_has_count_together(address: str, network: str) -> None:
    assert rate_limits.client_network(address) == network
