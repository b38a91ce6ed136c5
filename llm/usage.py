"""Usage: what a request took, in the units that providers charge for, and what that cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used so far or in all. Figures are snapshots: a later one replaces an earlier one and is not added to it.

    ``cached_tokens``, which the provider had read before, and ``cache_write_tokens``, which it keeps for later, are parts of
    ``input_tokens``. ``estimated``: counted here, because the provider did not say.
    ``charged_usd``: what the provider says that it charges, where it does.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    image_units: int = 0
    audio_seconds: float = 0.0
    requests: int = 1
    estimated: bool = False
    charged_usd: Decimal | None = None
    cache_write_tokens: int = 0

    def __post_init__(self) -> None:
        figures = (self.input_tokens, self.output_tokens, self.image_units, self.audio_seconds, self.requests)
        if min(figures) < 0 or not math.isfinite(self.audio_seconds):
            raise ValueError("No figure of a usage is negative or without end.")
        if min(self.cached_tokens, self.cache_write_tokens) < 0 or self.fresh_tokens < 0:
            raise ValueError("Cached tokens are a part of the input tokens.")

    @property
    def fresh_tokens(self) -> int:
        """Input that no cache has to do with."""
        return self.input_tokens - self.cached_tokens - self.cache_write_tokens

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def is_metered(self) -> bool:
        """Whether it says anything. Some providers report zeros for what they did not count; that is no price of nothing."""
        return any((self.input_tokens, self.output_tokens, self.image_units, self.audio_seconds))

    def __add__(self, other: Usage) -> Usage:
        """Of two requests together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.image_units + other.image_units,
            self.audio_seconds + other.audio_seconds,
            self.requests + other.requests,
            self.estimated or other.estimated,
            None if self.charged_usd is None or other.charged_usd is None else self.charged_usd + other.charged_usd,
            self.cache_write_tokens + other.cache_write_tokens,
        )


# Of one request: more than any model reads, and sums of many have room in the columns of budgets.
MOST_TOKENS = 1_000_000_000


def read_figures(
    input_tokens: object, output_tokens: object = 0, cached_tokens: object = 0, cache_write_tokens: object = 0
) -> Usage | None:
    """What a provider reports of one request; None where one of the figures is none, so that it is as if it had said nothing."""
    match input_tokens, output_tokens, cached_tokens, cache_write_tokens:
        case int(read), int(written), int(cached), int(kept) if min(read, written, cached, kept) >= 0:
            if read + written > MOST_TOKENS:
                return None
            cached = min(cached, read)
            return Usage(read, written, cached, cache_write_tokens=min(kept, read - cached))
    return None


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of a usage, by its parts. What has no price has no Cost: it is never one of 0."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    image: Decimal = Decimal(0)
    audio: Decimal = Decimal(0)
    price_version: str = ""

    currency: ClassVar[str] = "USD"

    def __add__(self, other: Cost) -> Cost:
        """Of two requests together, at prices of one version."""
        return Cost(
            self.input + other.input,
            self.output + other.output,
            self.image + other.image,
            self.audio + other.audio,
            self.price_version,
        )

    @property
    def usd(self) -> Decimal:
        return self.input + self.output + self.image + self.audio
