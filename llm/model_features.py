"""Model features: what a model can do with each parameter of a request, and what becomes of the rest.

Whatever a request has is passed on, or warned about, or refused. The table of a model decides, never its adapter: what an adapter is
given, it can send as it is. Content is not left out with a warning, for an answer to half a question is a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from llm.answers import ParameterWarning
from llm.messages import ToolMessage, UserMessage
from llm.problems import ParameterUnsupported
from llm.requests import ChatRequest, EmbedRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

R = TypeVar("R", ChatRequest, EmbedRequest)


class Treatment(StrEnum):
    """What becomes of a part of a request."""

    PASSED = "passed"
    WARNED = "warned"  # left out, and said
    REFUSED = "refused"


# Parts that may be left out with a warning, and the value that a request without them has.
CHAT_PARAMETERS: Mapping[str, Any] = {
    "temperature": None,
    "top_p": None,
    "top_k": None,
    "max_tokens": None,
    "reasoning_effort": None,
    "reasoning_tokens": None,
    "stop": (),
    "seed": None,
    "frequency_penalty": None,
    "presence_penalty": None,
    "logit_bias": {},
    "tool_choice": None,
    "parallel_calls": True,
    "cache_hint": None,
}
EMBED_PARAMETERS: Mapping[str, Any] = {"pooling": None, "kind": None}
# Parts of the question itself, by the names that a table has for them.
CONTENT = ("tools", "json", "schema", "image_ref", "audio_ref", "attachment_ref")


@dataclass(frozen=True, slots=True)
class ModelFeatures:
    """What one model can do. A parameter that the table does not name is warned about, content that it does not name is refused."""

    table: Mapping[str, Treatment] = field(default_factory=dict)
    max_output_tokens: int | None = None

    def __post_init__(self) -> None:
        if unknown := set(self.table) - {*CHAT_PARAMETERS, *EMBED_PARAMETERS, *CONTENT}:
            raise ValueError(f"No part of a request has the name {min(unknown)}.")
        if wrong := [name for name in CONTENT if self.table.get(name) is Treatment.WARNED]:
            raise ValueError(f"{wrong[0]} is content: it is passed or refused.")

    @classmethod
    def passing(cls, *names: str, max_output_tokens: int | None = None) -> ModelFeatures:
        """A model that can do these and nothing else."""
        return cls(dict.fromkeys(names, Treatment.PASSED), max_output_tokens)

    def find_treatment(self, name: str, *, strict: bool) -> Treatment:
        """What becomes of a part of that name. ``strict``: nothing is left out."""
        usual = Treatment.REFUSED if name in CONTENT else Treatment.WARNED
        treatment = self.table.get(name, usual)
        return Treatment.REFUSED if strict and treatment is Treatment.WARNED else treatment


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a request that a model does not take as it is: where it stands, and what is said of it."""

    name: str
    pointer: str
    message: str


def adapt_chat_request(request: ChatRequest, model: ModelFeatures) -> tuple[ChatRequest, tuple[ParameterWarning, ...]]:
    """The request with nothing in it that the model does not take, and what was changed.

    Raises:
        ParameterUnsupported: with a finding for each part that cannot be left out.
    """
    _refuse(model, list(_find_content(request)), strict=request.strict_parameters)
    adapted, warnings = _adapt(request, CHAT_PARAMETERS, model)
    limit = model.max_output_tokens
    if limit is None or adapted.max_tokens is None or adapted.max_tokens <= limit:
        return adapted, warnings
    message = f"The model writes at most {limit} tokens."
    if request.strict_parameters:
        raise _build_refusal([Finding("max_tokens", "/max_tokens", message)])
    lowered = ParameterWarning("/max_tokens", f"{message} The limit was lowered to that.")
    return replace(adapted, max_tokens=limit), (*warnings, lowered)


def adapt_embed_request(
    request: EmbedRequest, model: ModelFeatures
) -> tuple[EmbedRequest, tuple[ParameterWarning, ...]]:
    """As :func:`adapt_chat_request`."""
    return _adapt(request, EMBED_PARAMETERS, model)


def _adapt(request: R, parameters: Mapping[str, Any], model: ModelFeatures) -> tuple[R, tuple[ParameterWarning, ...]]:
    given = [name for name, without in parameters.items() if getattr(request, name) != without]
    findings = [Finding(name, f"/{name}", f"The model does not take {name}.") for name in given]
    _refuse(model, findings, strict=request.strict_parameters)
    ignored = [each for each in findings if model.find_treatment(each.name, strict=False) is Treatment.WARNED]
    warnings = tuple(ParameterWarning(each.pointer, f"{each.message} It was left out.") for each in ignored)
    return replace(request, **{each.name: parameters[each.name] for each in ignored}), warnings


def _refuse(model: ModelFeatures, findings: list[Finding], *, strict: bool) -> None:
    refused = [each for each in findings if model.find_treatment(each.name, strict=strict) is Treatment.REFUSED]
    if refused:
        raise _build_refusal(refused)


def _build_refusal(findings: list[Finding]) -> ParameterUnsupported:
    listed = [{"pointer": each.pointer, "message": each.message} for each in findings]
    return ParameterUnsupported(findings[0].message, details={"findings": listed})


def _find_content(request: ChatRequest) -> Iterator[Finding]:
    """Each part of the question that not every model can take."""
    if request.tools:
        yield Finding("tools", "/tools", "The model cannot propose calls of tools.")
    if request.response_format.type != "text":
        yield Finding(request.response_format.type, "/response_format", "The model cannot be asked for JSON.")
    for place, message in enumerate(request.messages):
        if isinstance(message, (UserMessage, ToolMessage)):
            for at, segment in enumerate(message.segments):
                if segment.type != "text":
                    pointer = f"/messages/{place}/segments/{at}"
                    yield Finding(
                        segment.type, pointer, f"The model does not read segments of the type {segment.type}."
                    )
