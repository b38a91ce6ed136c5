"""Catalog: the products, what they are made of, and how many lie in which warehouse."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from functools import cache
from typing import Any

from commerce import tables
from unitools import runtime


@dataclass(frozen=True, slots=True)
class Product:
    """One article of the price list. ``attributes`` holds what the compliance rules ask about."""

    sku: str
    name: str
    category: str
    hs_code: str
    origin: str
    weight_g: int
    size_mm: tuple[int, int, int]
    price_usd: Decimal
    breaks: str
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def volume_cm3(self) -> Decimal:
        length, width, height = self.size_mm
        return Decimal(length * width * height) / 1000


@dataclass(frozen=True, slots=True)
class Warehouse:
    id: str
    country: str
    utc_offset_minutes: int


def _parse_attributes(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(";") if pair)


@cache
def products() -> dict[str, Product]:
    found = {}
    for row in tables.read_rows(tables.read(tables.PRICE_LIST)["products"]):
        found[row["sku"]] = Product(
            sku=row["sku"],
            name=row["name"],
            category=row["category"],
            hs_code=row["hs_code"],
            origin=row["origin"],
            weight_g=int(row["weight_g"]),
            size_mm=(int(row["length_mm"]), int(row["width_mm"]), int(row["height_mm"])),
            price_usd=Decimal(row["price_usd"]),
            breaks=row["breaks"],
            attributes=_parse_attributes(row["attributes"]),
        )
    return found


def find_product(sku: str) -> Product:
    product = products().get(sku)
    if product is None:
        similar = get_close_matches(sku.upper(), products(), n=3, cutoff=0.6)
        hint = f" Did you mean {', '.join(similar)}?" if similar else ""
        raise runtime.NotFound(f"There is no product with the SKU {sku}.{hint}", sku=sku, similar=similar)
    return product


@cache
def warehouses() -> tuple[Warehouse, ...]:
    return tuple(Warehouse(**entry) for entry in tables.read(tables.STOCK)["warehouses"])


@cache
def _stock() -> dict[str, dict[str, int]]:
    rows = tables.read_rows(tables.read(tables.STOCK)["levels"])
    return {row["sku"]: {house.id: int(row[house.id]) for house in warehouses()} for row in rows}


def stock_of(sku: str) -> dict[str, int]:
    """Pieces on hand by warehouse id."""
    return _stock()[sku]


def check_in_stock(product: Product, quantity: int) -> int:
    """How many pieces there are; refused when that is less than ``quantity``."""
    available = sum(stock_of(product.sku).values())
    if available < quantity:
        raise runtime.OutOfStock(
            f"Only {available} of {product.sku} are in stock, {quantity} were asked for.",
            sku=product.sku, requested=quantity, available=available,
        )  # fmt: skip
    return available


def choose_warehouse(wanted: list[tuple[Product, int]], country: str, region: frozenset[str]) -> tuple[Warehouse, bool]:
    """The warehouse that ships a whole order: in the country, else in its region, else with the most stock.

    The second value is false when no single warehouse holds everything; the order is then brought together there.
    """

    def holds_all(house: Warehouse) -> bool:
        return all(stock_of(product.sku)[house.id] >= quantity for product, quantity in wanted)

    def preference(house: Warehouse) -> tuple[Any, ...]:
        on_hand = sum(min(stock_of(product.sku)[house.id], quantity) for product, quantity in wanted)
        return (not holds_all(house), house.country != country, house.country not in region, -on_hand, house.id)

    best = min(warehouses(), key=preference)
    return best, holds_all(best)
