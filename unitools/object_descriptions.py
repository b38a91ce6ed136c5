"""Object descriptions: what a brought object says of itself, and what it takes and returns, as a model and a hub are told.

A description is the same wherever the same packages are: its digest is what a manifest pins. What cannot be said to a model is refused
with what to do about it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from unitools.brought_objects import ANSWER, CREWAI, FUNCTION, LANGCHAIN, PINNED, find_framework, wants_call_id
from unitools.hub_context import collect_requested_inputs
from unitools.mcp_listings import compute_json_digest
from unitools.registration_errors import RegistrationError
from unitools.universe import Universe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CANNOT_BE_SAID = (PydanticInvalidForJsonSchema, PydanticUserError, TypeError, NameError)
_TYPES = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_UNTYPED = "Annotate the parameters of its _run, or give it an args_schema; then bring it again."
_PER_CALL = "It is made anew in each call, so"


class NotBrought(Exception):
    """This object cannot be a tool as it is. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class ObjectDescription:
    """``env_vars``: those that it declares itself, as ``{name, description, required}``. ``injected``: what a model must not give and
    nobody has said where from, by its schema. ``notes``: what of it is otherwise in a hub.
    """

    framework: str
    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    asynchronous: bool = False
    env_vars: list[dict[str, Any]] = field(default_factory=list)
    injected: dict[str, dict[str, Any]] = field(default_factory=dict)
    config_schema: dict[str, Any] | None = None
    secrets: list[dict[str, Any]] = field(default_factory=list)
    has_artifact: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def pinned(self) -> dict[str, Any]:
        """What a model is told of it."""
        return {name: getattr(self, name) for name in PINNED}

    @property
    def digest(self) -> str:
        return compute_json_digest(self.pinned)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe_object(found: Any) -> dict[str, Any]:
    """What is pinned of a tool, as a hub asks for it before the review."""
    return read_description(found).pinned


def read_description(found: Any) -> ObjectDescription:
    """Of a tool that is made already. Raises :class:`NotBrought`."""
    match find_framework(found):
        case framework if framework == LANGCHAIN:
            return _of_langchain(found)
        case framework if framework == CREWAI:
            return _of_crewai(found)
    if isinstance(found, type):
        raise NotBrought(f"{found.__name__} is a class of neither LangChain nor CrewAI. Bring a function, or its tool.")
    return _of_function(found)


def _of_langchain(tool: Any) -> ObjectDescription:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run
    hints = _read_hints(function)
    marked = dict(_find_injected(tool, hints))
    injected = {name: _schema_of(hint) for name, (hint, needs) in marked.items() if needs}
    notes = []
    if isinstance(tool.args_schema, dict):
        said = dict(tool.tool_call_schema)
        notes.append("Its args_schema is a JSON Schema, which LangChain itself holds no arguments against; a hub does.")
    elif tool.args_schema is None and _is_single(tool):
        said = {"type": "object", "properties": {"tool_input": {"type": "string"}}, "required": ["tool_input"]}
    else:
        said = _schema_of_model(tool.tool_call_schema, tool.name)
        if tool.args_schema is None:
            said["properties"] = {name: each for name, each in said["properties"].items() if name != "args"}
            _check_typed(said, tool.name)
    has_artifact = tool.response_format == "content_and_artifact"
    if tool.callbacks:
        notes.append(f"{_PER_CALL} its callbacks see one call each.")
    return ObjectDescription(
        LANGCHAIN,
        tool.name,
        inspect.cleandoc(tool.description),
        _close(said, tool.name, set(marked)),
        _output_of(hints.get("return", Any), notes, has_artifact=has_artifact, is_message=wants_call_id(tool)),
        asynchronous=_is_async_only(tool),
        injected=injected,
        has_artifact=has_artifact,
        notes=notes,
    )


def _of_crewai(tool: Any) -> ObjectDescription:
    said = _schema_of_model(tool.args_schema, tool.name)
    _check_typed(said, tool.name)
    notes = []
    if tool.max_usage_count is not None:
        notes.append(f"{_PER_CALL} max_usage_count ({tool.max_usage_count}) never ends it; set a budget in the hub.")
    if getattr(tool.cache_function, "__name__", "") != "_default_cache_function":
        notes.append(f"{_PER_CALL} its cache_function is not asked; ttl_seconds says how long an answer is fresh.")
    if tool.result_schema is not None:
        output = tool.result_schema.model_json_schema(mode="serialization")
    else:
        output = _output_of(_read_hints(getattr(tool, "func", None) or type(tool)._run).get("return", Any), notes)
    return ObjectDescription(
        CREWAI,
        tool.name,
        inspect.cleandoc(tool.description),
        _close(said, tool.name),
        output,
        env_vars=read_env_vars(tool),
        notes=notes,
    )


def _of_function(function: Callable[..., Any]) -> ObjectDescription:
    universe = Universe()
    try:
        universe.tool(ANSWER)(function)
    except RegistrationError as error:
        raise NotBrought(str(error)) from error
    (tool,) = universe.tools
    asked = collect_requested_inputs(tool)
    if wrong := [each.message for each in asked.findings if each.severity == "error"]:
        raise NotBrought(wrong[0])
    if not tool.spec.description:
        raise NotBrought("Give the function a docstring: models choose tools by it.")
    return ObjectDescription(
        FUNCTION,
        function.__name__,
        tool.spec.description,
        dict(tool.spec.parameters),
        dict(tool.spec.output_schema or {}),
        config_schema=asked.config_schema,
        secrets=asked.secrets,
        notes=[each.message for each in asked.findings],
    )


