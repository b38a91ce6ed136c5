"""Boxed tools: how a tool of a Universe answers where only its own call is known, in a hub's sandbox.

Through the same validation, middlewares and injection as in ``dispatch``, so that it gives what it gives locally. What a hub cannot
know is what the caller of ``dispatch`` puts into the context: :mod:`unitools.hub_context` says where each value comes from instead.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from unitools import runtime
from unitools.annotations import get_parameter_type
from unitools.calls import Status
from unitools.concurrency import WouldEndProgram
from unitools.outcomes import Deny, InvalidOutput, NeedsApproval, ToolError
from unitools.universe import Universe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.calls import ToolResult
    from unitools.injection import InjectedParameter
    from unitools.metadata import ToolMetadata

# A box imports this module once, ahead of its calls. What would be loaded by the first tool or the first call is loaded here as well:
# it is 50 ms of processor time in each of them otherwise.
importlib.import_module("unitools.function_signatures")
with suppress(ImportError):
    importlib.import_module("anyio._backends._asyncio")


def _rehearsed(number: int = 0) -> dict[str, int]:
    """Give back a number."""
    return {"number": number}


# What pydantic looks up for the first model of a process, its plugins above all: 20 ms.
Universe().tool(_rehearsed)

CALL, CONFIG, SECRET = "call", "config", "secret"  # how the keys of what is injected begin
OF_CALL = frozenset(runtime.Call.__slots__) - {"config", "secrets"}
_BY_CODE = {each.code: each for each in runtime.DomainError.__subclasses__()}
_BY_STATUS = {
    Status.INVALID_ARGUMENTS: runtime.InvalidArgument,
    Status.DENIED: runtime.ComplianceBlocked,
    Status.NEEDS_APPROVAL: runtime.NeedsConfirmation,
    Status.TOOL_ERROR: runtime.Conflict,
}


class ToolFailed(Exception):
    """A layer said so in a result of its own, for none of the reasons that a hub knows."""


async def answer(
    universe: Universe, name: str, arguments: Mapping[str, Any], context: Mapping[str, Any] | None = None
) -> Any:
    """The tool's value as JSON. Raises what a plain function would have raised, so that a hub says of both the same.

    ``context``: what a test puts in the place of what is injected; a hub has nothing to put there.
    """
    tool = next(each for each in universe.tools if each.name == name)
    given = {**build_call_context(tool), **(context or {})}
    result = await universe.call(name, arguments, given, stops_tools=False)
    if result.is_error:
        raise build_error(result)
    return result.value


def build_error(result: ToolResult) -> BaseException:
    """What the tool raised. The SDK's own decisions are said in the hub's closed set of codes, an author's code in details."""
    match result.cause:
        case InvalidOutput() as invalid:
            return runtime.ResultInvalid(result.message, invalid.pointers)
        case WouldEndProgram(__cause__=SystemExit() as ended):
            return ended
        case ToolError() | Deny() | NeedsApproval() | None:
            return _refusal(result)
        case error:
            return error


def _refusal(result: ToolResult) -> Exception:
    kind = _BY_CODE.get(result.code) or _BY_STATUS.get(result.status)
    if kind is None:
        return ToolFailed(f"{result.code}: {result.message}")
    details = dict(result.details[0]) if len(result.details) == 1 else {}
    if len(result.details) > 1 or result.status is Status.INVALID_ARGUMENTS:
        details = {"errors": [dict(each) for each in result.details]}
    if result.code and result.code != kind.code:
        details["code"] = result.code
    refusal = kind(result.message)
    refusal.details = details
    return refusal


def build_call_context(tool: ToolMetadata) -> dict[str, Any]:
    """What is injected while a hub's call runs: the values for the tool's keys. What the Universe provides is not among them."""
    call = runtime.current_call()
    found: dict[str, Any] = {}
    for each in tool.injected:
        kind, _, name = each.key.partition(".")
        if each.is_context:
            continue
        if each.key == CALL:
            found[each.key] = call
        elif kind == CALL and name in OF_CALL:
            found[each.key] = getattr(call, name)
        elif each.key == CONFIG:
            found[each.key] = call.config
        elif kind == CONFIG and name in call.config:
            found[each.key] = _typed(tool, each, call.config[name])
        elif kind == SECRET and name in call.secrets:
            found[each.key] = call.secrets[name]
        elif each.key in call.config:
            found[each.key] = _typed(tool, each, call.config[each.key])
        elif each.key in call.secrets:
            found[each.key] = call.secrets[each.key]
    return found


def _typed(tool: ToolMetadata, wanted: InjectedParameter, value: Any) -> Any:
    """What a tenant set, as the parameter's type: a date is a date, not its text."""
    return TypeAdapter(get_parameter_type(tool.fn, wanted.parameter)).validate_python(value)
