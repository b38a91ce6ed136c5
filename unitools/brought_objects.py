"""Brought objects: how a tool of LangChain, a tool of CrewAI or a plain function that others have written answers one call.

The source files that ``unitools bring python`` writes call these. An object is made in the call, after its secrets stand in the
environment of the call's own process, so that neither what it keeps nor whom it is connected to outlives the call. The frameworks
themselves are packages of the tool's own and nothing of the SDK: they are imported where they are needed.
"""

from __future__ import annotations

import importlib
import sys
from functools import reduce

from unitools import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LANGCHAIN, CREWAI, FUNCTION = "langchain", "crewai", "function"
FRAMEWORKS = {  # what is imported of each before the call, and which package brings it
    LANGCHAIN: ("langchain_core.tools", "langchain-core"),
    CREWAI: ("crewai.tools", "crewai"),
    FUNCTION: ("unitools.boxed", ""),
}
SOURCE_FOLDER = "source"  # in which the author's own modules travel
MADE_FILE = "as_brought.json"  # what the objects said when they were brought; it travels with the source files
ANSWER = "answer"  # a plain function has one name for the SDK, whatever it is called
PINNED = ("name", "description", "input_schema", "output_schema")  # what a model is told of one
_MAX_MESSAGE_CHARS = 2000


def load_object(reference: str) -> Any:
    """``module:name``, or ``module:Class.name``. Imports the module."""
    module, _, name = reference.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def make_object(found: Any) -> Any:
    """The tool itself: of a class of one of the frameworks a new object."""
    return found() if isinstance(found, type) and find_framework(found) != FUNCTION else found


def find_framework(found: Any) -> str:
    """Of a tool, or of its class. Only what is imported already can be one of a framework's."""
    kind = found if isinstance(found, type) else type(found)
    for name in (LANGCHAIN, CREWAI):
        base = getattr(sys.modules.get(FRAMEWORKS[name][0]), "BaseTool", None)
        if isinstance(base, type) and issubclass(kind, base):
            return name
    return FUNCTION


def call_langchain_tool(
    tool: Any, arguments: Mapping[str, Any], *, injected: Mapping[str, Any] | None = None, asynchronous: bool = False
) -> Any:
    """``injected``: what a model must not give (``InjectedToolArg``). ``asynchronous``: the tool has no other form."""
    core: Any = importlib.import_module("langchain_core.tools")
    handler = tool.handle_tool_error
    tool.handle_tool_error = tool.handle_validation_error = False  # else a "no" looks like a result
    has_artifact = tool.response_format == "content_and_artifact"
    given = {
        "config": importlib.import_module("langchain_core.runnables.config").ensure_config(),
        # With an id the answer is a message, whose content is text. A tool that asks for the id, or leaves an artifact, has no other.
        "tool_call_id": runtime.current_call().call_id if has_artifact or wants_call_id(tool) else None,
    }
    try:
        if asynchronous:
            returned = importlib.import_module("asyncio").run(tool.arun({**arguments, **(injected or {})}, **given))
        else:
            returned = tool.run({**arguments, **(injected or {})}, **given)
    except core.ToolException as error:
        raise runtime.UpstreamError(_say_no(handler, error)[:_MAX_MESSAGE_CHARS]) from None
    except Exception as error:
        _raise_invalid(error)
        raise
    if not has_artifact:
        return to_json(getattr(returned, "content", returned) if given["tool_call_id"] else returned)
    return {"content": to_json(returned.content)} | _leave_artifact(returned.artifact)


def call_crewai_tool(tool: Any, arguments: Mapping[str, Any]) -> Any:
    """What it has counted or kept is of this call alone: there is none before it."""
    try:
        returned = tool.run(**arguments)
    except ValueError as error:
        if error.__cause__ is not None:
            _raise_invalid(error.__cause__)
        raise
    if callable(getattr(returned, "as_agent_message", None)):  # a ToolFailure: its own word for "no"
        raise runtime.UpstreamError(str(returned.as_agent_message())[:_MAX_MESSAGE_CHARS])
    return to_json(returned)


async def call_function(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """As a function of a Universe: its arguments are validated by its signature, ``Injected`` ones are filled in."""
    universe: Any = importlib.import_module("unitools.universe").Universe()
    universe.tool(ANSWER)(function)
    return await importlib.import_module("unitools.boxed").answer(universe, ANSWER, arguments)


def to_json(value: Any) -> Any:
    """What pydantic makes of it; both frameworks bring that."""
    core: Any = importlib.import_module("pydantic_core")
    try:
        return core.to_jsonable_python(value, by_alias=True, bytes_mode="base64")
    except (core.PydanticSerializationError, ValueError, TypeError, RecursionError):
        raise runtime.ResultInvalid(f"The tool returned what is no JSON: {type(value).__name__}.") from None


def wants_call_id(tool: Any) -> bool:
    """Whether it asks its framework for the id of the call, so that it is always called with one."""
    mark: Any = importlib.import_module("langchain_core.tools").InjectedToolCallId
    fields = getattr(tool.args_schema, "model_fields", {})
    return any(isinstance(each, mark) or each is mark for field in fields.values() for each in field.metadata)


def _say_no(handler: Any, error: Exception) -> str:
    """As the tool's author would have it said to a model."""
    if isinstance(handler, str):
        return handler
    if callable(handler):
        said = handler(error)
        return said if isinstance(said, str) else str(to_json(said))
    return str(error) or type(error).__name__


def _raise_invalid(error: BaseException) -> None:
    """Arguments that the schema lets through and the tool does not. What they were is not repeated."""
    if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
        return
    found = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors()]
    raise runtime.InvalidArgument("; ".join(found)[:_MAX_MESSAGE_CHARS]) from None


def _leave_artifact(artifact: Any) -> dict[str, Any]:
    """Beside the content: bytes become an artifact of the call; what is neither they nor JSON is left out, which is said."""
    if artifact is None:
        return {}
    if isinstance(artifact, (bytes, bytearray)):
        return {"artifact": runtime.artifact("artifact.bin", bytes(artifact))}
    try:
        return {"artifact": to_json(artifact)}
    except runtime.ResultInvalid:
        runtime.warn(f"The tool's artifact is no JSON and is left out: {type(artifact).__name__}.")
        return {}
