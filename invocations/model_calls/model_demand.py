"""Model demand: the most that a call of a model may take, reserved before anything is sent.

The request's tokens are estimated, and the answer may be as long as the request allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from invocations.model_calls.token_counts import (
    BYTES_A_TOKEN,
    MOST_BYTES_A_TOKEN,
    OF_A_MESSAGE,
    estimate_request,
    estimate_text,
    estimate_texts,
    list_media,
)
from invocations.model_meters.learned_counts import UNKNOWN, LearnedCounts
from llm.messages import AudioRef, ImageRef
from llm.meter_windows import MeterWindow
from llm.problems import ContextOverflow
from llm.requests import ChatRequest, TextFormat
from llm.usage import Usage

if TYPE_CHECKING:
    from invocations.model_calls.model_prices import CallPrices
    from invocations.model_calls.model_requests import ModelRequest
    from registry.model_prefixes.models import ModelPrefix
    from unitools.manifest import ModelPart


@dataclass(frozen=True, slots=True)
class ModelDemand:
    """Tokens of one request and of its answer, and how many requests there may be: JSON that is refused is asked for once more."""

    input_tokens: int
    output_tokens: int
    prices: CallPrices
    requests: int = 1
    image_units: int = 0
    audio_seconds: float = 0.0
    counted_tokens: int = 0  # of the input by its bytes alone, whatever was learned of the model
    has_media: bool = False
    learned: LearnedCounts = UNKNOWN
    prefix_tokens: int = 0  # those of the input that the tenant's model prefix takes

    def to_json(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "requests": self.requests,
            "prefix_tokens": self.prefix_tokens,
            "cost_micros": self.cost_micros,
            "currency": self.prices.table.currency,
            "price": self.prices.to_json(),
            "price_version": None if self.cost_micros is None else self.prices.table.version,
        }

    @property
    def tokens(self) -> int:
        return (self.input_tokens + self.output_tokens) * self.requests

    @property
    def cost_micros(self) -> int | None:
        """The most that it costs; None where there is no price."""
        one = self.prices.find_cost(self.add_media(Usage(self.input_tokens, self.output_tokens)))
        return self.prices.sum_micros([one] * self.requests)

    def estimate(self, output_tokens: int) -> Usage:
        """What one request is likely to have taken. ``output_tokens``: of its answer, by bytes alone."""
        tokens = self.learned.input.estimate(self.counted_tokens), self.learned.output.estimate(output_tokens)
        return Usage(*tokens, estimated=True)

    def add_media(self, usage: Usage) -> Usage:
        """The usage of one request with its pictures and sounds, which the hub knows and providers do not report."""
        return replace(
            usage,
            image_units=usage.image_units or self.image_units,
            audio_seconds=usage.audio_seconds or self.audio_seconds,
        )


def build_model_demand(
    request: ModelRequest,
    prices: CallPrices,
    learned: LearnedCounts = UNKNOWN,
    *,
    prefix: ModelPrefix | None = None,
) -> ModelDemand:
    """``learned``: what the model was seen to report, for as much text. ``prefix``: what the tenant says to it first."""
    prefix_tokens, media = estimate_prefix(prefix), list_media(request)
    counted = estimate_request(request, kind=prices.model.kind, model=prices.model.model) + prefix_tokens
    if media:  # of which nothing is learned
        learned = replace(learned, input=replace(learned.input, window=MeterWindow()))
    chat = request if isinstance(request, ChatRequest) else None
    return ModelDemand(
        learned.input.bound(counted),
        (chat.max_tokens or 0) if chat is not None else 0,
        prices,
        requests=1 if chat is None or isinstance(chat.response_format, TextFormat) else 2,
        image_units=sum(isinstance(each, ImageRef) for each in media),
        audio_seconds=sum(each.seconds for each in media if isinstance(each, AudioRef)),
        counted_tokens=counted,
        has_media=bool(media),
        learned=learned,
        prefix_tokens=prefix_tokens,
    )


def estimate_prefix(prefix: ModelPrefix | None) -> int:
    return 0 if prefix is None else estimate_text(prefix.text) + OF_A_MESSAGE


def check_window(request: ModelRequest, part: ModelPart, prefix: ModelPrefix | None) -> None:
    """Refuse what cannot fit, before anybody pays for it. What may fit is sent: the estimate is a high one, and of pictures, sounds
    and files nobody knows the least.
    """
    if part.window_tokens is None or not isinstance(request, ChatRequest):
        return
    tokens, room = estimate_texts(request) + estimate_prefix(prefix), request.max_tokens or 0
    least = tokens * BYTES_A_TOKEN // MOST_BYTES_A_TOKEN
    if least + room > part.window_tokens:
        raise ContextOverflow(
            f"The request has at least {least:,} tokens and asks for {room:,} more; this model takes {part.window_tokens:,} in all.",
            details={"estimated_tokens": least, "max_tokens": room, "window_tokens": part.window_tokens},
        )
