"""Model results: what models answer through a hub, as typed values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from unitools.calls import CallProblem, ToolCall
from unitools.hub.errors import NotUnderstood

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unitools.hub.results import Answer

    T = TypeVar("T", bound="ModelAnswer")

MICROS = 1_000_000
SAYS_NOTHING = "This answer says nothing, so it is no part of a conversation."


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What a call has taken. ``counted_by``: ``provider``, ``estimate`` where the provider said nothing, or ``nothing``."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    counted_by: str = ""
    cost_micros: int | None = None
    currency: str = ""
    price_version: str = ""

    @property
    def cost(self) -> Decimal | None:
        """In ``currency``; None where there is no price."""
        return None if self.cost_micros is None else Decimal(self.cost_micros) / MICROS


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """What every answer of a model has. ``model`` is the name by which the provider's model called itself."""

    call_id: str
    model: str
    usage: ModelUsage
    warnings: tuple[str, ...] = ()
    replayed: bool = False
    envelope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer(ModelAnswer):
    """A whole answer. ``proposals`` are calls that the model would like to be made: nobody has made them, and ``dispatch`` takes them
    as they are. ``output`` is the value where JSON was asked for.
    """

    text: str
    finish_reason: str
    proposals: tuple[ToolCall, ...] = ()
    output: Any = None
    provider_state: Mapping[str, Any] | None = field(default=None, repr=False)

    def build_message(self) -> dict[str, Any]:
        """The answer as a part of the conversation that goes on. Raises ValueError for one that cannot be sent back."""
        message: dict[str, Any] = {"role": "assistant"}
        if self.text:
            message["segments"] = [{"type": "text", "text": self.text}]
        if self.proposals:
            message["proposals"] = [proposal_to_json(each) for each in self.proposals]
        if len(message) == 1:
            raise ValueError(SAYS_NOTHING)
        if self.provider_state is not None:
            message["provider_state"] = dict(self.provider_state)
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedAnswer(ModelAnswer):
    """A vector for each item, in the order of the items."""

    vectors: tuple[tuple[float, ...], ...]
    dim: int
    dtype: str = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankAnswer(ModelAnswer):
    """A score for each candidate, in the order of the candidates; ``ordering`` has their places, the best first."""

    scores: tuple[float, ...]
    ordering: tuple[int, ...]
    encoder: str = ""


@dataclass(frozen=True, slots=True)
class ProposalDelta:
    """A piece of one proposed call. Its name and its arguments are joined in the order in which they come."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of an answer."""

    text: str = ""
    proposal: ProposalDelta | None = None
    finish_reason: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that this agent may call. ``features`` says of each part of a request: passed, warned (left out and said) or refused."""

    id: str
    alias: str
    provider: str
    name: str
    operation: str
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    features: Mapping[str, str] = field(default_factory=dict)
    data_classes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def proposal_to_json(call: ToolCall) -> dict[str, Any]:
    """A proposal as it is sent back. Raises ValueError for one that cannot be used."""
    check_usable(call)
    return {"call_id": call.provider_id or call.id, "name": call.name, "arguments": call.arguments}


def check_usable(call: ToolCall) -> None:
    if call.arguments is None:
        raise ValueError(f"What was proposed cannot be used: {call.why or call.problem} Ask the model again.")


def write_proposals(calls: Iterable[ToolCall]) -> dict[str, Any]:
    """Proposals as a hub takes them for dispatch: a message of OpenAI's Chat Completions. Raises ValueError as above."""
    proposed = [proposal_to_json(each) for each in calls]
    functions = [
        {
            "id": each["call_id"],
            "type": "function",
            "function": {"name": each["name"], "arguments": json.dumps(each["arguments"], ensure_ascii=False)},
        }
        for each in proposed
    ]
    return {"role": "assistant", "content": None, "tool_calls": functions}


def read_chat_answer(answer: Answer[Any]) -> ChatAnswer:
    data = _read_data(answer, "text", "proposals")
    return ChatAnswer(
        **_read_head(answer, data),
        text=str(data["text"]),
        finish_reason=str(data.get("finish_reason", "")),
        proposals=tuple(_read_proposal(each, answer.call_id) for each in data["proposals"]),
        output=data.get("output"),
        provider_state=data.get("provider_state"),
    )


def read_embed_answer(answer: Answer[Any]) -> EmbedAnswer:
    data = _read_data(answer, "vectors")
    vectors = tuple(tuple(vector) for vector in data["vectors"])
    return EmbedAnswer(
        **_read_head(answer, data), vectors=vectors, dim=int(data["dim"]), dtype=str(data.get("dtype", "float32"))
    )


def read_rerank_answer(answer: Answer[Any]) -> RerankAnswer:
    data = _read_data(answer, "scores")
    return RerankAnswer(
        **_read_head(answer, data),
        scores=tuple(data["scores"]),
        ordering=tuple(data["ordering"]),
        encoder=str(data.get("encoder", "")),
    )


def _read_data(answer: Answer[Any], *needed: str) -> Mapping[str, Any]:
    """What a policy withholds of an answer is not in it."""
    if not isinstance(answer.data, dict) or any(name not in answer.data for name in needed):
        raise NotUnderstood(f"The answer of {answer.call_id} holds none of a model; see its `envelope`.", status=200)
    return answer.data


def _read_head(answer: Answer[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "call_id": answer.call_id,
        "model": str(data.get("model") or ""),
        "usage": _read_usage(data.get("usage") or {}),
        "warnings": answer.warnings,
        "replayed": answer.replayed,
        "envelope": answer.envelope,
    }


def _read_usage(said: Mapping[str, Any]) -> ModelUsage:
    counts = {name: int(said.get(name) or 0) for name in ("input_tokens", "output_tokens", "cached_tokens", "requests")}
    return ModelUsage(
        **counts,
        counted_by=str(said.get("counted_by") or ""),
        cost_micros=said.get("cost_micros"),
        currency=str(said.get("currency") or ""),
        price_version=str(said.get("price_version") or ""),
    )


def _read_proposal(said: Mapping[str, Any], call_id: str) -> ToolCall:
    problem = said.get("problem")
    return ToolCall(
        id=said["call_id"],
        name=said["name"],
        arguments=said.get("arguments"),
        problem=None if problem is None else _find_problem(problem),
        why=str(said.get("detail") or ""),
        provider_id=said["call_id"],
        proposed_by=call_id,
    )


def _find_problem(word: str) -> CallProblem:
    """A word that this version does not know is none of a call that can be used."""
    return CallProblem(word) if word in set(CallProblem) else CallProblem.MALFORMED


def read_delta(said: Mapping[str, Any]) -> ChatDelta:
    call = said.get("tool_call")
    piece = None
    if call is not None:
        piece = ProposalDelta(
            call["index"], call.get("call_id") or "", call.get("name") or "", call.get("arguments") or ""
        )
    return ChatDelta(said.get("text") or "", piece, said.get("finish_reason") or "", said)


def read_model(said: Mapping[str, Any]) -> OfferedModel:
    return OfferedModel(
        id=said["id"],
        alias=said["alias"],
        provider=said["provider"],
        name=said["model"],
        operation=said["operation"],
        window_tokens=said.get("window_tokens"),
        max_output_tokens=said.get("max_output_tokens"),
        features=dict(said.get("features") or {}),
        data_classes=tuple(said.get("data_classes") or ()),
        details=said,
    )
