"""Annotations: what those of a function mean.

They may be texts, and name what is only there for type checkers: such a name stands for itself until somebody needs it.
"""

from __future__ import annotations

import builtins
import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from unitools.injection import Injected
from unitools.source_locations import unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _Meta(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_unresolved_type(f"{cls.__name__}.{name}")

    def __getitem__(cls, _: object) -> type:
        return cls


class UnresolvedType(metaclass=_Meta):
    """A name in an annotation that means nothing at run time."""


def make_unresolved_type(name: str) -> type:
    return _Meta(name, (UnresolvedType,), {})


class _AnnotationNamespace(dict[str, Any]):
    """What a name means where the function was written."""

    def __init__(self, function: Any) -> None:
        super().__init__(_enclosing(function))
        self.globals = getattr(function, "__globals__", {})

    def __missing__(self, name: str) -> Any:
        if name in self.globals:
            return self.globals[name]
        return getattr(builtins, name) if hasattr(builtins, name) else make_unresolved_type(name)


def _enclosing(function: Any) -> dict[str, Any]:
    """The local names of the functions around it that are still at work: it is just being defined."""
    outer = getattr(function, "__qualname__", "").rpartition(".<locals>")[0]
    found: dict[str, Any] = {}
    frame = sys._getframe()
    while outer and frame is not None:
        same = frame.f_code.co_qualname == outer and frame.f_globals is getattr(function, "__globals__", None)
        if same:
            found = {**frame.f_locals, **found}
            outer = outer.rpartition(".<locals>")[0]
        frame = frame.f_back  # type: ignore[assignment]
    return found


def read_type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Parameter → annotation, and "return". Raises NameError, TypeError or SyntaxError for a text that is no annotation."""
    plain = unwrap_function(function)
    return typing.get_type_hints(plain, localns=_AnnotationNamespace(plain), include_extras=True)


def find_unresolved_name(annotation: Any) -> str:
    """The first name that means nothing at run time; empty when all do."""
    return next(
        (each.__name__ for each in _tree(annotation) if isinstance(each, type) and issubclass(each, UnresolvedType)), ""
    )


def find_injected_marks(annotation: Any) -> list[Injected]:
    """However deep: ``Optional[Annotated[Db, Injected("db")]]`` too."""
    found = [Injected() if each is Injected else each for each in _tree(annotation)]
    return [each for each in found if isinstance(each, Injected)]


def get_parameter_type(function: Callable[..., Any], parameter: str) -> Any:
    """What a parameter holds, for pydantic: its annotation without the marks that it is injected."""
    return _unmarked(read_type_hints(function).get(parameter, Any))


def _unmarked(annotation: Any) -> Any:
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        more = tuple(each for each in inside[1:] if each is not Injected and not isinstance(each, Injected))
        held = _unmarked(inside[0])
        return typing.Annotated[(held, *more)] if more else held
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_unmarked(each) for each in inside)]  # noqa: UP007  made while it runs
    return annotation


def _tree(annotation: Any) -> Iterator[Any]:
    yield annotation
    inside = annotation if isinstance(annotation, (list, tuple)) else typing.get_args(annotation)
    for each in inside:
        yield from _tree(each)
