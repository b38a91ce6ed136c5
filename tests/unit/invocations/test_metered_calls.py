"""Metered calls: does what calls are settled at come to what their providers' own journals come to?"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import genai_prices
import pytest

from invocations.model_calls.model_demand import ModelDemand
from invocations.model_calls.model_facts import ESTIMATE, PROVIDER, ModelReport
from invocations.model_calls.model_prices import CallPrices
from invocations.model_calls.model_settlement import build_model_report
from invocations.model_calls.sent_requests import SentRequest
from llm.answers import ChatDelta, FinishReason
from llm.prices import MILLION, VENDORS, PricedModel, PriceTable
from llm.usage import Usage

CALLS = 1000
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
# Kind of the provider, the model that is asked, and the one that answers.
ANSWERS = [
    ("openai", "gpt-4o", "gpt-4o"),
    ("openai", "gpt-4o", "gpt-4o-2024-08-06"),
    ("openai", "gpt-4o", "gpt-4o-mini"),
    ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
    ("gemini", "gemini-2.5-flash", "gemini-2.5-flash"),
]
FLAVOURS = {"openai": "chat", "anthropic": "default", "gemini": "default"}


def draw_answer(kind: str, model: str, chosen: random.Random) -> dict[str, Any]:
    """An answer as it stands in the journal of a provider of this kind."""
    read, written = chosen.randrange(1, 100_000), chosen.randrange(1, 8000)
    cached = chosen.choice([0, read // 3])
    if kind == "anthropic":
        usage = {"input_tokens": read - cached, "cache_read_input_tokens": cached, "output_tokens": written}
        return {"model": model, "usage": usage}
    if kind == "gemini":
        counts = {"promptTokenCount": read, "cachedContentTokenCount": cached, "candidatesTokenCount": written}
        return {"modelVersion": model, "usageMetadata": counts}
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"model": model, "usage": {"prompt_tokens": read, "completion_tokens": written, **details}}


def read_usage(kind: str, answer: dict[str, Any]) -> Usage:
    """As an adapter reports it: cached tokens are a part of the input."""
    if kind == "anthropic":
        said = answer["usage"]
        cached = said["cache_read_input_tokens"]
        return Usage(said["input_tokens"] + cached, said["output_tokens"], cached)
    if kind == "gemini":
        said = answer["usageMetadata"]
        return Usage(said["promptTokenCount"], said["candidatesTokenCount"], said["cachedContentTokenCount"])
    said = answer["usage"]
    cached = said["prompt_tokens_details"]["cached_tokens"]
    return Usage(said["prompt_tokens"], said["completion_tokens"], cached)


def settle(kind: str, asked: str, usages: list[Usage | None], answered: str, *, address: str = "") -> ModelReport:
    """One call of as many requests; more than one are answers that were not the JSON that was asked for."""
    prices = CallPrices(PriceTable(), PricedModel("main", asked, kind, address), NOW)
    demand = ModelDemand(200, 100, prices, counted_tokens=200)
    preflight = SimpleNamespace(model_demand=demand, verdict=None, fallbacks=())
    sent = []
    for usage in usages:
        sent.append(request := SentRequest())
        request.add(ChatDelta(text="some words" if usage is None or usage.output_tokens else "", model=answered))
        request.add(ChatDelta(finish_reason=FinishReason.STOP, usage=usage))
    part = SimpleNamespace(provider="main", name=asked, operation="chat")
    attempt = SimpleNamespace(preflight=preflight, part=part, sent=sent, demand=demand, problem=None)
    chain = SimpleNamespace(current=attempt, asked=[attempt], requests=len(usages))
    run: Any = SimpleNamespace(preflight=preflight, chain=chain)
    return build_model_report(run, None, first_token_ms=None)


@pytest.mark.req("LLM-7")
def test_a_thousand_mixed_calls_are_settled_within_half_a_per_cent_of_the_journal() -> None:
    chosen, settled, journal = random.Random(7), 0, Decimal(0)
    for _ in range(CALLS):
        kind, asked, answered = chosen.choice(ANSWERS)
        answers = [draw_answer(kind, answered, chosen) for _ in range(chosen.choice([1, 1, 1, 2]))]
        report = settle(kind, asked, [read_usage(kind, each) for each in answers], answered)
        assert report.settled_by == PROVIDER
        assert report.cost_micros is not None
        settled += report.cost_micros
        for each in answers:
            found = genai_prices.extract_usage(each, provider_id=VENDORS[kind], api_flavor=FLAVOURS[kind])
            journal += found.calc_price(genai_request_timestamp=NOW).total_price

    assert abs(settled / MILLION - float(journal)) <= 0.005 * float(journal)
    assert settled > 0


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("usage", [None, Usage()])
def test_where_nobody_counted_the_call_is_estimated_and_does_not_cost_nothing(usage: Usage | None) -> None:
    report = settle("openai", "gpt-4o", [usage], "gpt-4o")

    assert (report.settled_by, report.reported) == (ESTIMATE, None)
    assert report.cost_micros
    assert report.metered == {}


@pytest.mark.req("LLM-7")
def test_what_has_no_price_has_no_cost_whatever_it_used() -> None:
    report = settle("openai", "gpt-4o", [Usage(1000, 100)], "gpt-4o", address="http://10.0.0.7/v1")

    assert (report.cost_micros, report.price, report.usage_to_json()["cost_micros"]) == (None, "", None)
    assert report.tokens == 1100


@pytest.mark.req("LLM-7")
def test_the_model_that_answered_is_priced_and_not_the_one_that_was_asked() -> None:
    large, small = (settle("openai", "gpt-4o", [Usage(MILLION)], each) for each in ("gpt-4o", "gpt-4o-mini"))

    assert (large.cost_micros, small.cost_micros) == (2_500_000, 150_000)


@pytest.mark.req("LLM-7")
def test_what_a_router_says_that_it_charges_is_a_third_figure_beside_tokens_and_price() -> None:
    report = settle("openai", "gpt-4o", [Usage(MILLION, charged_usd=Decimal("2.55"))], "gpt-4o")

    assert report.cost_micros == 2_500_000
    assert report.usage_to_json()["charged_usd"] == "2.55"
    assert report.metered["money"] == (2_550_000_000, 2_500_000_000)


@pytest.mark.req("LLM-7")
def test_each_request_is_priced_by_its_own_size_and_its_own_model() -> None:
    """There are models that charge more for long requests; two short ones are none."""
    one = settle("gemini", "gemini-2.5-pro", [Usage(150_000, 1)], "gemini-2.5-pro")
    two = settle("gemini", "gemini-2.5-pro", [Usage(150_000, 1)] * 2, "gemini-2.5-pro")

    assert one.cost_micros is not None
    assert two.cost_micros == pytest.approx(2 * one.cost_micros, abs=1)


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize("usage", [Usage(0, 7), Usage(50, 0)], ids=["no input", "no output"])
def test_a_figure_of_nothing_for_something_that_was_there_is_estimated(usage: Usage) -> None:
    prices = CallPrices(PriceTable(), PricedModel("main", "gpt-4o", "openai"), NOW)
    sent = SentRequest()
    sent.add(ChatDelta(text="some words"))
    sent.add(ChatDelta(finish_reason=FinishReason.STOP, usage=usage))

    counted = sent.count(ModelDemand(200, 100, prices, counted_tokens=200))

    assert (counted.input_tokens, counted.output_tokens) == (usage.input_tokens or 200, usage.output_tokens or 4)
    assert counted.estimated
