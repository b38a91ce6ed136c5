"""Prices: what is set counts from its day on, the package stands behind it, and what has no price never costs 0."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.problems import SchemaInvalid
from llm.prices import MILLION, VENDORS, Price, PricedModel, PriceTable, convert_to_micros, is_version_of
from llm.usage import Cost, Usage

MODELS = [
    ("openai", "gpt-4o"),
    ("openai_responses", "gpt-4o-mini"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-2.5-flash"),
]
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
HERE = PricedModel("main", "small-1", "openai_compatible", "http://10.0.0.7/v1")
GPT = PricedModel("main", "gpt-4o", "openai")


def row(**changes: object) -> dict[str, Any]:
    return {
        "provider": "main",
        "model": "small-1",
        "effective_from": "2026-01-01",
        "input": "2",
        "output": "10",
    } | changes


def table(*rows: dict[str, Any]) -> PriceTable:
    return PriceTable.read({"prices": list(rows)})


def find_usd(
    prices: PriceTable, usage: Usage, model: PricedModel = HERE, at: datetime = NOW, **more: str
) -> Decimal | None:
    cost = prices.find_cost(usage, model, at=at, **more)
    return None if cost is None else cost.usd


def test_tokens_are_charged_by_the_million_and_cached_ones_once() -> None:
    prices = table(row(cached="0.5"))
    assert (
        find_usd(prices, Usage(1000, 100, cached_tokens=200))
        == (Decimal(2) * 800 + Decimal("0.5") * 200 + 1000) / MILLION
    )
    assert find_usd(table(row()), Usage(1000, 0, cached_tokens=200)) == Decimal("0.002")


def test_pictures_seconds_and_requests_are_charged_by_the_piece() -> None:
    prices = table(row(input="0", output="0", image="0.01", audio_second="0.0001", request="0.005"))
    cost = prices.find_cost(Usage(image_units=3, audio_seconds=12.5, requests=2), HERE, at=NOW)
    assert cost == Cost(Decimal("0.01"), Decimal(0), Decimal("0.03"), Decimal("0.00125"), price_version=prices.version)


def test_a_price_counts_from_its_day_on() -> None:
    prices = table(row(effective_from="2026-12-01", input="4"), row(), row(effective_from="2025-06-01", input="1"))
    million = Usage(MILLION)
    assert find_usd(prices, million) == 2
    assert find_usd(prices, million, at=datetime(2026, 11, 30, 23, 59, tzinfo=UTC)) == 2
    assert find_usd(prices, million, at=datetime(2026, 12, 1, tzinfo=UTC)) == 4
    assert find_usd(prices, million, at=datetime(2025, 12, 31, tzinfo=UTC)) == 1
    assert find_usd(prices, million, at=datetime(2024, 1, 1, tzinfo=UTC)) is None


@pytest.mark.req("LLM-7")
def test_what_has_no_price_and_what_nobody_counted_has_no_cost() -> None:
    prices = table(row())
    assert (
        find_usd(prices, Usage(10, 10), PricedModel("main", "other", "openai_compatible", "http://10.0.0.7/v1")) is None
    )
    assert find_usd(prices, Usage(10, 10), PricedModel("main", "no-such-model", "openai")) is None
    assert find_usd(prices, Usage(requests=3)) is None
    assert find_usd(prices, Usage(10, 10), PricedModel("else", "small-1")) is None


def test_a_server_of_ones_own_does_not_cost_what_the_maker_of_its_protocol_charges() -> None:
    assert find_usd(PriceTable(), Usage(MILLION), GPT) == Decimal("2.5")
    assert find_usd(PriceTable(), Usage(MILLION), PricedModel("main", "gpt-4o", "openai", "http://10.0.0.7/v1")) is None
    named = PricedModel("main", "gpt-4o", "openai_compatible", "https://api.openai.com/v1")
    assert find_usd(PriceTable(), Usage(MILLION), named) == Decimal("2.5")


def test_what_is_set_stands_before_the_package_which_can_be_left_out() -> None:
    prices = table(row(model="gpt-4o", input="7"))
    assert find_usd(prices, Usage(MILLION), GPT) == 7
    assert find_usd(PriceTable(packaged=False), Usage(MILLION), GPT) is None


def test_the_model_that_answered_is_paid_for() -> None:
    prices = table(row(), row(model="large-1", input="20"))
    million = Usage(MILLION)
    assert find_usd(prices, million, answered_by="large-1") == 20
    assert find_usd(prices, million, answered_by="small-1-2026-08-06") == 2
    assert find_usd(prices, million, answered_by="small-1-turbo") is None
    assert find_usd(prices, million, GPT, answered_by="gpt-4o-2024-08-06") == Decimal("2.5")


@pytest.mark.parametrize(
    "name", ["gpt-4o-2024-08-06", "gpt-4o-20240806", "gpt-4o@20240806", "gpt-4o-0806", "gpt-4o-latest"]
)
def test_a_name_with_a_date_behind_it_is_a_version(name: str) -> None:
    assert is_version_of(name, "gpt-4o")


@pytest.mark.parametrize("name", ["gpt-4o", "gpt-4o-mini", "gpt-4", "gpt-4o-2024-08-06-mini", "x", ""])
def test_another_name_is_another_model(name: str) -> None:
    assert not is_version_of(name, "gpt-4o")


def test_a_table_names_exactly_its_prices() -> None:
    one, other = row(), row(model="large-1")
    assert table(one, other).version == table(other, one).version
    assert table(one).version != table(one, other).version != table(one, row(model="large-1", input="3")).version
    assert PriceTable().version == f"genai-prices-{genai_prices.__version__}"
    assert PriceTable(packaged=False).version == "none"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"input": "-1"}, "/prices/0/input"),
    "no number": ({"input": "NaN"}, "/prices/0/input"),
    "a float": ({"output": 0.1}, "/prices/0/output"),
    "a truth": ({"output": True}, "/prices/0/output"),
    "endless": ({"output": "Infinity"}, "/prices/0/output"),
    "a number for a day": ({"effective_from": 20261130}, "/prices/0/effective_from"),
    "no day": ({"effective_from": "soon"}, "/prices/0/effective_from"),
    "an unknown unit": ({"pages": "1"}, "/prices/0/pages"),
    "no name of a provider": ({"provider": "Main Street"}, "/prices/0/provider"),
    "no model": ({"model": ""}, "/prices/0/model"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_price_is_refused_at_its_place(kind: str) -> None:
    changes, place = WRONG[kind]
    with pytest.raises(SchemaInvalid) as refused:
        table(row(**changes))
    assert [each["pointer"] for each in refused.value.details["findings"]] == [place]


def test_two_prices_from_one_day_are_refused() -> None:
    with pytest.raises(SchemaInvalid) as refused:
        table(row(), row(input="3"))
    assert refused.value.details["findings"][0]["pointer"] == "/prices/1/effective_from"


@given(st.decimals(min_value=0, max_value=1000, places=9))
def test_millionths_are_rounded_up_and_never_by_more_than_one(usd: Decimal) -> None:
    micros = convert_to_micros(Cost(input=usd))
    assert 0 <= micros - usd * MILLION < 1


def test_a_rate_turns_dollars_into_the_currency_of_budgets() -> None:
    assert convert_to_micros(Cost(input=Decimal("0.5")), rate=Decimal("7.2")) == 3_600_000


EUROS = {
    "currency": "EUR",
    "rates": [{"effective_from": "2026-11-01", "rate": "0.92"}, {"effective_from": "2026-12-01", "rate": "0.95"}],
}


def test_a_rate_counts_from_its_day_on_and_the_first_one_before_it_too() -> None:
    prices = PriceTable.read(EUROS)
    rates = [prices.find_rate(datetime(2026, month, 1, tzinfo=UTC)) for month in (1, 11, 12)]
    assert (prices.currency, rates) == ("EUR", [Decimal("0.92"), Decimal("0.92"), Decimal("0.95")])
    assert (PriceTable().currency, PriceTable().find_rate(NOW)) == ("USD", Decimal(1))


def test_the_version_of_a_table_names_its_rates() -> None:
    other = EUROS | {"currency": "CHF"}
    assert len({PriceTable.read(each).version for each in ({}, EUROS, other)}) == 3


def test_the_price_in_force_is_shown_in_dollars_with_whose_it_is() -> None:
    prices = table(row(cached="0.5"), row(model="gpt-4o", effective_from="2027-01-01"))
    set_here = {"origin": "set", "input": "2", "cached": "0.5", "output": "10"}
    assert prices.show_price(HERE, at=NOW) == set_here | {"image": "0", "audio_second": "0", "request": "0"}
    packaged = {"origin": "genai-prices", "input": "2.5", "cached": "1.25", "output": "10"}
    assert prices.show_price(GPT, at=NOW) == packaged
    assert prices.show_price(PricedModel("main", "no-such-model", "openai"), at=NOW) is None


@pytest.mark.req("LLM-7")
def test_a_thousand_calls_cost_what_the_package_computes_from_the_same_figures() -> None:
    chosen, prices = random.Random(11), PriceTable()
    ours = theirs = Decimal(0)
    for _ in range(1000):
        kind, model = chosen.choice(MODELS)
        tokens = chosen.randrange(1, 300_000)
        usage = Usage(tokens, chosen.randrange(0, 8000), cached_tokens=chosen.choice([0, tokens // 3]))
        at = NOW - timedelta(days=chosen.randrange(30))
        cost = prices.find_cost(usage, PricedModel("main", model, kind), at=at)
        assert cost is not None
        ours += cost.usd
        vendor = VENDORS[kind]
        counted = genai_prices.Usage(
            input_tokens=usage.input_tokens, cache_read_tokens=usage.cached_tokens, output_tokens=usage.output_tokens
        )
        theirs += genai_prices.calc_price(counted, model, provider_id=vendor, genai_request_timestamp=at).total_price
    assert ours == theirs > 0


def test_a_request_keeps_the_table_that_it_began_with() -> None:
    began = table(row())
    later = table(row(input="200"))
    assert (find_usd(began, Usage(MILLION)), find_usd(later, Usage(MILLION))) == (Decimal(2), Decimal(200))
    assert Price(provider="main", model="m", effective_from=date(2026, 1, 1), input=Decimal(1)).cached is None
