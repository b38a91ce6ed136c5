"""Settled requests: is what each request of a call took settled by what the provider reported of it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from llm.answers import ChatDelta, FinishReason
from llm.problems import ProviderRateLimited, StreamTruncated
from llm.usage import Usage
from registry.models import ModelProvider
from tests.support.budgets import DAY, balance
from tests.support.calls import assert_problem, row_of
from tests.support.connected_models import connect_scripted_model, set_script_prices
from tests.support.model_calls import ask, leaf_of, say
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from access.models import Budget
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
JSON = {"type": "schema", "json_schema": {"type": "object", "required": ["a"]}}


@pytest.fixture
def money(operator: Person, model: Tool) -> Budget:
    set_script_prices(operator.by, input="1", output="1")
    return set_budget(scope="tenant", dimension="money", amount=100_000, window_s=365 * DAY, by=operator.by)


def usage_in_end(answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = leaf_of(row_of(answer), "invocation.ended")["model"]
    return found


@pytest.mark.req("LLM-7")
def test_both_requests_of_a_structured_answer_that_failed_are_settled_by_what_was_reported(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    bench.scripts = [text_answer("no JSON"), text_answer("nor this")]

    answer = ask(caller, say("Hello", response_format=JSON))

    assert_problem(answer, 422, "SCHEMA.VALIDATION_FAILED")
    said = usage_in_end(answer)
    assert (said["settled_by"], said["requests"], said["reported"]) == ("provider", 2, {"input": 20, "output": 4})
    assert balance(money) == (24, 0)


@pytest.mark.req("LLM-7")
def test_the_first_request_is_settled_as_reported_where_the_provider_refuses_the_second(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [text_answer("no JSON"), (ProviderRateLimited(retry_after_s=7),)]

    answer = ask(caller, say("Hello", response_format=JSON))

    assert_problem(answer, 429, "PROVIDER.RATE_LIMITED")
    assert (usage_in_end(answer)["settled_by"], usage_in_end(answer)["requests"]) == ("provider", 2)
    assert balance(money) == (12, 0)


@pytest.mark.req("LLM-7")
def test_one_request_that_nobody_counted_is_estimated_beside_one_that_was_reported(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    silent = (ChatDelta(text='{"a": 1}'), ChatDelta(finish_reason=FinishReason.STOP, usage=Usage()))
    bench.scripts = [text_answer("no JSON"), silent]

    answer = ask(caller, say("Hello", response_format=JSON))

    said, usage = usage_in_end(answer), answer.json()["data"]["usage"]
    assert (said["settled_by"], said["reported"]) == ("estimate", {"input": 10, "output": 2})
    assert usage["input_tokens"] == 10 + said["estimated"]["input"] // 2
    assert balance(money) == (usage["input_tokens"] + usage["output_tokens"], 0)


@pytest.mark.req("LLM-7")
def test_what_was_reported_before_an_answer_was_cut_off_is_the_least_that_it_took(
    caller: Caller, money: Budget, bench: ProviderBench
) -> None:
    bench.scripts = [(ChatDelta(text="Half", usage=Usage(5_000, 1)), StreamTruncated())]

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 502, "PROVIDER.STREAM_TRUNCATED")
    assert usage_in_end(answer)["settled_by"] == "estimate"
    assert balance(money) == (5_000 + 2, 0)


@pytest.mark.req("LLM-7")
def test_vectors_are_settled_by_what_was_reported(
    caller: Caller, operator: Person, money: Budget, bench: ProviderBench
) -> None:
    connect_scripted_model(operator.by, "vectors", operation="embed", unpriced="count")

    answer = ask(caller, {"items": ["x"]}, model="model.script.vectors", operation="embed")

    assert answer.json()["data"]["usage"]["counted_by"] == "provider"
    assert balance(money) == (1, 0)
