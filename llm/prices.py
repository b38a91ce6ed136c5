"""Prices: what a provider charges for what was used.

A :class:`PriceTable` has the prices that somebody has set, each with the day from which it is in force, and falls back on those of the
package genai-prices where that is installed. A table never changes; another one takes its place, and a request keeps the one that it
began with. What has no price is unpriced: it never costs 0.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass as plain_dataclass
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator
from pydantic.dataclasses import dataclass

from llm.documents import RULES, read_document, refuse_field
from llm.requests import is_provider_name
from llm.usage import Cost, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from genai_prices.types import PriceCalculation

MILLION = 1_000_000
MOST_MICROS = 1_000_000_000 * MILLION  # of one call; more is a price that nobody has meant, and has no place in a fact
MAX_PRICES = 10_000
MAX_RATES = 1000
DOLLAR = "USD"
SET = "set"
AMOUNTS = ("input", "cached", "output", "image", "audio_second", "request")
PACKAGE = "genai-prices"
# Whose prices the package has, by the kind of the provider, where no address says that it is somebody else.
VENDORS: Mapping[str, str] = {
    "openai": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
}
# What providers put behind a model's name when they answer: a date, `latest`, or the number of a build.
_VERSION = re.compile(r"[-@](?:\d{4}-?\d{2}-?\d{2}|\d{3,4}|latest)")
_PACKAGE_FIELDS = {"input": "input_mtok", "cached": "cache_read_mtok", "output": "output_mtok"}
_PROBE = Usage(1, 1)
_NUMBER = re.compile(r"\d{1,12}(\.\d{1,12})?")


def _check_provider(name: str) -> str:
    if not is_provider_name(name):
        raise refuse_field("A provider's name has lower-case letters, digits, hyphens and underscores.")
    return name


def _read_amount(value: object) -> Decimal:
    """A price as it was written; a float is none, for it may not be the number that somebody wrote."""
    if isinstance(value, Decimal):
        text = format(value, "f")
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        text = str(value)
    else:
        text = ""
    if not _NUMBER.fullmatch(text):
        raise refuse_field("A price is a number of US dollars that is not negative, as a text: `0.15`.")
    return Decimal(text)


def _read_rate(value: object) -> Decimal:
    rate = _read_amount(value)
    if not rate:
        raise refuse_field("A rate is greater than 0.")
    return rate


def _read_day(value: object) -> date:
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise refuse_field("This is a day: `2026-11-30`.") from None


Amount = Annotated[Decimal, BeforeValidator(_read_amount)]


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class Price:
    """What one model costs from a day on, in US dollars: tokens by the million, all else by the piece.

    ``cached``: of input tokens that the provider had read before; None: as much as others.
    """

    provider: Annotated[StrictStr, AfterValidator(_check_provider)]
    model: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    effective_from: Annotated[date, BeforeValidator(_read_day)]
    input: Amount
    output: Amount = Decimal(0)
    cached: Amount | None = None
    image: Amount = Decimal(0)
    audio_second: Amount = Decimal(0)
    request: Amount = Decimal(0)

    def compute_cost(self, usage: Usage, *, price_version: str) -> Cost:
        cached = self.input if self.cached is None else self.cached
        fresh_tokens = usage.input_tokens - usage.cached_tokens
        return Cost(
            input=(self.input * fresh_tokens + cached * usage.cached_tokens) / MILLION + self.request * usage.requests,
            output=self.output * usage.output_tokens / MILLION,
            image=self.image * usage.image_units,
            audio=self.audio_second * Decimal(str(usage.audio_seconds)),
            price_version=price_version,
        )


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class ExchangeRate:
    """What one US dollar costs in the currency of budgets, from a day on."""

    effective_from: Annotated[date, BeforeValidator(_read_day)]
    rate: Annotated[Decimal, BeforeValidator(_read_rate)]


def _check_once(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    seen: dict[tuple[str, str, date], int] = {}
    for place, price in enumerate(prices):
        if seen.setdefault((price.provider, price.model, price.effective_from), place) != place:
            raise refuse_field("This model has another price from that day on.", at=(place, "effective_from"))
    return prices


def _check_days(rates: tuple[ExchangeRate, ...]) -> tuple[ExchangeRate, ...]:
    seen: dict[date, int] = {}
    for place, rate in enumerate(rates):
        if seen.setdefault(rate.effective_from, place) != place:
            raise refuse_field("There is another rate from that day on.", at=(place, "effective_from"))
    return rates


@dataclass(frozen=True, slots=True, config=RULES)
class PriceDocument:
    """Prices as somebody writes them down. ``currency``: of budgets; ``rates``: what a US dollar costs in it."""

    prices: Annotated[tuple[Price, ...], Field(max_length=MAX_PRICES), AfterValidator(_check_once)] = ()
    currency: Annotated[StrictStr, Field(pattern=r"^[A-Z]{3}$")] = DOLLAR
    rates: Annotated[tuple[ExchangeRate, ...], Field(max_length=MAX_RATES), AfterValidator(_check_days)] = ()

    @model_validator(mode="after")
    def _check_rates(self) -> Self:
        if bool(self.rates) is (self.currency == DOLLAR):
            raise refuse_field(
                "Another currency than USD needs a rate, and USD has none: prices are in US dollars.", at=("rates",)
            )
        return self

    def to_json(self) -> dict[str, Any]:
        """The one way of writing it: two documents that say the same are equal."""
        prices = sorted(self.prices, key=lambda each: (each.provider, each.model, each.effective_from))
        rates = sorted(self.rates, key=lambda each: each.effective_from)
        return {"currency": self.currency, "rates": _rows_to_json(rates), "prices": _rows_to_json(prices)}


def _rows_to_json(rows: Iterable[Price | ExchangeRate]) -> list[dict[str, Any]]:
    """What is not said is not written."""
    return [
        {each.name: _part_to_json(value) for each in fields(row) if (value := getattr(row, each.name)) != each.default}
        for row in rows
    ]


def _part_to_json(value: object) -> str:
    return format_amount(value) if isinstance(value, Decimal) else str(value)


def format_amount(amount: Decimal) -> str:
    """A number as people write it: without an exponent, and without zeros behind it."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


