"""Model prices: what a call of a model may cost, and what it did, in millionths of the currency of budgets.

The prices in force when a call is accepted hold to its End, whatever is changed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from invocations.problems import ModelUnpriced
from llm.prices import PricedModel, PriceTable, convert_to_micros

if TYPE_CHECKING:
    from llm.usage import Usage
    from registry.models import ModelProvider
    from unitools.manifest import ModelPart


@cache
def get_price_table() -> PriceTable:
    """The prices in force."""
    return PriceTable()


@dataclass(frozen=True, slots=True)
class CallPrices:
    """The prices of one call: ``table`` as it was when the call was accepted."""

    table: PriceTable
    model: PricedModel
    at: datetime

    def find_micros(self, usage: Usage, *, answered_by: str = "") -> int | None:
        """What a usage costs, rounded up; None where there is no price."""
        cost = self.table.find_cost(usage, self.model, answered_by=answered_by, at=self.at)
        return None if cost is None else convert_to_micros(cost)


def choose_prices(part: ModelPart, provider: ModelProvider) -> CallPrices:
    """The prices of a call that is accepted now."""
    model = PricedModel(part.provider, part.name, kind=provider.kind, address=provider.address)
    return CallPrices(get_price_table(), model, datetime.now(UTC))


def check_priced(micros: int | None, part: ModelPart) -> None:
    """Refuse a call of a model that nobody knows the price of, where that was decided."""
    if micros is None and part.unpriced == "refuse":
        raise ModelUnpriced(
            f"No price is known for the model {part.name} of the provider {part.provider}.",
            remedy="Ask an operator to let its calls be counted in tokens only (`unpriced`: `count`), or choose another model.",
        )
