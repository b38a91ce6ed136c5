"""Tool methods: the methods of a class or of an object that are tools."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from unitools.registration_errors import NotATool, NotBound
from unitools.source_locations import describe_origin, unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_FUNCTIONS = (staticmethod, classmethod)


@dataclass(frozen=True, slots=True)
class Mark:
    """What ``@u.tool(…)`` said of a method, to be registered when its class is bound."""

    options: dict[str, Any]
    origin: str


class Marks:
    """The methods that were marked, and which of them are bound by now."""

    def __init__(self) -> None:
        self._marks: dict[Any, Mark] = {}
        self._bound: set[Any] = set()

    def add(self, function: Any, options: dict[str, Any]) -> None:
        self._marks[unwrap_function(function)] = Mark(options, describe_origin(function))

    def bound(self, function: Any) -> dict[str, Any]:
        """What was said of it; nothing if it is not marked."""
        plain = unwrap_function(function)
        if plain not in self._marks:
            return {}
        self._bound.add(plain)
        return self._marks[plain].options

    def __contains__(self, function: Any) -> bool:
        return unwrap_function(function) in self._marks

    def check_all_bound(self) -> None:
        """Raises NotBound: a tool that nobody can call is missed late."""
        for plain, mark in self._marks.items():
            if plain not in self._bound:
                raise NotBound(f"{mark.origin} is a method and a tool. Bind its class: @u.bind(…), or u.add(object).")


def is_in_class_body(function: Any) -> bool:
    """Whether it is being defined as a method: then the object that it belongs to is not there yet."""
    outer = getattr(unwrap_function(function), "__qualname__", "").rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>") and not inspect.ismethod(function)


def make_instance(cls: type) -> Any:
    """Raises NotATool for a class that wants arguments."""
    try:
        wanted = [
            each.name
            for each in inspect.signature(cls).parameters.values()
            if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
    except ValueError:
        wanted = []
    if wanted:
        raise NotATool(
            cls.__qualname__, f"to be made it needs {', '.join(wanted)}. Make it, and register it by u.add(object)."
        )
    return cls()


def find_methods(thing: Any, exclude: Iterable[str], marks: Marks) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public and marked methods by name, as they are written, those of base classes first. Properties are never read."""
    patterns = [exclude] if isinstance(exclude, str) else list(exclude)
    names = dict.fromkeys(name for cls in reversed(type(thing).__mro__[:-1]) for name in vars(cls))
    for name in names:
        held = inspect.getattr_static(thing, name, None)
        if not (inspect.isfunction(held) or isinstance(held, _FUNCTIONS)):
            continue
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            marks.bound(held)
        elif not name.startswith("_") or held in marks:
            yield name, getattr(thing, name)
