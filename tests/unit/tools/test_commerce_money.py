"""Commerce money: is the arithmetic of amounts exact?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import money
from unitools import runtime

CURRENCIES = st.sampled_from(["USD", "EUR", "JPY", "KRW", "CNY", "KWD", "BRL"])
AMOUNTS = st.decimals(min_value=0, max_value=10**9, places=2)


@given(amount=st.decimals(min_value=-(10**9), max_value=10**9, places=6), currency=CURRENCIES)
def test_rounding_lands_on_the_smallest_amount_at_most_half_of_it_away(amount: Decimal, currency: str) -> None:
    rounded = money.round_money(amount, currency)

    assert rounded % money.quantum(currency) == 0
    assert abs(rounded - amount) * 2 <= money.quantum(currency)
    assert money.round_money(rounded, currency) == rounded
    assert not money.show(amount, currency).startswith("-0.00") or rounded < 0


@pytest.mark.parametrize(
    ("currency", "amount", "shown"),
    [("USD", "19.905", "19.91"), ("JPY", "1990.5", "1991"), ("KWD", "1.2345", "1.235"), ("EUR", "-0.001", "0.00")],
)
def test_amounts_are_shown_with_the_decimals_of_their_currency(currency: str, amount: str, shown: str) -> None:
    assert money.show(Decimal(amount), currency) == shown


@given(total=AMOUNTS, weights=st.lists(AMOUNTS, min_size=1, max_size=12), currency=CURRENCIES)
def test_the_parts_of_a_split_amount_add_up_to_it(total: Decimal, weights: list[Decimal], currency: str) -> None:
    whole = money.round_money(total, currency)
    parts = money.allocate(whole, weights, currency)

    assert sum(parts, money.ZERO) == whole
    assert all(part >= 0 and part % money.quantum(currency) == 0 for part in parts)
    if sum(weights):
        fair = [whole * weight / sum(weights) for weight in weights]
        assert all(abs(part - share) <= money.quantum(currency) for part, share in zip(parts, fair, strict=True))


def test_nothing_is_split_among_nobody() -> None:
    assert money.allocate(Decimal(5), [], "USD") == []


@given(amount=AMOUNTS, currency=CURRENCIES)
def test_a_conversion_into_the_same_currency_changes_nothing_but_rounds(amount: Decimal, currency: str) -> None:
    assert money.convert(amount, currency, currency) == money.round_money(amount, currency)


@given(amount=AMOUNTS, more=AMOUNTS, base=CURRENCIES, quote=CURRENCIES)
def test_a_larger_amount_never_converts_to_less(amount: Decimal, more: Decimal, base: str, quote: str) -> None:
    assert money.convert(amount + more, base, quote) >= money.convert(amount, base, quote)


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize("text", ["1.234", "abc", "-1", "NaN", "Infinity", ""])
def test_an_amount_that_cannot_be_paid_is_refused_with_its_pointer(text: str) -> None:
    with pytest.raises(runtime.InvalidArgument) as refusal:
        money.parse(text, "USD", pointer="/shipping_cost")

    assert refusal.value.details["pointer"] == "/shipping_cost"
