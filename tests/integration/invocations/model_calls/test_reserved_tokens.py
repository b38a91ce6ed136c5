"""Reserved tokens and money: is what a call of a model may take set aside before, and settled by what it took?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.model_calls import model_runs
from llm.answers import ChatDelta, FinishReason
from llm.usage import Usage
from tests.support.budgets import balance, limit_tenant
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import set_script_prices
from tests.support.model_calls import ask, leaf_of, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db


@pytest.mark.req("LLM-7", "LLM-11")
def test_tokens_are_reserved_before_and_settled_by_what_the_provider_reported(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget, before = limit_tenant(operator, "tokens", 10_000), []
    execute = model_runs.ModelRun.execute

    async def looked_at(self: model_runs.ModelRun) -> Any:
        before.append(self._asked.preflight.demand.tokens)
        return await execute(self)

    monkeypatch.setattr(model_runs.ModelRun, "execute", looked_at)

    answer = ask(caller, say("Hello", max_tokens=500))

    assert before[0] > 500
    assert balance(budget) == (12, 0)
    [line] = answer.json()["call"]["budget"]
    assert line["takes"] == before[0]
    assert leaf_of(row_of(answer), "invocation.ended")["budget"]["spent"]["tokens"] == 12


@pytest.mark.req("LLM-7")
def test_where_the_provider_reports_nothing_an_estimate_is_counted_and_said_to_be_one(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    budget = limit_tenant(operator, "tokens", 10_000)
    bench.scripts = [(ChatDelta(text="Hi there"), ChatDelta(finish_reason=FinishReason.STOP, usage=Usage()))]

    answer = ask(caller, say("Hello"))

    usage = answer.json()["data"]["usage"]
    assert usage["counted_by"] == "estimate"
    assert balance(budget) == (usage["input_tokens"] + usage["output_tokens"], 0)
    assert usage["output_tokens"] > 0
    ended = leaf_of(row_of(answer), "invocation.ended")["model"]
    assert ("reported" in ended, ended["settled_by"]) == (False, "estimate")


@pytest.mark.req("LLM-11")
def test_where_the_tokens_are_used_up_the_model_is_not_asked(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    budget = limit_tenant(operator, "tokens", 100)

    answer = ask(caller, say("Hello", max_tokens=100))

    assert_problem(answer, 429, "QUOTA.BUDGET_EXCEEDED")
    assert "tokens" in answer.json()["error"]["message"]
    assert kinds_of(row_of(answer)) == PAIR
    assert balance(budget) == (0, 0)
    assert bench.provider is None


@pytest.mark.req("LLM-7")
def test_a_model_without_a_price_is_refused_where_that_was_decided(
    caller: Caller, grant: Callable[..., Any], connect: Callable[..., Tool], bench: ProviderBench
) -> None:
    grant("model.*")
    connect(unpriced="refuse")

    answer = ask(caller, say("Hello"))

    assert_problem(answer, 403, "MODEL.UNPRICED")
    assert kinds_of(row_of(answer)) == PAIR
    assert bench.provider is None


@pytest.fixture
def priced(operator: Person) -> None:
    """A model that costs a dollar for a million tokens of a request, and ten for a million of an answer."""
    set_script_prices(operator.by, input="1", output="10")


@pytest.mark.req("LLM-7", "LLM-11")
def test_money_is_reserved_for_the_longest_answer_and_settled_by_what_the_provider_counted(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, priced: None
) -> None:
    budget = limit_tenant(operator, "money", 10_000)
    preflight = ask(caller, say("Hello", max_tokens=100), operation="preflight").json()["data"]
    most = preflight["model"]["input_tokens"] + 10 * 100

    answer = ask(caller, say("Hello", max_tokens=100))

    usage = answer.json()["data"]["usage"]
    cost = usage["input_tokens"] + 10 * usage["output_tokens"]  # in millionths
    assert preflight["model"]["cost_micros"] == preflight["budget_snapshot"][0]["takes"] == most
    assert (usage["counted_by"], usage["cost_micros"], balance(budget)) == ("provider", cost, (cost, 0))
    said = leaf_of(row_of(answer), "invocation.ended")["model"]
    assert (said["cost_micros"], said["price"]) == (cost, usage["price_version"])


@pytest.mark.req("LLM-11")
def test_a_call_for_which_there_is_no_money_is_refused_before_anything_is_sent(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, priced: None
) -> None:
    limit_tenant(operator, "money", 900)

    assert_problem(ask(caller, say("Hello", max_tokens=100)), 429, "QUOTA.BUDGET_EXCEEDED")
    assert bench.provider is None
    assert ask(caller, say("Hello", max_tokens=50)).status_code == 200


@pytest.mark.req("LLM-8", "LLM-11")
def test_two_requests_are_reserved_for_json_that_may_be_asked_for_again(
    caller: Caller, model: Tool, bench: ProviderBench
) -> None:
    text, wanted = say("Hello", max_tokens=100), {"type": "json"}
    once = ask(caller, text, operation="preflight").json()["data"]["model"]
    twice = ask(caller, text | {"response_format": wanted}, operation="preflight").json()["data"]["model"]

    assert (once["requests"], twice["requests"]) == (1, 2)
    assert twice["input_tokens"] == once["input_tokens"]
