"""Provider rates: is a provider asked no faster than its settings say, before it says no itself?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from access.budgets import rate_limits
from invocations.model_calls import model_attempts, provider_rates
from kernel.problems import SchemaInvalid
from registry.model_providers.services import change_provider
from registry.model_providers.settings import ProviderRates
from registry.models import ModelProvider
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.model_calls import ask, say

if TYPE_CHECKING:
    from invocations.model_calls.provider_rates import ProviderLimit
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db


def set_rates(operator: Person, **rates: int) -> None:
    change_provider(name="script", settings={"retries": 2, "rates": rates}, reason="for a test", by=operator.by)


@pytest.mark.req("LLM-14")
@pytest.mark.parametrize("rates", [{"requests": 1}, {"tokens": 200}], ids=["requests", "tokens"])
def test_a_call_that_would_be_too_much_is_refused_with_the_time_and_is_not_sent(
    rates: dict[str, int], caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    set_rates(operator, **rates)

    first, second = (ask(caller, say("Hello", max_tokens=100)) for _ in range(2))

    assert first.status_code == 200
    assert_problem(second, 429, "PROVIDER.RATE_LIMITED")
    assert int(second["Retry-After"]) > provider_rates.LONGEST_WAIT_S
    assert len(bench.requests) == 1
    call = row_of(second)
    assert (call.state, call.idempotency_key, kinds_of(call)) == ("failed", "", PAIR)


@pytest.mark.req("LLM-14")
def test_a_short_wait_is_waited_for_and_a_longer_one_is_not(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rates(operator, requests=60)
    waits, slept = iter([2.0, 1.5, 0.0, 4.0, 2.0]), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(model_attempts, "take_from_limit", lambda _: next(waits))
    monkeypatch.setattr(model_attempts, "sleep", sleep)

    waited, refused = (ask(caller, say("Hello")) for _ in range(2))

    assert waited.status_code == 200
    assert_problem(refused, 429, "PROVIDER.RATE_LIMITED")
    assert slept == [2.0, 1.5, 4.0]


@pytest.mark.req("LLM-14")
def test_who_waits_for_a_request_does_not_use_up_the_tokens_of_others(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rates(operator, requests=60, tokens=100_000)
    waits, taken = iter([1.0, 1.0, 1.0, 0.0]), []

    async def sleep(_: float) -> None: ...

    def take(limit: ProviderLimit) -> float:
        kind = limit.key.split(":")[2]
        wait = next(waits) if kind == "requests" else 0.0
        if not wait:
            taken.append(kind)
        return wait

    monkeypatch.setattr(model_attempts, "take_from_limit", take)
    monkeypatch.setattr(model_attempts, "sleep", sleep)

    assert ask(caller, say("Hello")).status_code == 200
    assert taken == ["tokens", "requests"]


@pytest.mark.req("LLM-14")
def test_processes_count_together_where_there_is_redis(
    operator: Person, model: Tool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = os.environ.get("TOOLHUB_TEST_REDIS_URL", "")
    assert url, "TOOLHUB_TEST_REDIS_URL names no Redis. Type `make test`, or `scripts/testenv start`."
    settings.TOOLHUB_REDIS_URL = url
    provider, rates = ModelProvider.objects.get(), ProviderRates(requests=2)
    [limit] = provider_rates.list_limits(provider, rates, 10)
    assert provider_rates.take_from_limit(limit) == 0
    monkeypatch.setattr(rate_limits, "make_memory_store", None)  # what another process would not have

    assert provider_rates.take_from_limit(limit) > 0


@pytest.mark.req("LLM-14")
@pytest.mark.parametrize("wrong", [{"requests": 0}, {"calls": 5}, {"tokens": "many"}, []])
def test_a_rate_is_a_number_and_of_requests_or_tokens(wrong: Any, operator: Person, model: Tool) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        change_provider(name="script", settings={"rates": wrong}, reason="for a test", by=operator.by)
    assert refused.value.details["findings"][0]["pointer"].startswith("/settings/rates")
