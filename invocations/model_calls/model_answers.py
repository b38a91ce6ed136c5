"""Model answers: how callers read what a model said, as a whole and piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.answers import ChatAnswer, EmbedAnswer, RerankAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_facts import ModelReport
    from llm.answers import ChatDelta, ParameterWarning
    from llm.usage import Usage
    from unitools.calls import ToolCall

ModelAnswer = ChatAnswer | EmbedAnswer | RerankAnswer


def answer_to_json(answer: ModelAnswer, usage: dict[str, Any]) -> dict[str, Any]:
    """The `data` of the envelope. ``usage``: what is counted, and by whom."""
    match answer:
        case ChatAnswer():
            said = _chat_to_json(answer)
        case EmbedAnswer():
            said = {"vectors": [list(vector) for vector in answer.vectors], "dim": answer.dim, "dtype": answer.dtype}
        case RerankAnswer():
            said = {"scores": list(answer.scores), "ordering": list(answer.ordering), "encoder": answer.encoder}
    return said | {"model": answer.model, "usage": usage}


def _chat_to_json(answer: ChatAnswer) -> dict[str, Any]:
    said: dict[str, Any] = {
        "text": answer.text,
        "proposals": [proposal_to_json(each) for each in answer.proposals],
        "finish_reason": str(answer.finish_reason),
        "timestamps": {
            "first_token_ms": answer.timestamps.first_token_ms,
            "finished_ms": answer.timestamps.finished_ms,
        },
    }
    if (state := answer.provider_state) is not None:
        said["provider_state"] = {"provider": state.provider, "data": state.data}
    if answer.output is not None:
        said["output"] = answer.output
    return said


def proposal_to_json(call: ToolCall) -> dict[str, Any]:
    """A call that the model would like to be made; nobody has made it. ``arguments`` is null where they cannot be used."""
    said: dict[str, Any] = {"call_id": call.provider_id or call.id, "name": call.name, "arguments": call.arguments}
    if call.problem is not None:
        said |= {"problem": str(call.problem), "detail": call.why}
    return said


def describe_fallback(preflight: Preflight, report: ModelReport) -> dict[str, Any]:
    """Which model has answered, what became of those before it, and what policies left out; nothing where all is as asked for."""
    said: dict[str, Any] = {}
    if preflight.degradation is not None:
        said["degraded"] = preflight.degradation.to_json()
    if report.attempts:
        said["attempts"] = report.attempts
    if report.stood_in:
        said["answered_by"] = report.stood_in
    return said


def usage_to_json(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "requests": usage.requests,
    }


def delta_to_json(delta: ChatDelta) -> dict[str, Any]:
    """A piece of an answer; what it does not say is left out."""
    said: dict[str, Any] = {}
    if delta.text:
        said["text"] = delta.text
    if (call := delta.tool_call) is not None:
        said["tool_call"] = {
            "index": call.index,
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
        }
    if delta.usage is not None:
        said["usage"] = usage_to_json(delta.usage)
    if delta.model:
        said["model"] = delta.model
    if delta.finish_reason is not None:
        said["finish_reason"] = str(delta.finish_reason)
    if delta.warnings:
        said["warnings"] = describe_warnings(delta.warnings)
    return said | {"elapsed_ms": delta.elapsed_ms} if said and delta.elapsed_ms is not None else said


def describe_warnings(warnings: Iterable[ParameterWarning]) -> list[str]:
    """What of the request the model does not do, as texts of an envelope."""
    return [f"{each.pointer}: {each.message}" for each in warnings]