def read_env_vars(found: Any) -> list[dict[str, Any]]:
    """What a tool of CrewAI, or its class, declares of the environment."""
    said = getattr(found, "env_vars", None)
    if said is None and (declared := getattr(found, "model_fields", {}).get("env_vars")) is not None:
        said = declared.get_default(call_default_factory=True)
    return [
        {"name": each.name, "description": each.description, "required": each.required and each.default is None}
        for each in said or ()
    ]


def _is_single(tool: Any) -> bool:
    """A tool of LangChain's oldest kind: one text, under whatever name."""
    kind = getattr(importlib.import_module("langchain_core.tools"), "Tool", None)
    return isinstance(kind, type) and isinstance(tool, kind)


def _is_async_only(tool: Any) -> bool:
    """Whether its other form only says that there is none."""
    if hasattr(tool, "func") and hasattr(tool, "coroutine"):
        return tool.func is None and tool.coroutine is not None
    with suppress(OSError, TypeError, SyntaxError):
        source = ast.parse(textwrap.dedent(inspect.getsource(type(tool)._run))).body[0]
        body = getattr(source, "body", [])
        said = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
        base: Any = importlib.import_module("langchain_core.tools").BaseTool
        return len(said) == 1 and isinstance(said[0], ast.Raise) and type(tool)._arun is not base._arun
    return False


def _find_injected(tool: Any, hints: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, bool]]]:
    """Parameters that a model must not give, each with its type and whether it needs a value. The id of the call is LangChain's own
    to give."""
    core: Any = importlib.import_module("langchain_core.tools")
    found: dict[str, tuple[Any, bool, list[Any]]] = {}
    for name, hint in hints.items():
        if name != "return":
            marks = list(hint.__metadata__) if get_origin(hint) is Annotated else []
            found[name] = (hint, _needs_value(tool, name), marks)
    if not isinstance(tool.args_schema, dict):
        for name, said in getattr(tool.args_schema, "model_fields", {}).items():
            found[name] = (said.annotation, said.is_required(), list(said.metadata))
    for name, (hint, needs, marks) in found.items():
        kinds = [each if isinstance(each, type) else type(each) for each in marks]
        of_runtime = getattr(get_origin(hint) or hint, "__name__", "") == "ToolRuntime"
        if not (of_runtime or any(issubclass(each, core.InjectedToolArg) for each in kinds)):
            continue
        if core.InjectedToolCallId in kinds:
            yield name, (hint, False)
            continue
        if needs and (
            of_runtime
            or any(each is not core.InjectedToolArg for each in kinds if issubclass(each, core.InjectedToolArg))
        ):
            raise NotBrought(f"{tool.name} needs {name} of a running agent graph, which no hub has. Write it without.")
        yield name, (hint, needs)


def _schema_of(hint: Any) -> dict[str, Any]:
    try:
        return TypeAdapter(get_args(hint)[0] if get_origin(hint) is Annotated else hint).json_schema()
    except _CANNOT_BE_SAID:
        return {}


def _needs_value(tool: Any, name: str) -> bool:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run
    found = inspect.signature(function).parameters.get(name)
    return found is not None and found.default is found.empty


def _read_hints(function: Any) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def _schema_of_model(model: Any, name: str) -> dict[str, Any]:
    if isinstance(model, dict):
        return dict(model)
    try:
        found: dict[str, Any] = (model.model_json_schema if hasattr(model, "model_json_schema") else model.schema)()
    except _CANNOT_BE_SAID as error:
        raise NotBrought(f"The arguments of {name} cannot be said as JSON Schema: {error}"[:400]) from error
    return dict(found)


def _check_typed(schema: dict[str, Any], name: str) -> None:
    properties = schema.get("properties", {})
    if untyped := [each for each, said in properties.items() if not (isinstance(said, dict) and _TYPES & said.keys())]:
        raise NotBrought(f"{name} does not say of what type its {', '.join(untyped)} is. {_UNTYPED}")


def _close(said: dict[str, Any], name: str, injected: set[str] | None = None) -> dict[str, Any]:
    """What a model may give, by name and nothing else: what is not named would be left out, or would be another parameter."""
    if said.get("type") != "object":
        raise NotBrought(f"The arguments of {name} are no object: a hub passes them by name.")
    schema = {word: value for word, value in said.items() if word not in ("$schema", "title", "description")}
    schema.setdefault("properties", {})
    if both := (injected or set()) & schema["properties"].keys():
        raise NotBrought(f"{name} shows to models what they must not give: {', '.join(sorted(both))}.")
    if injected:  # nor may a model give them as what nobody has named
        schema.pop("patternProperties", None)
        return schema | {"additionalProperties": False}
    return schema | {"additionalProperties": schema.get("additionalProperties", False)}


def _output_of(
    annotation: Any, notes: list[str], *, has_artifact: bool = False, is_message: bool = False
) -> dict[str, Any]:
    if has_artifact:
        inner = get_args(annotation)
        artifact = _output_of(inner[1], []) if get_origin(annotation) is tuple and len(inner) == 2 else {}
        is_bytes = artifact.get("format") == "binary"
        return {
            "type": "object",
            "required": ["content"],
            "additionalProperties": False,
            "properties": {"content": {}, "artifact": {} if is_bytes else artifact},
        }
    if is_message:
        return {}
    if annotation is not Any:
        with suppress(*_CANNOT_BE_SAID):
            return TypeAdapter(annotation).json_schema(mode="serialization")
    notes.append("What it returns is not said by its author, so nothing holds its results against a schema.")
    return {}
