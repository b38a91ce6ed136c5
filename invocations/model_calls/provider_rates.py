"""Provider rates: how fast the key of a provider may be used, so that the provider need not say no.

Counted as rates of budgets are (access.budgets.rate_limits): evenly spread, by all processes together where there is Redis. They are
the tenant's own word of what its provider allows, and no budget.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from access.budgets.rate_limits import MINUTE_S, RateLimit, seconds_to_wait
from llm.problems import ProviderRateLimited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from registry.model_providers.settings import ProviderRates
    from registry.models import ModelProvider

REQUESTS_SHARE, TOKENS_SHARE = 10, 2  # a tenth of a minute's requests may come at once, and half of its tokens
LONGEST_WAIT_S = 5.0


def take_from_rates(provider: ModelProvider, rates: ProviderRates, tokens: int) -> float:
    """0 when a request of so many tokens may be sent now, and then it counts; else the seconds until it may."""
    for key, rate, cost in _list_limits(provider, rates, tokens):
        if wait := seconds_to_wait(key, rate, take=True, cost=cost):
            return wait
    return 0.0


def _list_limits(provider: ModelProvider, rates: ProviderRates, tokens: int) -> Iterator[tuple[str, RateLimit, int]]:
    """With the amounts in their keys, so that a rate that was changed begins anew. Tokens first: they run out more often."""
    if rates.tokens is not None:
        burst = math.ceil(rates.tokens / TOKENS_SHARE)
        yield (
            f"provider:{provider.pk}:tokens:{rates.tokens}",
            RateLimit(rates.tokens, MINUTE_S, burst),
            min(tokens, burst),
        )
    if rates.requests is not None:
        burst = math.ceil(rates.requests / REQUESTS_SHARE)
        yield f"provider:{provider.pk}:requests:{rates.requests}", RateLimit(rates.requests, MINUTE_S, burst), 1


def build_rate_problem(provider: ModelProvider, wait_s: float) -> ProviderRateLimited:
    return ProviderRateLimited(
        f"The requests or tokens that this tenant lets its provider {provider.name} be sent in a minute are used up.",
        retry_after_s=math.ceil(wait_s),
    )
