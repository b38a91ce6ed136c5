"""Model facts: what Begin and End say of a call of a model, in figures and digests."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evidence.leaves.base import ListDigest
from evidence.leaves.call_begins import AskedModel, SentPrefix
from evidence.leaves.call_ends import AnsweredModel, TokenCount
from invocations.model_calls.held_files import describe_pictures, digest_held_files
from kernel.canonical import compute_digest
from llm.prices import format_amount
from llm.requests import ChatRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from access.budgets.ledger import CallUsage
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_demand import ModelDemand
    from invocations.model_calls.sent_data import SentData
    from llm.usage import Usage
    from registry.model_prefixes.models import ModelPrefix
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
    requests: int = 1  # that were sent, to whichever model
    attempts: list[dict[str, Any]] = field(default_factory=list)  # where more than one model was asked
    # Of single budgets, what is taken of them where not all of the models count against them.
    apart: dict[UUID, CallUsage] = field(default_factory=dict)
    reported: Usage | None = None
    estimated: Usage | None = None
    answered_by: str = ""
    stood_in: str = ""  # id of the model that has answered in the place of the one that was asked
    finish: str = ""
    price: str = ""
    currency: str = ""
    cost_micros: int | None = None
    # There was a price when money was reserved, and there is none of the model that answered.
    is_unpriced_answer: bool = False
    surcharge_micros: int = 0
    proposals: int = 0
    first_token_ms: int | None = None
    result_bytes: int | None = None
    prefix_tokens: int = 0
    metered: dict[str, tuple[int, int]] = field(default_factory=dict)  # invocations.model_meters: reported, counted

    def usage_to_json(self) -> dict[str, Any]:
        """What is counted, and who has counted it; `cost_micros` is null where there is no price. `prefix_tokens`: those of a request
        that the tenant's own text takes, as estimated.
        """
        return {
            "input_tokens": self.counted.input_tokens,
            "output_tokens": self.counted.output_tokens,
            "cached_tokens": self.counted.cached_tokens,
            "requests": self.requests,
            "prefix_tokens": self.prefix_tokens,
            "counted_by": self.settled_by,
            "cost_micros": self.cost_micros,
            "currency": self.currency,
            "price_version": self.price or None,
        } | self._describe_charge()

    def _describe_charge(self) -> dict[str, str]:
        """What the provider says that it charged, where it does; beside what the hub has computed."""
        charged = self.reported.charged_usd if self.reported is not None else None
        return {} if charged is None else {"charged_usd": format_amount(charged)}

    @property
    def tokens(self) -> int:
        return self.counted.tokens

    @property
    def money(self) -> int | None:
        """None: as much as was reserved, since nobody knows."""
        return None if self.is_unpriced_answer else (self.cost_micros or 0) + self.surcharge_micros


def describe_asked_model(preflight: Preflight, *, own_tools: int = 0) -> AskedModel | None:
    """None for a call of a tool, and for one that was refused before it was known what it asks for. What is sent is said of the model
    that is asked first: where a policy lets another one answer alone, of that.

    ``own_tools``: how many the caller has described itself.
    """
    version, first = preflight.version, preflight.candidates[0]
    demand, request = first.model_demand, first.model_request
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
        prefix=_describe_prefix(first.model_prefix, demand) if first.model_prefix is not None else None,
        files=digest_held_files(preflight.held_files.values()),
        pictures=describe_pictures(preflight.held_files.values()),
        **_describe_sent_data(first.sent_data),
        own_tools=own_tools or None,
    )


def _describe_prefix(prefix: ModelPrefix, demand: ModelDemand) -> SentPrefix:
    return SentPrefix(version=prefix.number, digest=prefix.digest, tokens=demand.prefix_tokens)


def _describe_sent_data(sent: SentData | None) -> dict[str, Any]:
    """What is empty is left out. No value of it is in the fact, and none can be guessed from it."""
    if sent is None:
        return {}
    said = {"data_classes": list(sent.classes), "masked": dict(sent.masked), "by_consent": list(sent.by_consent)}
    return {name: value for name, value in said.items() if value}


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
        answered_by=to_plain_name(report.answered_by) or None,
        finish=report.finish or None,
        reported=_count_tokens(report.reported),
        estimated=_count_tokens(report.estimated),
        price=report.price or None,
        cost_micros=report.cost_micros,
        proposals=report.proposals or None,
        proposed=proposed or None,
        first_token_ms=report.first_token_ms,
        stood_in=report.stood_in or None,
        attempts=report.attempts or None,
    )


def to_plain_name(model: str) -> str:
    return model if not model or PLAIN_MODEL.fullmatch(model) else NOT_PLAIN


def _count_tokens(usage: Usage | None) -> TokenCount | None:
    if usage is None:
        return None
    return TokenCount(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cached_tokens or None,
        cache_written=usage.cache_write_tokens or None,
    )
