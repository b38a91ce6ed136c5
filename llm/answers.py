"""Answers: what a model said, piece by piece and as a whole, and what other models computed.

A proposal in an answer is a call that the model would like to be made. Nothing here makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from llm.messages import AssistantMessage, ProviderState, Text

if TYPE_CHECKING:
    from llm.usage import Cost, Usage
    from unitools.calls import ToolCall


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"
    LENGTH = "length"  # its limit of tokens
    TOOL = "tool"  # it proposes calls
    SAFETY = "safety"
    OTHER = "other"  # none that is known to end a whole answer

    @property
    def is_whole(self) -> bool:
        """Whether such an answer has all that the model wanted to say."""
        return self in {FinishReason.STOP, FinishReason.TOOL}


@dataclass(frozen=True, slots=True)
class ParameterWarning:
    """What of a request the model does not do, and what was done instead."""

    pointer: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of one proposed call. Its name and its arguments are joined in the order in which they come."""

    index: int  # which call of the answer
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    meta: Any = None  # carried back unread


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of an answer. ``usage`` is what was used so far, not since the last piece."""

    text: str = ""
    tool_call: ToolCallDelta | None = None
    usage: Usage | None = None
    model: str = ""  # that answers, by the provider's own name
    provider_state: ProviderState | None = None
    warnings: tuple[ParameterWarning, ...] = ()  # of the request, before anything else
    finish_reason: FinishReason | None = None
    elapsed_ms: int | None = None  # since the request was sent

    @property
    def has_content(self) -> bool:
        return bool(self.text) or self.tool_call is not None


@dataclass(frozen=True, slots=True)
class Timestamps:
    """When things came, in milliseconds since the request was sent."""

    first_token_ms: int | None = None  # None where nothing came, or nobody looked at the clock
    finished_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole answer. ``usage`` is None where the provider said nothing, ``cost`` where there is no price."""

    finish_reason: FinishReason
    text: str = ""
    proposals: tuple[ToolCall, ...] = ()
    model: str = ""
    usage: Usage | None = None
    cost: Cost | None = None
    timestamps: Timestamps = field(default=Timestamps(), compare=False)  # two equal answers may take different times
    provider_state: ProviderState | None = None
    warnings: tuple[ParameterWarning, ...] = ()
    output: Any = None  # the value, where JSON was asked for
    repairs: tuple[str, ...] = ()  # what was wrong with the text that the value was read from

    def build_message(self) -> AssistantMessage:
        """The answer as a part of the conversation that goes on. Raises ValueError for one that says nothing."""
        return AssistantMessage((Text(self.text),) if self.text else (), self.proposals, self.provider_state)


@dataclass(frozen=True, slots=True)
class EmbedAnswer:
    """A vector for each item, in the order of the items."""

    vectors: tuple[tuple[float, ...], ...]
    dtype: Literal["float32", "float16", "int8"] = "float32"
    model: str = ""
    usage: Usage | None = None
    cost: Cost | None = None
    warnings: tuple[ParameterWarning, ...] = ()

    @property
    def dim(self) -> int:
        return len(self.vectors[0]) if self.vectors else 0


@dataclass(frozen=True, slots=True)
class RerankAnswer:
    """A score for each candidate, in the order of the candidates. ``encoder``: whether query and candidate were read together."""

    scores: tuple[float, ...]
    encoder: Literal["cross", "bi"] = "cross"
    model: str = ""
    usage: Usage | None = None
    cost: Cost | None = None

    @property
    def ordering(self) -> tuple[int, ...]:
        """Places of the candidates, the best first; of two with one score the earlier."""
        return tuple(sorted(range(len(self.scores)), key=lambda place: (-self.scores[place], place)))
