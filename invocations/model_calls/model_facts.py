"""Model facts: what Begin and End say of a call of a model, in figures and digests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evidence.leaves.base import ListDigest
from evidence.leaves.calls import AnsweredModel, AskedModel, TokenCount
from kernel.canonical import compute_digest
from llm.requests import ChatRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from access.budgets.lines import BudgetLine
    from invocations.decide.preflight import Preflight
    from llm.usage import Usage
    from unitools.calls import ToolSpec
    from unitools.manifest import ModelPart

# What providers call their models. Another text is a word of the provider's own, which may say anything.
PLAIN_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]{0,127}")
NOT_PLAIN = "(no plain name)"
PROVIDER, ESTIMATE, NOTHING_ANSWERED = "provider", "estimate", "nothing"


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What came of a call of a model. ``counted``: the usage that is settled, and ``settled_by`` who has counted it.

    ``cost_micros`` is None where there is no price; ``surcharge_micros`` is what the policy asks for the call.
    """

    part: ModelPart
    counted: Usage
    settled_by: str
    requests: int  # that were sent, to whichever model
    attempts: list[dict[str, Any]] = field(default_factory=list)  # where more than one model was asked
    untouched: list[BudgetLine] = field(
        default_factory=list
    )  # budgets that only models count against which did not answer
    reported: Usage | None = None
    estimated: Usage | None = None
    answered_by: str = ""
    finish: str = ""
    price: str = ""
    currency: str = ""
    cost_micros: int | None = None
    surcharge_micros: int = 0
    proposals: int = 0
    first_token_ms: int | None = None
    result_bytes: int | None = None

    def usage_to_json(self) -> dict[str, Any]:
        """What is counted, and who has counted it; `cost_micros` is null where there is no price."""
        return {
            "input_tokens": self.counted.input_tokens,
            "output_tokens": self.counted.output_tokens,
            "cached_tokens": self.counted.cached_tokens,
            "requests": self.requests,
            "counted_by": self.settled_by,
            "cost_micros": self.cost_micros,
            "currency": self.currency,
            "price_version": self.price or None,
        }

    @property
    def tokens(self) -> int:
        return self.counted.input_tokens + self.counted.output_tokens

    @property
    def money(self) -> int:
        return (self.cost_micros or 0) + self.surcharge_micros


def describe_asked_model(preflight: Preflight, *, own_tools: int = 0) -> AskedModel | None:
    """None for a call of a tool, and for one that was refused before it was known what it asks for.

    ``own_tools``: how many the caller has described itself.
    """
    demand, version, request = preflight.model_demand, preflight.version, preflight.model_request
    if demand is None or version is None or version.manifest.model is None:
        return None
    part = version.manifest.model
    return AskedModel(
        provider=part.provider,
        name=part.name,
        operation=part.operation,
        input_tokens=demand.input_tokens,
        output_tokens=demand.output_tokens,
        fallbacks=[each.decision_context.tool for each in preflight.fallbacks] or None,
        tools=_digest_tools(request.tools) if isinstance(request, ChatRequest) and request.tools else None,
        own_tools=own_tools or None,
    )


def _digest_tools(tools: Sequence[ToolSpec]) -> ListDigest:
    shown = [[tool.name, tool.description, dict(tool.parameters)] for tool in tools]
    return ListDigest(count=len(tools), hash=compute_digest(shown))


def describe_answered_model(report: ModelReport, proposed: list[str]) -> AnsweredModel:
    """``proposed``: the hashes of the calls that the answer proposed."""
    return AnsweredModel(
        provider=report.part.provider,
        name=report.part.name,
        operation=report.part.operation,
        requests=report.requests,
        settled_by=report.settled_by,
        answered_by=_to_plain_name(report.answered_by) or None,
        finish=report.finish or None,
        reported=_count_tokens(report.reported),
        estimated=_count_tokens(report.estimated),
        price=report.price or None,
        cost_micros=report.cost_micros,
        proposals=report.proposals or None,
        proposed=proposed or None,
        first_token_ms=report.first_token_ms,
        attempts=report.attempts or None,
    )


def _to_plain_name(model: str) -> str:
    return model if not model or PLAIN_MODEL.fullmatch(model) else NOT_PLAIN


def _count_tokens(usage: Usage | None) -> TokenCount | None:
    if usage is None:
        return None
    return TokenCount(input=usage.input_tokens, output=usage.output_tokens, cached=usage.cached_tokens or None)
