"""Money: how amounts are read, rounded, converted, split and written, exactly.

Amounts are ``Decimal`` inside and strings on the wire ("19.90", and "1990" for yen): a JSON number would pass through
binary floating point somewhere on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, InvalidOperation
from typing import TYPE_CHECKING

from commerce import tables
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

ZERO = Decimal(0)
ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Rate:
    """One exchange rate: one unit of ``base`` is worth ``rate`` units of ``quote``."""

    base: str
    quote: str
    rate: Decimal
    date: str

    def to_json(self) -> dict[str, str]:
        return {"base": self.base, "quote": self.quote, "rate": f"{self.rate:f}", "date": self.date}


def currencies() -> list[str]:
    return sorted(tables.read(tables.EXCHANGE_RATES)["per_usd"])


def check_currency(currency: str | None, *, pointer: str = "/currency") -> str:
    """The currency that was asked for, or the call's own; refused when no exchange rate for it is known."""
    chosen = currency or runtime.current_call().currency
    if chosen not in tables.read(tables.EXCHANGE_RATES)["per_usd"]:
        raise runtime.InvalidArgument(
            f"Prices cannot be shown in {chosen}.", pointer=pointer, currency=chosen, supported=currencies()
        )
    return chosen


def quantum(currency: str) -> Decimal:
    """The smallest amount of a currency: 1 for yen, 0.01 for dollars."""
    digits: int = tables.read(tables.EXCHANGE_RATES)["minor_units"].get(currency, 2)
    return ONE.scaleb(-digits)


def round_money(amount: Decimal, currency: str) -> Decimal:
    """Half away from zero, to the currency's smallest amount; never the odd "-0.00"."""
    return amount.quantize(quantum(currency), rounding=ROUND_HALF_UP) + ZERO


def show(amount: Decimal, currency: str) -> str:
    return f"{round_money(amount, currency):f}"


def parse(text: str, currency: str, *, pointer: str) -> Decimal:
    """Read an amount that a caller wrote; more decimals than the currency has are refused, not rounded away."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise runtime.InvalidArgument("This is not an amount such as 19.90.", pointer=pointer) from None
    if not amount.is_finite() or amount < 0:
        raise runtime.InvalidArgument("An amount is finite and not negative.", pointer=pointer)
    if amount != round_money(amount, currency):
        raise runtime.InvalidArgument(
            f"{currency} has no amounts smaller than {quantum(currency):f}.", pointer=pointer, currency=currency
        )
    return round_money(amount, currency)


def rate(base: str, quote: str) -> Rate:
    table = tables.read(tables.EXCHANGE_RATES)
    per_usd = table["per_usd"]
    value = (Decimal(per_usd[quote]) / Decimal(per_usd[base])).quantize(Decimal("1E-12"), rounding=ROUND_HALF_UP)
    return Rate(base, quote, value.normalize(), table["date"])


def convert(amount: Decimal, base: str, quote: str) -> Decimal:
    """``amount`` in another currency, rounded to that currency's smallest amount."""
    if base == quote:
        return round_money(amount, quote)
    return round_money(amount * rate(base, quote).rate, quote)


def allocate(total: Decimal, weights: Sequence[Decimal], currency: str) -> list[Decimal]:
    """Split ``total`` in proportion to ``weights``; the parts add up to it exactly (largest remainders first)."""
    if not weights:
        return []
    whole = sum(weights, ZERO)
    shares = [total * weight / whole if whole else total / len(weights) for weight in weights]
    parts = [share.quantize(quantum(currency), rounding=ROUND_DOWN) for share in shares]
    missing = int((round_money(total, currency) - sum(parts, ZERO)) / quantum(currency))
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - shares[i], i))
    for index in by_remainder[:missing]:
        parts[index] += quantum(currency)
    return parts
