"""Asked models: which model a caller means, and which tools that model is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.calls import CallRequest
from invocations.decide.callable_tools import offer_tools
from invocations.model_calls.held_files import load_held_files, take_pictures
from kernel.problems import Problem, SchemaInvalid
from registry.discovery.tool_specs import build_spec
from registry.models import Installation, InstallationState
from registry.problems import UnknownModel
from unitools.expressions import ExpressionError, build_subject, parse_cached

if TYPE_CHECKING:
    from invocations.model_calls.held_files import HeldFile
    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from unitools.calls import ToolSpec


SCOPE = "models:call"
MAX_EXPRESSIONS = 100
PREFIX = "model."
NO_SPEC = (
    "Tools come from the registry: name them by id or by an expression. A description of the caller's is not shown."
)


def build_model_call(
    tool: str, arguments: dict[str, Any], envelope: RequestEnvelope, *, operation: str, by: Principal
) -> CallRequest:
    shown: tuple[ToolSpec, ...] = ()
    held: dict[str, HeldFile] = {}
    arguments, pictures, unusable = take_pictures(arguments)
    try:
        shown = choose_tools(arguments.get("tools"), by=by)
        held = load_held_files(arguments, pictures, by=by)
    except Problem as problem:  # it is refused with everything else about the call, so that it has its pair
        unusable = unusable or problem
    return CallRequest(
        tool=tool,
        arguments=arguments,
        envelope=envelope,
        scope=SCOPE,
        model_operation=operation,
        shown_tools=shown,
        held_files=held,
        unusable=unusable,
    )


def resolve_model_id(text: str, *, by: Principal) -> str:
    """The id of a model by its alias; what is no alias of one model stays as it is, for the decision to refuse."""
    if "." in text:
        return text
    named = Installation.objects.visible_to(by).exclude(state=InstallationState.REMOVED)
    found = list(named.filter(name__startswith=PREFIX, name__endswith=f".{text}").values_list("name", flat=True)[:2])
    if len(found) != 1:
        several = f"Several providers have a model {text[:80]}." if found else f"There is no model {text[:80]} here."
        raise UnknownModel(several, remedy="Name it by its whole id, as the list of models has it.")
    return str(found[0])


def choose_tools(wanted: Any, *, by: Principal) -> tuple[ToolSpec, ...]:
    """What this agent may call now of the tools that are named, as a model is shown them, in the order of the list of tools."""
    if wanted is None:
        return ()
    if not isinstance(wanted, list) or len(wanted) > MAX_EXPRESSIONS:
        raise SchemaInvalid.at("/tools", f"This is a list of at most {MAX_EXPRESSIONS} ids or expressions.")
    offered = {each.id: each for each in offer_tools(by=by).manifests}
    chosen: set[str] = set()
    for place, text in enumerate(wanted):
        if not isinstance(text, str):
            raise SchemaInvalid.at(f"/tools/{place}", NO_SPEC)
        try:
            expression = parse_cached(text)
        except ExpressionError as error:
            raise SchemaInvalid.at(f"/tools/{place}", str(error)) from None
        found = {id for id, manifest in offered.items() if expression.matches(build_subject(manifest))}
        if not found:
            raise SchemaInvalid.at(f"/tools/{place}", "This names no tool that the agent may call now.")
        chosen |= found
    return tuple(build_spec(offered[id]) for id in sorted(chosen))
