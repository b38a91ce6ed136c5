"""Model demand: the most that a call of a model may take, reserved before anything is sent.

The request's tokens are estimated, and the answer may be as long as the request allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invocations.model_calls.token_counts import estimate_request
from llm.problems import ContextOverflow
from llm.requests import ChatRequest

if TYPE_CHECKING:
    from invocations.model_calls.model_requests import ModelRequest
    from unitools.manifest import ModelPart


@dataclass(frozen=True, slots=True)
class ModelDemand:
    """Tokens of the request and of the answer."""

    input_tokens: int
    output_tokens: int

    def to_json(self) -> dict[str, Any]:
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def build_model_demand(request: ModelRequest) -> ModelDemand:
    output_tokens = (request.max_tokens or 0) if isinstance(request, ChatRequest) else 0
    return ModelDemand(estimate_request(request), output_tokens)


def check_window(request: ModelRequest, part: ModelPart) -> None:
    """Refuse what the model would refuse, before anybody pays for it."""
    if part.window_tokens is None or not isinstance(request, ChatRequest):
        return
    estimated, room = estimate_request(request), request.max_tokens or 0
    if estimated + room > part.window_tokens:
        raise ContextOverflow(
            f"The request has some {estimated:,} tokens and asks for {room:,} more; this model takes {part.window_tokens:,} in all.",
            details={"estimated_tokens": estimated, "max_tokens": room, "window_tokens": part.window_tokens},
        )
