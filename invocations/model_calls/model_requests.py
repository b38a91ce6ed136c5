"""Model requests: what a call of a model asks for, read from its arguments within what the model was connected for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.model_calls.held_files import fit_held_files
from kernel.problems import SchemaInvalid
from llm.documents import read_document
from llm.problems import ForeignTool, ParameterUnsupported
from llm.requests import MAX_MESSAGES, ChatRequest, EmbedRequest, NamedTool, RerankRequest

if TYPE_CHECKING:
    from invocations.calls import CallRequest
    from kernel.http.envelopes import RequestEnvelope
    from unitools.manifest import ModelPart

ANY_OPERATION = "any"  # what the model is for: asked by a preflight
ModelRequest = ChatRequest | EmbedRequest | RerankRequest
REQUESTS: dict[str, type[Any]] = {"chat": ChatRequest, "embed": EmbedRequest, "rerank": RerankRequest}
MOST_MESSAGES = MAX_MESSAGES - 2  # the hub has messages of its own: a prefix, and what was wrong with an answer
# What the hub fills in: a caller who sends it would believe that it counts.
FILLED_IN = {
    "model": "The address names the model.",
    "idempotency_key": "The key stands in the envelope or in the Idempotency-Key header.",
}


def check_asked_now(envelope: RequestEnvelope) -> None:
    """A model answers now or not at all, whichever endpoint asks it: nobody would be there for what comes of a call that is held."""
    if envelope.dry_run:
        raise SchemaInvalid.at(
            "/dry_run", "A model cannot be asked for show. Ask its preflight what a call would take."
        )
    if envelope.on_consent == "hold":
        raise SchemaInvalid.at("/on_consent", "A call of a model is not held. Use `ask`, and call again.")


def read_model_request(call: CallRequest, part: ModelPart) -> ModelRequest:
    """The request in the arguments of a call.

    Raises:
        ParameterUnsupported: the model is for something else.
        SchemaInvalid: with a finding for each mistake.
    """
    check_operation(call, part)
    for name, message in FILLED_IN.items():
        if name in call.arguments:
            raise SchemaInvalid.at(f"/{name}", message)
    document = call.arguments | {"model": f"{part.provider}:{part.name}"}
    if part.operation == "chat":
        check_own_tools(call, part)
        document["tools"] = call.shown_tools
    request: ModelRequest = read_document(REQUESTS[part.operation], document)
    if not isinstance(request, ChatRequest):
        return request
    check_tool_choice(request)
    if len(request.messages) > MOST_MESSAGES:
        raise SchemaInvalid.at("/messages", f"A conversation has at most {MOST_MESSAGES:,} messages.")
    return bound_answer(fit_held_files(request, call.held_files), part)


def check_tool_choice(request: ChatRequest) -> None:
    """Whoever wants a call has to show what may be called."""
    choice, shown = request.tool_choice, {tool.name for tool in request.tools}
    if choice == "required" and not shown:
        raise SchemaInvalid.at("/tool_choice", "There are no tools to choose from.")
    if isinstance(choice, NamedTool) and choice.name not in shown:
        raise SchemaInvalid.at("/tool_choice/name", "The model is not shown this tool.")


def check_operation(call: CallRequest, part: ModelPart) -> None:
    """A preflight takes what the model is for."""
    if call.model_operation not in (ANY_OPERATION, part.operation):
        raise ParameterUnsupported(
            f"{call.tool} was connected for `{part.operation}`, and this asks for `{call.model_operation}`.",
            remedy=f"Ask it for `{part.operation}`, or choose another model.",
        )


def check_own_tools(call: CallRequest, part: ModelPart) -> None:
    """What a model is shown comes from the registry, unless it was connected for callers' own tools as well (ADR 0039)."""
    if call.own_tools and part.caller_tools != "allow":
        own = call.shown_tools[-call.own_tools :]
        raise ForeignTool(
            f"{call.tool} is shown tools of the hub alone, and the agent may call no tool {own[0].name[:80]}.",
            details={
                "findings": [
                    {"pointer": "/tools", "message": f"{each.name[:80]} is no tool of the hub."} for each in own
                ]
            },
        )


def bound_answer(request: ChatRequest, part: ModelPart) -> ChatRequest:
    """The request with a limit for its answer: without one nobody could say what it may cost."""
    most, limit, reasoning = part.max_output_tokens, request.max_tokens, request.reasoning_tokens or 0
    if limit is None:
        limit = part.default_output_tokens + reasoning
        limit = limit if most is None else min(limit, most)
    elif most is not None and limit > most:
        raise SchemaInvalid.at("/max_tokens", f"This model answers at most {most:,} tokens.")
    if reasoning >= limit:
        message = f"They are among the {limit:,} of max_tokens, and leave none for the answer."
        raise SchemaInvalid.at("/reasoning_tokens", message)
    return replace(request, max_tokens=limit)