@plain_dataclass(frozen=True, slots=True)
class PricedModel:
    """A model that somebody pays for. ``provider``: the name that it is connected under; ``model``: the provider's own name.

    ``kind`` and ``address`` say whose prices the package has: those of the address, and without one of the kind.
    """

    provider: str
    model: str
    kind: str = ""
    address: str = ""


class PriceTable:
    """All prices in force at any time. ``packaged``: whether those of genai-prices stand behind the ones that are set."""

    def __init__(
        self,
        prices: Iterable[Price] = (),
        *,
        packaged: bool = True,
        currency: str = DOLLAR,
        rates: Iterable[ExchangeRate] = (),
    ) -> None:
        self._packaged, self.currency = packaged, currency
        self._rates = sorted(rates, key=lambda each: each.effective_from)
        self._set: dict[tuple[str, str], list[Price]] = {}
        for price in sorted(prices, key=lambda each: each.effective_from):
            self._set.setdefault((price.provider, price.model), []).append(price)

    @classmethod
    def read(cls, document: object, *, packaged: bool = True) -> PriceTable:
        """The table of a document ``{"prices": [...]}``. Raises SchemaInvalid with the place of each mistake."""
        said = read_document(PriceDocument, document)
        return cls(said.prices, packaged=packaged, currency=said.currency, rates=said.rates)

    @cached_property
    def version(self) -> str:
        """Names exactly these prices: a digest of those that are set, with the rates, and the version of the package."""
        rows = sorted(map(repr, (price for prices in self._set.values() for price in prices)))
        rows += [self.currency, *map(repr, self._rates)] if self._rates else []
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16] if rows else ""
        parts = [digest and f"set-{digest}", self._packaged and find_package_version()]
        return "+".join(str(part) for part in parts if part) or "none"

    def find_cost(self, usage: Usage, model: PricedModel, *, answered_by: str = "", at: datetime) -> Cost | None:
        """What a usage costs; None if there is no price, or nobody has counted anything.

        ``answered_by``: the model that answered, by the provider's own name. It is the one that is paid for; the one that was asked
        gives the price only where the other is a version of it.
        """
        if not usage.is_metered:
            return None
        if answered_by and answered_by != model.model:
            found = self._compute(usage, replace(model, model=answered_by), at)
            if found is not None or not is_version_of(answered_by, model.model):
                return found
        return self._compute(usage, model, at)

    def _compute(self, usage: Usage, model: PricedModel, at: datetime) -> Cost | None:
        price = self.find_set_price(model, at=at)
        if price is not None:
            return price.compute_cost(usage, price_version=self.version)
        return _find_packaged_cost(usage, model, at, self.version) if self._packaged else None

    def find_set_price(self, model: PricedModel, *, at: datetime) -> Price | None:
        """The price that somebody has set for a model and that is in force then."""
        day = at.astimezone(UTC).date()
        in_force = [price for price in self._set.get((model.provider, model.model), ()) if price.effective_from <= day]
        return in_force[-1] if in_force else None

    def show_price(self, model: PricedModel, *, at: datetime) -> dict[str, str] | None:
        """The price in force then, in US dollars as texts, and whose it is; None where there is none. Of a price that changes with the
        size of a request, the first step.
        """
        price = self.find_set_price(model, at=at)
        if price is not None:
            amounts = {name: getattr(price, name) for name in AMOUNTS}
            return {"origin": SET} | {name: format_amount(each) for name, each in amounts.items() if each is not None}
        found = _ask_package(_PROBE, model, at) if self._packaged else None
        if found is None:
            return None
        shown = {name: getattr(found.model_price, field, None) for name, field in _PACKAGE_FIELDS.items()}
        first = {name: getattr(each, "base", each) for name, each in shown.items() if each is not None}
        return {"origin": PACKAGE} | {name: format_amount(Decimal(str(each))) for name, each in first.items()}

    def find_rate(self, at: datetime) -> Decimal:
        """What a US dollar costs then in the currency of budgets; before the day of the first rate as much as on it."""
        if not self._rates:
            return Decimal(1)
        day = at.astimezone(UTC).date()
        in_force = [each for each in self._rates if each.effective_from <= day]
        return (in_force[-1] if in_force else self._rates[0]).rate


