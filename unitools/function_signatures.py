"""Function signatures: the parameters that a model may give, those injected, and what is returned.

What cannot be called by name, or cannot be said as JSON Schema, is refused with a sentence.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from unitools.annotations import find_injected_marks, find_unresolved_name, read_type_hints
from unitools.calls import ToolResult
from unitools.injection import Injected, InjectedParameter
from unitools.registration_errors import NotATool
from unitools.source_locations import describe_origin, unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CANNOT_BE_SAID = (PydanticUserError, PydanticUndefinedAnnotation, PydanticInvalidForJsonSchema, NameError, TypeError)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=False)


class FunctionSignature(NamedTuple):
    """``model``: a field ``p_<name>`` with the alias ``<name>`` for each, so that no name of a parameter is in pydantic's way."""

    model: type[BaseModel]
    parameters: dict[str, Any]  # JSON Schema
    injected: tuple[InjectedParameter, ...]
    output: TypeAdapter[Any]
    output_schema: dict[str, Any] | None


class _Schema(GenerateJsonSchema):
    """Without titles that only repeat names, and without a word about defaults that JSON cannot hold."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def read_signature(function: Callable[..., Any], described: Mapping[str, str]) -> FunctionSignature:
    """``described``: parameter → what the docstring says of it. Raises NotATool."""
    refuse = partial(NotATool, describe_origin(function))
    _check_kind(function, refuse)
    try:
        hints = read_type_hints(function)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise refuse(f"its annotations cannot be read ({error}).") from error
    fields: dict[str, Any] = {}
    wanted = []
    for parameter in _parameters(function, refuse):
        annotation = hints.get(parameter.name, Any)
        key = _injected_key(parameter, annotation, refuse)
        if key:
            has_default = not isinstance(parameter.default, Injected) and parameter.default is not parameter.empty
            wanted.append(InjectedParameter(parameter.name, key, has_default))
            continue
        if missing := find_unresolved_name(annotation):
            raise refuse(f"{missing} in the annotation of {parameter.name} means nothing at run time. Import it there.")
        fields[f"p_{parameter.name}"] = _field(parameter, annotation, described.get(parameter.name))
    try:
        model = create_model("Arguments", __config__=_CONFIG, **fields)
        schema = model.model_json_schema(schema_generator=_Schema)
    except _CANNOT_BE_SAID as error:
        raise refuse(f"its parameters cannot be said as JSON Schema ({_first_line(error)}).") from error
    return FunctionSignature(model, _object(schema), tuple(wanted), *_output(hints.get("return", Any)))


def _check_kind(function: Any, refuse: Callable[[str], NotATool]) -> None:
    plain = unwrap_function(function)
    if not inspect.isroutine(plain) or inspect.isclass(function):
        raise refuse("it is no function.")
    if any(map(inspect.isgeneratorfunction, (function, plain))) or any(
        map(inspect.isasyncgenfunction, (function, plain))
    ):
        raise refuse("it yields. A tool returns one value.")
    if isinstance(function, classmethod):
        raise refuse("a classmethod belongs to a class. Bind the class.")


def _parameters(function: Callable[..., Any], refuse: Callable[[str], NotATool]) -> list[inspect.Parameter]:
    """Without those that a partial has given."""
    try:
        found = inspect.signature(function).parameters
    except ValueError as error:
        raise refuse("its signature cannot be read.") from error
    given = function.keywords if isinstance(function, partial) else {}
    for each in found.values():
        if each.kind is each.POSITIONAL_ONLY:
            raise refuse(f"{each.name} is positional only, and arguments of a tool are given by name.")
        if each.kind not in _BY_NAME:
            raise refuse(f"it takes *{each.name}, and a model has to be told every parameter by name.")
    return [each for each in found.values() if each.name not in given]


def _injected_key(parameter: inspect.Parameter, annotation: Any, refuse: Callable[[str], NotATool]) -> str:
    """The key in the context; empty when a model gives the parameter."""
    found = find_injected_marks(annotation)
    if isinstance(parameter.default, Injected) or parameter.default is Injected:
        found.append(parameter.default if isinstance(parameter.default, Injected) else Injected())
    keys = {each.key or parameter.name for each in found}
    if len(keys) > 1:
        raise refuse(f"{parameter.name} is injected under several keys: {', '.join(sorted(keys))}.")
    return keys.pop() if keys else ""


def _field(parameter: inspect.Parameter, annotation: Any, description: str | None) -> tuple[Any, Any]:
    said: dict[str, Any] = {"alias": parameter.name}
    told = [each for each in getattr(annotation, "__metadata__", ()) if isinstance(each, FieldInfo)]
    if isinstance(parameter.default, FieldInfo):
        told.append(parameter.default)
        annotation = Annotated[annotation, parameter.default]
    elif parameter.default is not parameter.empty:
        said["default"] = parameter.default
    if description and not any(each.description for each in told):
        said["description"] = description
    return annotation, Field(**said)


def _output(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any] | None]:
    """How a value becomes JSON, and the schema of it; None where the annotation does not say."""
    anything = TypeAdapter[Any](Any), None
    if find_unresolved_name(annotation) or annotation in (Any, ToolResult):
        return anything
    try:
        adapter = TypeAdapter[Any](annotation)
        schema = adapter.json_schema(mode="serialization", schema_generator=_Schema)
    except _CANNOT_BE_SAID:
        return anything
    return adapter, schema or None


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    schema.pop("title", None)
    return {"type": "object", "properties": {}} | schema


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
