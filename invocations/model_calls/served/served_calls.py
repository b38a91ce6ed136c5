"""Served calls: what a body in a served format asks for, as a call of a model like any other.

The tools in it are those of the registry: a body by the name of one that the agent may call now stands for that one, and the model is
shown what the registry says. What the caller wrote itself is looked at with everything else about the call
(:mod:`invocations.model_calls.model_requests`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invocations.calls import CallRequest
from invocations.decide.callable_tools import offer_tools
from invocations.model_calls.asked_models import SCOPE, choose_tools, resolve_model_id
from invocations.model_calls.held_files import load_held_files
from kernel.problems import Problem, SchemaInvalid
from registry.discovery.tool_specs import build_spec, names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from invocations.model_calls.held_files import HeldFile
    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from llm.served.formats import ServedChat
    from unitools.calls import ToolSpec

MAX_OWN = 128


@dataclass(frozen=True, slots=True)
class ShownTools:
    """``names``: what the caller calls tools of the hub, by their ids. ``ids``: the other way round, of all that it may mean."""

    of_the_hub: tuple[ToolSpec, ...] = ()
    of_the_caller: tuple[ToolSpec, ...] = ()
    names: Mapping[str, str] | None = None
    ids: Mapping[str, str] | None = None


def build_served_call(
    served: ServedChat, envelope: RequestEnvelope, *, dialect: str, by: Principal
) -> tuple[CallRequest, Mapping[str, str]]:
    """The call, and what the caller calls the tools that the model is shown."""
    tool = resolve_model_id(served.model, by=by)
    shown, unusable = ShownTools(), None
    held: dict[str, HeldFile] = {}
    try:
        held = load_held_files(served.arguments, served.pictures, by=by)
        shown = find_shown_tools(served, dialect=dialect, by=by)
    except Problem as problem:  # it is refused with everything else about the call, so that it has its pair
        unusable = problem
    arguments = served.arguments | {"messages": rename_proposals(served.arguments["messages"], shown.ids or {})}
    choice = arguments.get("tool_choice")
    if isinstance(choice, dict):
        arguments["tool_choice"] = {"name": _find_id(choice.get("name"), shown.ids or {})}
    if shown.of_the_hub or shown.of_the_caller:
        arguments["tools"] = [*(each.name for each in shown.of_the_hub), *map(tool_to_json, shown.of_the_caller)]
    call = CallRequest(
        tool=tool,
        arguments=arguments,
        envelope=envelope,
        scope=SCOPE,
        model_operation="chat",
        shown_tools=(*shown.of_the_hub, *shown.of_the_caller),
        own_tools=len(shown.of_the_caller),
        held_files=held,
        unusable=unusable,
    )
    return call, shown.names or {}


def find_shown_tools(served: ServedChat, *, dialect: str, by: Principal) -> ShownTools:
    """Which tools the model is shown, in the order of the body. Nothing is looked for where nothing names a tool."""
    if not served.own_tools and not served.arguments.get("tools") and not _has_proposals(served.arguments["messages"]):
        return ShownTools()
    offer = offer_tools(by=by)
    offered = {each.id: each for each in offer.manifests}
    wire = names_in(dialect, offer.installed)
    chosen = {each.name: each for each in choose_tools(served.arguments.get("tools"), by=by)}
    names = {id: name for name, id in wire.items()}
    own: list[ToolSpec] = []
    for place, body in enumerate(served.own_tools):
        id = body.name if body.name in offered else wire.get(body.name, "")
        if id in offered:
            chosen[id], names[id] = build_spec(offered[id]), body.name
        else:
            check_own_tool(body, place, taken={*wire, *(each.name for each in own)})
            own.append(body)
    return ShownTools(tuple(chosen.values()), tuple(own), names, wire)


def check_own_tool(body: ToolSpec, place: int, *, taken: Iterable[str]) -> None:
    """A body of the caller's must not be taken for a tool of the hub that it may not call now."""
    if place >= MAX_OWN:
        raise SchemaInvalid.at("/tools", f"At most {MAX_OWN} tools of the caller's own.")
    if body.name in taken:
        raise SchemaInvalid.at(f"/tools/{place}", "This names a tool that the agent may not call now, or one twice.")


def tool_to_json(tool: ToolSpec) -> dict[str, Any]:
    """A caller's own tool, as it stands in the arguments of the call."""
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _has_proposals(messages: Iterable[Mapping[str, Any]]) -> bool:
    return any(message.get("proposals") for message in messages)


def rename_proposals(messages: list[dict[str, Any]], ids: Mapping[str, str]) -> list[dict[str, Any]]:
    """The conversation with proposed calls under the ids of their tools; a name that means none stays."""
    return [
        message
        if not message.get("proposals")
        else message | {"proposals": [each | {"name": _find_id(each["name"], ids)} for each in message["proposals"]]}
        for message in messages
    ]


def _find_id(name: Any, ids: Mapping[str, str]) -> Any:
    return ids.get(name, name) if isinstance(name, str) else name