def is_version_of(answered: str, asked: str) -> bool:
    """Whether a provider's name is another one with a date or a number behind it, as ``gpt-4o-2024-08-06`` is of ``gpt-4o``."""
    return answered.startswith(asked) and _VERSION.fullmatch(answered, len(asked)) is not None


def convert_to_micros(cost: Cost, *, rate: Decimal = Decimal(1)) -> int:
    """Millionths of the currency that budgets are kept in, rounded up. ``rate``: what a US dollar costs in it."""
    return min(math.ceil(cost.usd * rate * MILLION), MOST_MICROS)


@cache
def find_package_version() -> str:
    """The name and version of the package with prices; empty where it is not installed."""
    try:
        return f"{PACKAGE}-{version(PACKAGE)}"
    except PackageNotFoundError:
        return ""


def _find_packaged_cost(usage: Usage, model: PricedModel, at: datetime, price_version: str) -> Cost | None:
    """What the package says. Its prices of pictures and sounds are prices of tokens, which providers count among the input."""
    found = _ask_package(usage, model, at)
    if found is None:
        return None
    # What it charges besides, such as for the request itself, is in its sum alone.
    rest = found.total_price - found.output_price
    return Cost(input=rest, output=found.output_price, price_version=price_version)


def _ask_package(usage: Usage, model: PricedModel, at: datetime) -> PriceCalculation | None:
    where = {"provider_api_url": model.address} if model.address else {"provider_id": VENDORS.get(model.kind)}
    if not find_package_version() or not any(where.values()) or not (usage.input_tokens or usage.output_tokens):
        return None
    from genai_prices import Usage as PackageUsage  # noqa: PLC0415  of an optional package
    from genai_prices import calc_price  # noqa: PLC0415

    counted = PackageUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        return calc_price(counted, model.model, genai_request_timestamp=at, **_text_only(where))
    except (LookupError, ValueError):
        return None


def _text_only(where: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in where.items() if value}
