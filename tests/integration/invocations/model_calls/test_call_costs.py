"""Call costs: is what a call took written down once, with its End, by the same figures as budgets count?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from access.budgets.services import set_budget
from invocations.call_costs.models import CallCost
from llm.problems import ProviderRateLimited
from registry.models import ModelProvider
from tests.support.budgets import DAY, balance
from tests.support.calls import row_of
from tests.support.connected_models import MODEL, set_script_prices
from tests.support.model_calls import ask, say
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db


@pytest.mark.req("LLM-7")
def test_what_a_model_took_is_written_with_the_end_of_its_call(caller: Caller, operator: Person, model: Tool) -> None:
    rates = [{"effective_from": "2026-01-01", "rate": "2"}]
    set_script_prices(operator.by, currency="EUR", rates=rates, input="1", output="1")
    budget = set_budget(scope="tenant", dimension="money", amount=100_000, window_s=365 * DAY, by=operator.by)

    answer = ask(caller, say("Hello"))

    call, usage = row_of(answer), answer.json()["data"]["usage"]
    row = CallCost.objects.get()
    assert (row.invocation_id, row.tool, row.agent_id) == (call.pk, MODEL, caller.agent.pk)
    assert (row.micros, row.currency) == (usage["cost_micros"], "EUR")
    assert (row.input_tokens, row.output_tokens) == (usage["input_tokens"], usage["output_tokens"])
    assert row.made_at == call.created_at
    assert balance(budget) == (row.micros, 0)


@pytest.mark.req("LLM-7")
def test_a_model_without_a_price_never_costs_nothing(caller: Caller, model: Tool) -> None:
    ask(caller, say("Hello"))

    row = CallCost.objects.get()
    assert row.micros is None
    assert row.output_tokens > 0


@pytest.mark.req("LLM-7")
def test_a_call_that_the_provider_refused_has_no_cost(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench
) -> None:
    set_script_prices(operator.by, input="1", output="1")
    ModelProvider.objects.update(settings={"retries": 0})
    bench.scripts = [(ProviderRateLimited(retry_after_s=7),), text_answer("later")]

    ask(caller, say("Hello"))

    assert not CallCost.objects.exists()
