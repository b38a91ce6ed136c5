"""Sent requests: what has come of each request that a call sent to a model, also of those that nobody answered.

A request that the provider refused costs nothing. One that it let time out, cut off or answered beyond reading may cost what any
other does: nobody has said that it does not, so the hub's estimate counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from invocations.model_calls.token_counts import count_tokens
from llm.problems import ModelTimedOut, ProviderAnswerUnreadable, StreamTruncated

if TYPE_CHECKING:
    from invocations.model_calls.model_demand import ModelDemand
    from kernel.problems import Problem
    from llm.answers import ChatDelta, EmbedAnswer, RerankAnswer
    from llm.usage import Usage


@dataclass(slots=True)
class SentRequest:
    """``usage``: the last that the provider reported; ``whole``: its answer came to the end; ``problem``: that came of it instead."""

    output_bytes: int = 0
    usage: Usage | None = None
    model: str = ""  # that answered, by the provider's own name
    any_piece: bool = False
    whole: bool = False
    problem: Problem | None = None

    def add(self, delta: ChatDelta) -> None:
        self.any_piece = True
        call = delta.tool_call
        said = delta.text + (call.name + call.arguments if call else "")
        self.output_bytes += len(said.encode(errors="surrogatepass"))  # what cannot be used was paid for as well
        self.usage, self.model = delta.usage or self.usage, delta.model or self.model
        self.whole = self.whole or delta.finish_reason is not None

    def end(self, answer: EmbedAnswer | RerankAnswer) -> None:
        """Of one whose answer comes in one piece."""
        self.usage, self.model, self.whole = answer.usage, answer.model or "", True

    @property
    def reported(self) -> Usage | None:
        """None where the provider has said nothing, or only zeros."""
        return self.usage if self.usage is not None and self.usage.is_metered else None

    @property
    def may_cost(self) -> bool:
        """Whether somebody may have to pay for it. Without a problem and an end it was given up here while the provider worked; where
        it was late, cut off or unreadable nobody knows whether it has worked.
        """
        if self.whole or self.any_piece or self.problem is None:
            return True
        match self.problem:
            case ModelTimedOut(was_sent=sent):
                return sent
            case ProviderAnswerUnreadable(is_refusal=refused):
                return not refused
            case problem:
                return isinstance(problem, StreamTruncated)

    def estimate(self, demand: ModelDemand) -> Usage:
        return demand.estimate(count_tokens(self.output_bytes))

    def count(self, demand: ModelDemand) -> Usage:
        """What is settled. What was reported before a request was cut off is the least that it took, and a figure of nothing for
        something that was there is none.
        """
        reported, estimated = self.reported, self.estimate(demand)
        if reported is None:  # some count searches and no tokens
            return replace(estimated, requests=self.usage.requests if self.usage is not None else 1)
        if not self.whole:
            most_input = max(reported.input_tokens, estimated.input_tokens)
            most_output = max(reported.output_tokens, estimated.output_tokens)
            return replace(reported, input_tokens=most_input, output_tokens=most_output, estimated=True)
        if reported.input_tokens and (reported.output_tokens or not self.output_bytes):
            return reported
        return replace(
            reported,
            input_tokens=reported.input_tokens or estimated.input_tokens,
            output_tokens=reported.output_tokens or estimated.output_tokens,
            estimated=True,
        )
