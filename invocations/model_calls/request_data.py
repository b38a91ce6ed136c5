"""Request data: which kinds of data a request to a model holds, as detectors find them and as tools say of their results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from access.redaction import KINDS, Sweep
from llm.messages import AssistantMessage, Text, ToolMessage
from llm.requests import ChatRequest, EmbedRequest, SchemaFormat
from registry.model_providers.data_classes import find_data_class
from registry.models import Installation
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from invocations.model_calls.held_files import HeldFile
    from invocations.model_calls.model_requests import ModelRequest
    from llm.messages import Message, ProviderState, Segment
    from unitools.calls import ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class RequestData:
    """``found``: how often, by what detectors call it. ``declared``: classes of data, by the place or the id of what holds them."""

    found: Mapping[str, int] = field(default_factory=dict)
    declared: Mapping[str, frozenset[str]] = field(default_factory=dict)
    own_tools: Sequence[ToolSpec] = ()

    @property
    def classes(self) -> frozenset[str]:
        return frozenset(map(find_data_class, self.found)).union(*self.declared.values())


def inspect_request(
    request: ModelRequest, held: Mapping[str, HeldFile], own_tools: Sequence[ToolSpec], *, tenant_id: UUID
) -> RequestData:
    """``own_tools``: those that the caller has described itself.

    Takes some seconds for the longest request that there may be: not on an event loop.
    """
    sweep = Sweep(KINDS, lambda text, _: text)
    sweep_request(request, sweep)
    sweep_fixed_texts(request, own_tools, sweep)
    declared = {each.id: each.data_classes for each in held.values() if each.data_classes}
    if isinstance(request, ChatRequest):
        declared |= find_declared_classes(request.messages, tenant_id=tenant_id)
    return RequestData(sweep.counts, declared, own_tools)


def find_declared_classes(messages: tuple[Message, ...], *, tenant_id: UUID) -> dict[str, frozenset[str]]:
    """What the manifests of tools say of the results that the conversation holds."""
    tools = find_answered_tools(messages)
    if not tools:
        return {}
    rows = Installation.objects.filter(tenant_id=tenant_id, name__in=set(tools.values())).exclude(version=None)
    versions = dict(rows.values_list("name", "version_id"))
    found = {}
    for place, tool in tools.items():
        if (version := versions.get(tool)) is not None and (classes := compiled_version(version).manifest.data_classes):
            found[f"/messages/{place}"] = frozenset(classes)
    return found


def find_answered_tools(messages: tuple[Message, ...]) -> dict[int, str]:
    """Which tool's result a message is, by its place. Servers give the ids of one answer again in the next: the last proposal before
    a result counts.
    """
    names: dict[str, str] = {}
    tools = {}
    for place, each in enumerate(messages):
        if isinstance(each, AssistantMessage):
            names |= {call.id: call.name for call in each.proposals}
        elif isinstance(each, ToolMessage):
            tools[place] = names[each.call_id]
    return tools


def sweep_request(request: ModelRequest, sweep: Sweep) -> ModelRequest:
    """The request with its texts changed: those of all messages, arguments of calls, items, query and candidates."""
    if isinstance(request, ChatRequest):
        return replace(request, messages=tuple(_sweep_message(each, sweep) for each in request.messages))
    if isinstance(request, EmbedRequest):
        return replace(request, items=tuple(map(sweep.text, request.items)))
    candidates = tuple(map(sweep.text, request.candidates))
    return replace(request, query=sweep.text(request.query), candidates=candidates)


def _sweep_message(message: Message, sweep: Sweep) -> Message:
    before = sum(sweep.counts.values())
    changed: dict[str, Any] = {"segments": tuple(_sweep_segment(each, sweep) for each in message.segments)}
    if isinstance(message, AssistantMessage):
        changed["proposals"] = tuple(_sweep_call(each, sweep) for each in message.proposals)
    return message if sum(sweep.counts.values()) == before else replace(message, **changed)


def _sweep_segment(segment: Segment, sweep: Sweep) -> Segment:
    return Text(sweep.text(segment.text)) if isinstance(segment, Text) else segment


def _sweep_call(call: ToolCall, sweep: Sweep) -> ToolCall:
    arguments = sweep.value(call.arguments)
    return call if arguments == call.arguments else replace(call, arguments=arguments, raw="")


def list_reasoning(state: ProviderState) -> list[str]:
    """What of a provider's state is sent as a text, beside its signature: a caller may have written it. The rest nobody can read."""
    if isinstance(state.data, dict):  # by the fields in which servers of Chat Completions send it
        return [text for text in state.data.values() if isinstance(text, str)]
    parts = state.data if isinstance(state.data, list) else []
    return [part["content"] for part in parts if isinstance(part, dict) and isinstance(part.get("content"), str)]


def sweep_fixed_texts(request: ModelRequest, own_tools: Sequence[ToolSpec], sweep: Sweep) -> list[str]:
    """Count in what is sent and cannot be changed without asking for something else; the places that hold any."""
    if not isinstance(request, ChatRequest):
        return []
    wanted = request.response_format
    fixed: dict[str, Any] = {
        f"/messages/{place}/provider_state": list_reasoning(message.provider_state)
        for place, message in enumerate(request.messages)
        if isinstance(message, AssistantMessage) and message.provider_state is not None
    }
    fixed |= {
        "/stop": list(request.stop),
        "/tools": [[each.name, each.description, dict(each.parameters)] for each in own_tools],
        "/response_format/json_schema": wanted.json_schema if isinstance(wanted, SchemaFormat) else None,
    }
    places = []
    for place, value in fixed.items():
        before = sum(sweep.counts.values())
        sweep.value(value)
        if sum(sweep.counts.values()) > before:
            places.append(place)
    return places
