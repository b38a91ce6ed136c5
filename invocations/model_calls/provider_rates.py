"""Provider rates: how fast the key of a provider may be used, so that the provider need not say no.

Counted as rates of budgets are (access.budgets.rate_limits): evenly spread, by all processes together where there is Redis. They are
the tenant's own word of what its provider allows, and no budget.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from access.budgets.rate_limits import MINUTE_S, RateLimit, seconds_to_wait
from llm.problems import ProviderRateLimited

if TYPE_CHECKING:
    from registry.model_providers.settings import ProviderRates
    from registry.models import ModelProvider

REQUESTS_SHARE, TOKENS_SHARE = 10, 2  # a tenth of a minute's requests may come at once, and half of its tokens
LONGEST_WAIT_S = 5.0


class ProviderLimit(NamedTuple):
    """One rate of a provider, and how much of it a request takes. With its amount in the key, one that was changed begins anew."""

    key: str
    rate: RateLimit
    cost: int


def take_from_limit(limit: ProviderLimit) -> float:
    """0 when a request may be sent now as far as this goes, and then it counts; else the seconds until it may."""
    return seconds_to_wait(limit.key, limit.rate, take=True, cost=limit.cost)


def list_limits(provider: ModelProvider, rates: ProviderRates, tokens: int) -> list[ProviderLimit]:
    """Of a request of so many tokens. Tokens first: they run out more often."""
    limits = []
    if rates.tokens is not None:
        rate = RateLimit(rates.tokens, MINUTE_S, math.ceil(rates.tokens / TOKENS_SHARE))
        limits.append(ProviderLimit(f"provider:{provider.pk}:tokens:{rates.tokens}", rate, min(tokens, rate.burst)))
    if rates.requests is not None:
        rate = RateLimit(rates.requests, MINUTE_S, math.ceil(rates.requests / REQUESTS_SHARE))
        limits.append(ProviderLimit(f"provider:{provider.pk}:requests:{rates.requests}", rate, 1))
    return limits


def build_rate_problem(provider: ModelProvider, wait_s: float) -> ProviderRateLimited:
    return ProviderRateLimited(
        f"The requests or tokens that this tenant lets its provider {provider.name} be sent in a minute are used up.",
        retry_after_s=math.ceil(wait_s),
    )
