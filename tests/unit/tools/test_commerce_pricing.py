"""Commerce pricing: does a quote say the right price, and no when there is none?"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import catalog
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

QUOTE = "commerce.pricing.get_realtime_quote"
BLACK_WEEK = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)


def _sum(entries: list[dict[str, Any]]) -> Decimal:
    return sum((Decimal(entry["amount"]) for entry in entries), Decimal(0))


@given(
    sku=st.sampled_from(sorted(catalog.products())),
    share=st.integers(1, 100),
    currency=st.sampled_from(["USD", "EUR", "JPY", "CNY", "KRW", "KWD"]),
)
def test_the_total_of_a_quote_is_the_subtotal_less_all_discounts(ask: Ask, sku: str, share: int, currency: str) -> None:
    quantity = max(1, sum(catalog.stock_of(sku).values()) * share // 100)

    quote = ask(QUOTE, {"sku": sku, "quantity": quantity, "currency": currency}, started_at=BLACK_WEEK).value

    assert Decimal(quote["subtotal"]) - _sum(quote["discounts"]) == Decimal(quote["total"])
    assert Decimal(quote["unit_price"]) * quantity == Decimal(quote["total"])
    assert Decimal(quote["list_price"]) * quantity == Decimal(quote["subtotal"])


@given(sku=st.sampled_from(sorted(catalog.products())), data=st.data())
def test_the_unit_price_never_rises_with_the_quantity(ask: Ask, sku: str, data: st.DataObject) -> None:
    available = sum(catalog.stock_of(sku).values())
    fewer, more = sorted(data.draw(st.tuples(st.integers(1, available), st.integers(1, available))))

    unit_prices = [Decimal(ask(QUOTE, {"sku": sku, "quantity": n}).value["unit_price"]) for n in (fewer, more)]

    assert unit_prices[1] <= unit_prices[0]


def test_a_fixed_price_in_a_currency_wins_over_the_exchange_rate(ask: Ask) -> None:
    fixed = ask(QUOTE, {"sku": "LAPTOP-14", "currency": "EUR"})
    converted = ask(QUOTE, {"sku": "LAPTOP-14", "currency": "JPY"})

    assert (fixed.value["unit_price"], fixed.value["exchange_rate"]) == ("949.00", None)
    assert converted.value["unit_price"] == "152248"
    assert converted.value["exchange_rate"]["rate"] == "152.4"
    assert {source.type for source in converted.report.sources} - {source.type for source in fixed.report.sources} == {
        "exchange_rates"
    }


def test_a_quote_uses_the_currency_of_the_call_when_none_is_named(ask: Ask) -> None:
    assert ask(QUOTE, {"sku": "LAPTOP-14"}, currency="GBP").value["unit_price"] == "799.00"


def test_a_quantity_break_and_a_promotion_follow_one_another(ask: Ask) -> None:
    quote = ask(QUOTE, {"sku": "LAMP-BULB-E27", "quantity": 60, "currency": "USD"}).value

    assert [discount["kind"] for discount in quote["discounts"]] == ["quantity_break", "promotion"]
    assert quote["unit_price"] == "11.40"  # 14.90 less 15 % is 12.67, less 10 % is 11.40


def test_a_promotion_counts_only_inside_its_window(ask: Ask) -> None:
    before = ask(QUOTE, {"sku": "EARBUDS-PRO"}).value
    inside = ask(QUOTE, {"sku": "EARBUDS-PRO"}, started_at=BLACK_WEEK).value

    assert before["discounts"] == []
    assert [discount["id"] for discount in inside["discounts"]] == ["BLACK-WEEK-2026"]
    assert inside["unit_price"] == "67.92"


@pytest.mark.req("SPEC-5")
def test_a_quote_is_fresh_for_a_minute_and_never_beyond_its_promotion(ask: Ask) -> None:
    last_seconds = datetime(2026, 11, 30, 23, 59, 39, tzinfo=UTC)

    assert ask(QUOTE, {"sku": "EARBUDS-PRO"}).report.ttl_seconds == 60
    ending = ask(QUOTE, {"sku": "EARBUDS-PRO"}, started_at=last_seconds)
    assert ending.report.ttl_seconds == 20
    assert ending.value["valid_until"] == "2026-11-30T23:59:59Z"


@pytest.mark.req("SPEC-6")
def test_a_changed_price_is_refused_with_both_prices(ask: Ask) -> None:
    with pytest.raises(runtime.PriceChanged) as refusal:
        ask(QUOTE, {"sku": "LAPTOP-14", "currency": "USD", "expected_unit_price": "949.00"})

    assert refusal.value.details["expected"] == "949.00"
    assert refusal.value.details["current"] == "999.00"


def test_the_expected_price_may_be_written_shorter(ask: Ask) -> None:
    ask(QUOTE, {"sku": "LAPTOP-14", "currency": "USD", "expected_unit_price": "999"})


@pytest.mark.req("SPEC-6")
def test_short_stock_is_refused_with_the_number_that_is_left(ask: Ask) -> None:
    with pytest.raises(runtime.OutOfStock, match="Only 8 of CAMERA-THERMAL") as refusal:
        ask(QUOTE, {"sku": "CAMERA-THERMAL", "quantity": 9})

    assert refusal.value.details == {"sku": "CAMERA-THERMAL", "requested": 9, "available": 8}


def test_a_quantity_that_leaves_little_is_warned_of(ask: Ask) -> None:
    assert ask(QUOTE, {"sku": "CAMERA-THERMAL", "quantity": 5}).report.warnings == [
        "Stock is low: 3 of CAMERA-THERMAL would be left after this quantity."
    ]


@pytest.mark.req("SPEC-6")
def test_an_unknown_sku_is_refused_with_similar_ones(ask: Ask) -> None:
    with pytest.raises(runtime.NotFound, match="Did you mean HEADPHONES-ANC") as refusal:
        ask(QUOTE, {"sku": "HEADPHONE-ANC"})

    assert "HEADPHONES-ANC" in refusal.value.details["similar"]


@pytest.mark.req("SPEC-6")
def test_a_currency_without_a_rate_is_refused_with_the_ones_there_are(ask: Ask) -> None:
    with pytest.raises(runtime.InvalidArgument) as refusal:
        ask(QUOTE, {"sku": "LAPTOP-14", "currency": "XAU"})

    assert "EUR" in refusal.value.details["supported"]
