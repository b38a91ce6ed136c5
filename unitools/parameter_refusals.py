"""Parameter refusals: why a parameter of a function cannot be one of a tool, in words that say what to write instead."""

from __future__ import annotations

import ast
import typing
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUndefinedAnnotation, PydanticUserError

from unitools.source_locations import unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable

CANNOT_BE_SAID = (PydanticUserError, PydanticUndefinedAnnotation, PydanticInvalidForJsonSchema, NameError, TypeError)
_AT_ONCE = (int, float, str, bool)
NOT_ANNOTATED = (
    "{name} has no annotation, and a model has to be told what to give. Write {name}: str, or whatever it is; "
    "{name}: Any for every value of JSON."
)
TYPED_DICT = "{what} is a typing.TypedDict, which pydantic reads from Python 3.12 on only. Import TypedDict from typing_extensions."
UNKNOWN_TYPE = (
    "{what} is {kind}, which has no JSON Schema. Take a dataclass, a TypedDict, a model of pydantic or JSON's own types; "
    "what a model must not give is Injected."
)
NO_DEFAULT = "the default of {name} is none of its values ({why}). {cure}"


def explain_type(what: str, annotation: Any, error: Exception) -> str:
    """``what``: "its parameter a". Why pydantic did not take the annotation."""
    code = getattr(error, "code", None)
    if code == "typed-dict-version":
        return TYPED_DICT.format(what=what)
    if code == "schema-for-unknown-type":
        return UNKNOWN_TYPE.format(what=what, kind=format_annotation(annotation))
    return f"{what} is {format_annotation(annotation)}, which cannot be said as JSON Schema ({_first_line(error)})."


def format_annotation(annotation: Any) -> str:
    """As it was written, or nearly."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__qualname__.rpartition("<locals>.")[2]
    return repr(annotation).replace("typing.", "").replace("__main__.", "")


def explain_default(name: str, annotation: Any, default: Any) -> str:
    """Why a default cannot be one; empty if it can. Its value is not told: it may be a secret."""
    if type(default) is annotation and annotation in _AT_ONCE:
        return ""
    if default is None and type(None) in typing.get_args(annotation):
        return ""
    try:
        TypeAdapter(annotation).validate_python(default, strict=True)
    except ValidationError as error:
        if default is None:
            cure = f"Write {name}: {format_annotation(annotation)} | None = None."
        else:
            cure = "A model that gives it would be refused."
        found = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return NO_DEFAULT.format(name=name, why=found["msg"], cure=cure)
    except (*CANNOT_BE_SAID, ValueError, RecursionError):  # a validator of the author's, for other values than this one
        return ""
    return ""


def find_unreadable_annotation(function: Callable[..., Any]) -> str:
    """The parameter whose annotation is a text that is none, or "its result"; empty where no single one is."""
    for name, said in getattr(unwrap_function(function), "__annotations__", {}).items():
        if isinstance(said, str) and not _is_expression(said):
            return "its result" if name == "return" else name
    return ""


def _is_expression(text: str) -> bool:
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return False
    # a text within a text, as where annotations are texts already
    is_text = isinstance(parsed, ast.Constant) and isinstance(parsed.value, str)
    return not is_text or _is_expression(str(parsed.value))  # type: ignore[attr-defined]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
