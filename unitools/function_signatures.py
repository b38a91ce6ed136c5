"""Function signatures: the parameters that a model may give, those injected, and what is returned.

What cannot be called by name, or cannot be said as JSON Schema, is refused with a sentence.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from unitools import runtime
from unitools.annotations import find_injected_marks, find_unresolved_name, read_type_hints
from unitools.base64_bytes import give_base64, take_base64
from unitools.calls import ToolResult
from unitools.injection import Context, Injected, InjectedParameter
from unitools.parameter_refusals import (
    CANNOT_BE_SAID,
    NOT_ANNOTATED,
    explain_default,
    explain_type,
    find_unreadable_annotation,
)
from unitools.registration_errors import NotATool
from unitools.source_locations import describe_origin, unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    hints = _read_hints(function, refuse)
    fields: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    wanted = []
    for parameter in _parameters(function, refuse):
        name = parameter.name
        if name in hints and is_context(hints[name]):
            wanted.append(InjectedParameter(name, "", has_default=False, is_context=True))
            continue
        annotation = hints.get(name, Any)
        key = _injected_key(parameter, annotation, refuse)
        if key:
            has_default = not isinstance(parameter.default, Injected) and parameter.default is not parameter.empty
            wanted.append(InjectedParameter(name, key, has_default))
            continue
        if name not in hints and not runtime.is_published():
            raise refuse(NOT_ANNOTATED.format(name=name))
        if missing := find_unresolved_name(annotation):
            raise refuse(f"{missing} in the annotation of {name} means nothing at run time. Import it there.")
        annotations[name] = annotation
        fields[f"p_{name}"] = _field(parameter, take_base64(annotation), described.get(name))
    model, schema = _build_model(fields, annotations, refuse)
    for parameter in [] if runtime.is_published() else _parameters(function, refuse):
        if parameter.name in annotations and (why := _explain_default(parameter, annotations[parameter.name])):
            raise refuse(why)
    return FunctionSignature(model, _object(schema), tuple(wanted), *_output(hints.get("return", Any), refuse))


def _read_hints(function: Callable[..., Any], refuse: Callable[[str], NotATool]) -> dict[str, Any]:
    try:
        return read_type_hints(function)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        if name := find_unreadable_annotation(function):
            raise refuse(f"the annotation of {name} cannot be read: it is no type.") from error
        raise refuse(f"its annotations cannot be read ({error}).") from error


def _build_model(
    fields: dict[str, Any], annotations: Mapping[str, Any], refuse: Callable[[str], NotATool]
) -> tuple[type[BaseModel], dict[str, Any]]:
    """The model of the arguments and its schema. Raises NotATool with the first parameter that has none."""
    try:
        return _model_of(fields)
    except CANNOT_BE_SAID as error:
        for name, annotation in annotations.items():
            try:
                _model_of({f"p_{name}": fields[f"p_{name}"]})
            except CANNOT_BE_SAID as its_own:
                raise refuse(explain_type(f"its parameter {name}", annotation, its_own)) from its_own
        raise refuse(f"its parameters cannot be said as JSON Schema ({error}).") from error


def _model_of(fields: dict[str, Any]) -> tuple[type[BaseModel], dict[str, Any]]:
    model = create_model("Arguments", __config__=_CONFIG, **fields)
    return model, model.model_json_schema(schema_generator=_Schema)


def _explain_default(parameter: inspect.Parameter, annotation: Any) -> str:
    default = parameter.default
    if isinstance(default, FieldInfo):
        default = parameter.empty if default.default is PydanticUndefined else default.default
    return "" if default is parameter.empty else explain_default(parameter.name, annotation, default)


def is_context(annotation: Any) -> bool:
    """Whether a parameter is given the context of its call: ``ctx: Context``."""
    return isinstance(annotation, type) and issubclass(annotation, Context)


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
            stars = "**" if each.kind is each.VAR_KEYWORD else "*"
            raise refuse(f"it takes {stars}{each.name}, and a model has to be told every parameter by name.")
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


def _output(annotation: Any, refuse: Callable[[str], NotATool]) -> tuple[TypeAdapter[Any], dict[str, Any] | None]:
    """How a value becomes JSON, and the schema of it; None where the annotation does not say."""
    anything = TypeAdapter[Any](Any), None
    if find_unresolved_name(annotation) or annotation in (Any, ToolResult):
        return anything
    try:
        adapter = TypeAdapter[Any](give_base64(annotation))
        schema = adapter.json_schema(mode="serialization", schema_generator=_Schema)
    except CANNOT_BE_SAID as error:
        is_old = getattr(error, "code", None) == "typed-dict-version"
        if is_old and not runtime.is_published():  # else nobody would see that its results are not checked
            raise refuse(explain_type("what it returns", annotation, error)) from error
        return anything
    return adapter, schema or None


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    schema.pop("title", None)
    return {"type": "object", "properties": {}} | schema
