"""Coupons: what a coupon code takes off an order, and why it may not be used."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from commerce import money, tables
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from commerce.pricing import PricedLine

POINTER = "/coupon_code"


@dataclass(frozen=True, slots=True)
class Reduction:
    """What the coupon takes off each line of goods, and off shipping."""

    code: str
    off_lines: tuple[Decimal, ...]
    off_shipping: Decimal

    @property
    def off_goods(self) -> Decimal:
        return sum(self.off_lines, money.ZERO)


def no_reduction(lines: Sequence[PricedLine]) -> Reduction:
    return Reduction("", (money.ZERO,) * len(lines), money.ZERO)


def _refuse(message: str, why: str) -> runtime.InvalidArgument:
    return runtime.InvalidArgument(message, pointer=POINTER, why=why)


def find_coupon(code: str, at: datetime) -> dict[str, Any]:
    """The coupon with this code; unknown and expired codes are told apart, since the buyer must act differently."""
    coupons: list[dict[str, Any]] = tables.read(tables.COUPONS)["coupons"]
    coupon = next((entry for entry in coupons if entry["code"] == code.strip().upper()), None)
    if coupon is None:
        raise _refuse("There is no such coupon.", "unknown")
    if not tables.is_in_force(coupon, at):
        raise _refuse("The coupon is not valid today.", "not_in_force")
    return coupon


def apply_coupon(
    code: str | None, lines: Sequence[PricedLine], shipping: Decimal, currency: str, at: datetime
) -> Reduction:
    """Check the coupon against the lines and split what it takes off among the lines that it covers."""
    if code is None:
        return no_reduction(lines)
    coupon = find_coupon(code, at)

    def amount(name: str) -> Decimal:
        return money.convert(Decimal(coupon[name]), coupon["currency"], currency)

    categories = coupon.get("categories")
    covered = [
        line.total if categories is None or line.product.category in categories else money.ZERO for line in lines
    ]
    eligible = sum(covered, money.ZERO)
    if eligible < amount("minimum"):
        raise _refuse(
            f"The coupon needs goods for at least {money.show(amount('minimum'), currency)} {currency}"
            + (f" from: {', '.join(categories)}." if categories else "."),
            "below_minimum",
        )
    cap = amount("maximum_discount") if "maximum_discount" in coupon else None
    if coupon.get("free_shipping"):
        return Reduction(coupon["code"], no_reduction(lines).off_lines, min(shipping, cap or shipping))
    off = (
        amount("amount")
        if "amount" in coupon
        else money.round_money(eligible * Decimal(coupon["percent"]) / 100, currency)
    )
    off = min(off, eligible, cap if cap is not None else off)
    return Reduction(coupon["code"], tuple(money.allocate(off, covered, currency)), money.ZERO)
