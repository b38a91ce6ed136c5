"""Pricing: what a quantity of a product costs right now, and whether it can be delivered from stock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from commerce import catalog, money, tables
from unitools import runtime

if TYPE_CHECKING:
    from commerce.catalog import Product


@dataclass(frozen=True, slots=True)
class Discount:
    """A reduction of the price of each piece; ``amount`` is for the whole quantity."""

    kind: str
    id: str
    description: str
    percent: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PricedLine:
    """A quantity of one product with its price: ``subtotal`` less all discounts is ``total``, exactly."""

    product: Product
    quantity: int
    currency: str
    list_price: Decimal
    unit_price: Decimal
    discounts: tuple[Discount, ...]
    available: int
    rate: money.Rate | None
    ends_at: datetime | None

    @property
    def subtotal(self) -> Decimal:
        return self.list_price * self.quantity

    @property
    def total(self) -> Decimal:
        return self.unit_price * self.quantity


def _list_price(product: Product, currency: str) -> tuple[Decimal, money.Rate | None]:
    """The fixed price in this currency if there is one, else the dollar price at the table's exchange rate."""
    fixed = tables.read(tables.PRICE_LIST)["fixed_prices"].get(product.sku, {}).get(currency)
    if fixed is not None:
        return Decimal(fixed), None
    if currency == "USD":
        return product.price_usd, None
    return money.convert(product.price_usd, "USD", currency), money.rate("USD", currency)


def _quantity_break(product: Product, quantity: int) -> dict[str, Any] | None:
    steps = tables.read(tables.PRICE_LIST)["quantity_breaks"][product.breaks]
    reached = [step for step in steps if quantity >= step["from"]]
    return reached[-1] if reached else None


def _promotion(product: Product, at: datetime) -> dict[str, Any] | None:
    """The best promotion that covers the product at this moment."""
    running = [
        promotion
        for promotion in tables.read(tables.PRICE_LIST)["promotions"]
        if datetime.fromisoformat(promotion["starts_at"]) <= at <= datetime.fromisoformat(promotion["ends_at"])
        and (product.sku in promotion.get("skus", []) or product.category in promotion.get("categories", []))
    ]
    return max(running, key=lambda promotion: Decimal(promotion["percent"]), default=None)


def price_line(sku: str, quantity: int, currency: str, at: datetime) -> PricedLine:
    """Price a quantity; refused when the SKU is unknown or the stock is short."""
    product = catalog.find_product(sku)
    available = catalog.check_in_stock(product, quantity)
    list_price, rate = _list_price(product, currency)
    unit_price, discounts, ends_at = list_price, [], None

    def reduce_by(kind: str, rule: str, description: str, percent: str) -> None:
        nonlocal unit_price
        reduced = money.round_money(unit_price * (100 - Decimal(percent)) / 100, currency)
        discounts.append(Discount(kind, rule, description, percent, (unit_price - reduced) * quantity))
        unit_price = reduced

    if step := _quantity_break(product, quantity):
        reduce_by("quantity_break", f"{product.breaks}-{step['from']}", f"From {step['from']} pieces", step["percent"])
    if promotion := _promotion(product, at):
        reduce_by("promotion", promotion["id"], promotion["description"], promotion["percent"])
        ends_at = datetime.fromisoformat(promotion["ends_at"])
    return PricedLine(product, quantity, currency, list_price, unit_price, tuple(discounts), available, rate, ends_at)


def check_expected_price(line: PricedLine, expected_unit_price: str | None, *, pointer: str) -> None:
    """Refuse when the caller counted on another unit price than today's."""
    if expected_unit_price is None:
        return
    expected = money.parse(expected_unit_price, line.currency, pointer=pointer)
    if expected != line.unit_price:
        current = money.show(line.unit_price, line.currency)
        raise runtime.PriceChanged(
            f"The unit price of {line.product.sku} is {current} {line.currency} now.",
            sku=line.product.sku, currency=line.currency, pointer=pointer,
            expected=money.show(expected, line.currency), current=current,
        )  # fmt: skip


def line_to_json(line: PricedLine) -> dict[str, Any]:
    """The part of an answer that describes one priced line; shared by the quote and the cart."""
    return {
        "sku": line.product.sku,
        "name": line.product.name,
        "quantity": line.quantity,
        "list_price": money.show(line.list_price, line.currency),
        "unit_price": money.show(line.unit_price, line.currency),
        "subtotal": money.show(line.subtotal, line.currency),
        "discounts": [
            {
                "kind": discount.kind,
                "id": discount.id,
                "description": discount.description,
                "percent": discount.percent,
                "amount": money.show(discount.amount, line.currency),
            }
            for discount in line.discounts
        ],
        "total": money.show(line.total, line.currency),
    }


def get_realtime_quote(
    sku: str, quantity: int = 1, currency: str | None = None, expected_unit_price: str | None = None
) -> dict[str, Any]:
    """Today's price of ``quantity`` pieces, valid for a minute at most."""
    call = runtime.current_call()
    tables.cite("price_list", tables.PRICE_LIST)
    tables.cite("stock", tables.STOCK)
    line = price_line(sku, quantity, money.check_currency(currency), call.started_at)
    if line.rate:
        tables.cite("exchange_rates", tables.EXCHANGE_RATES)
    check_expected_price(line, expected_unit_price, pointer="/expected_unit_price")

    ttl = int(tables.read(tables.PRICE_LIST)["quote_ttl_seconds"])
    if line.ends_at:
        ttl = min(ttl, max(0, int((line.ends_at - call.started_at).total_seconds())))
    runtime.set_ttl(ttl)
    left = line.available - quantity
    if left < tables.read(tables.STOCK)["low_below"]:
        runtime.warn(f"Stock is low: {left} of {sku} would be left after this quantity.")

    stock = catalog.stock_of(sku)
    return {
        **line_to_json(line),
        "category": line.product.category,
        "hs_code": line.product.hs_code,
        "country_of_origin": line.product.origin,
        "currency": line.currency,
        "exchange_rate": line.rate.to_json() if line.rate else None,
        "stock": {
            "available": line.available,
            "warehouses": [
                {"id": house.id, "country": house.country, "available": stock[house.id]}
                for house in catalog.warehouses()
            ],
        },
        "price_list_version": tables.version(tables.PRICE_LIST),
        "quoted_at": tables.timestamp(call.started_at),
        "valid_until": tables.timestamp(call.started_at + timedelta(seconds=ttl)),
    }
