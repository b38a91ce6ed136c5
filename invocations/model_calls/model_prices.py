"""Model prices: what a call of a model may cost, and what it did, in millionths of the currency of budgets.

The prices in force when a call is accepted hold to its End, whatever is changed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from invocations.problems import ModelUnpriced
from llm.prices import PricedModel, PriceTable, convert_to_micros, format_amount
from registry.model_prices.price_tables import build_version_subquery, find_price_table
from registry.models import ModelProvider

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from invocations.model_calls.asked_providers import AskedProvider
    from llm.usage import Cost, Usage
    from unitools.manifest import ModelPart


@dataclass(frozen=True, slots=True)
class CallPrices:
    """The prices of one call: ``table`` as it was when the call was accepted."""

    table: PriceTable
    model: PricedModel
    at: datetime

    def find_cost(self, usage: Usage, *, answered_by: str = "") -> Cost | None:
        """What a usage costs in US dollars; None where there is no price."""
        return self.table.find_cost(usage, self.model, answered_by=answered_by, at=self.at)

    def sum_micros(self, costs: Iterable[Cost | None]) -> int | None:
        """What several requests cost together, rounded up once; None where one has no price. Each was priced by itself: there are
        prices that change with the size of a request.
        """
        found = list(costs)
        known = [cost for cost in found if cost is not None]
        if not known or len(known) < len(found):
            return None
        return convert_to_micros(reduce(add, known), rate=self.table.find_rate(self.at))

    def to_json(self) -> dict[str, Any] | None:
        """The price in force, as agents are told it; None where there is none."""
        price = self.table.show_price(self.model, at=self.at)
        if price is None:
            return None
        rate = format_amount(self.table.find_rate(self.at))
        return price | {"version": self.table.version, "currency": self.table.currency, "rate": rate}


def find_prices(parts: Iterable[ModelPart], *, tenant_id: UUID) -> dict[str, CallPrices]:
    """The prices of calls that are accepted now, by the provider's name and the model's. One statement asks for the providers and for
    the version that is in force.
    """
    at, wanted = datetime.now(UTC), list(parts)
    rows = ModelProvider.objects.filter(tenant_id=tenant_id, name__in={each.provider for each in wanted})
    found = {
        name: rest for name, *rest in rows.values_list("name", "kind", "address", build_version_subquery("tenant_id"))
    }
    prices = {}
    for part in wanted:
        if part.provider in found:
            kind, address, version_id = found[part.provider]
            model = PricedModel(part.provider, part.name, kind, address)
            prices[f"{part.provider}:{part.name}"] = CallPrices(find_price_table(version_id), model, at)
    return prices


def choose_prices(part: ModelPart, provider: AskedProvider) -> CallPrices:
    """The prices of a call that is accepted now."""
    row = provider.row
    model = PricedModel(part.provider, part.name, row.kind, row.address)
    return CallPrices(find_price_table(provider.prices), model, datetime.now(UTC))


def check_priced(micros: int | None, part: ModelPart) -> None:
    """Refuse a call of a model that nobody knows the price of, where that was decided."""
    if micros is None and part.unpriced == "refuse":
        raise ModelUnpriced(
            f"No price is known for the model {part.name} of the provider {part.provider}.",
            remedy="Ask an operator to let its calls be counted in tokens only (`unpriced`: `count`), or choose another model.",
        )
