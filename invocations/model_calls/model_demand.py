"""Model demand: the most that a call of a model may take, reserved before anything is sent.

The request's tokens are estimated, and the answer may be as long as the request allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invocations.model_calls.token_counts import BYTES_A_TOKEN, MOST_BYTES_A_TOKEN, estimate_request
from llm.problems import ContextOverflow
from llm.requests import ChatRequest, TextFormat
from llm.usage import Usage

if TYPE_CHECKING:
    from invocations.model_calls.model_prices import CallPrices
    from invocations.model_calls.model_requests import ModelRequest
    from unitools.manifest import ModelPart


@dataclass(frozen=True, slots=True)
class ModelDemand:
    """Tokens of one request and of its answer, and how many requests there may be: JSON that is refused is asked for once more."""

    input_tokens: int
    output_tokens: int
    prices: CallPrices
    requests: int = 1

    def to_json(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "requests": self.requests,
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
        most = Usage(self.input_tokens * self.requests, self.output_tokens * self.requests, requests=self.requests)
        return self.prices.find_micros(most)


def build_model_demand(request: ModelRequest, prices: CallPrices) -> ModelDemand:
    if not isinstance(request, ChatRequest):
        return ModelDemand(estimate_request(request), 0, prices)
    requests = 1 if isinstance(request.response_format, TextFormat) else 2
    return ModelDemand(estimate_request(request), request.max_tokens or 0, prices, requests)


def check_window(request: ModelRequest, part: ModelPart) -> None:
    """Refuse what cannot fit, before anybody pays for it. What may fit is sent: the estimate is a high one."""
    if part.window_tokens is None or not isinstance(request, ChatRequest):
        return
    least, room = estimate_request(request) * BYTES_A_TOKEN // MOST_BYTES_A_TOKEN, request.max_tokens or 0
    if least + room > part.window_tokens:
        raise ContextOverflow(
            f"The request has at least {least:,} tokens and asks for {room:,} more; this model takes {part.window_tokens:,} in all.",
            details={"estimated_tokens": least, "max_tokens": room, "window_tokens": part.window_tokens},
        )
