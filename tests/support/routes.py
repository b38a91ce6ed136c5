"""Routes: which addresses does the hub have? Read from the URL configuration, so that a new one cannot be forgotten."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import URLPattern, URLResolver, get_resolver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

API_PREFIX = "api/v1/"
SERVED_PREFIXES = ("v1/", "v1beta/")
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Route:
    """``takes``: the names of the parts of the address that name an object."""

    name: str
    path: str
    view: Callable[..., Any]
    takes: tuple[str, ...]

    @property
    def is_api(self) -> bool:
        return self.path.startswith((API_PREFIX, *SERVED_PREFIXES))

    @property
    def area(self) -> str:
        """The first part of the address: ``tools``, ``grants``, …"""
        return self.path.removeprefix(API_PREFIX).partition("/")[0]

    @property
    def methods(self) -> tuple[str, ...]:
        """What the view answers; a function view says it with ``require_…``."""
        if self.api_class is not None:
            return tuple(method.upper() for method in METHODS if hasattr(self.api_class, method))
        view: Any = self.view
        while view is not None:
            said = inspect.getclosurevars(view).nonlocals.get("request_method_list")
            if said is not None:
                return tuple(method for method in said if method != "HEAD")
            view = getattr(view, "__wrapped__", None)
        return ()

    @property
    def api_class(self) -> Any:
        """DRF's view class; None for a function view."""
        return getattr(self.view, "cls", None)

    def scope(self, method: str) -> str:
        """What a key needs for it; "-" for what only people do."""
        said = self.api_class.required_scope
        return (said if isinstance(said, str) else said[method]) or "-"

    def permission(self, method: str) -> str:
        """What a person's session needs for it; empty for what takes keys only."""
        said = getattr(self.api_class, "required_permission", "")
        return str(said if isinstance(said, str) else said[method])

    @property
    def needs(self) -> str | None:
        """The permission of a function view; None when it is public."""
        found: str | None = self.view.needs  # type: ignore[attr-defined]
        return found

    @property
    def held(self) -> Any:
        """Who may do with one thing what they may not do in the tenant; None where that is not asked
        (access/object_permissions/rules.py).
        """
        return getattr(self.view, "held", None)


def walk(resolver: URLResolver, prefix: str) -> Iterator[Route]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from walk(entry, path)
        elif isinstance(entry, URLPattern):
            yield Route(entry.name or "", path, entry.callback, tuple(entry.pattern.converters))


def routes() -> list[Route]:
    return list(walk(get_resolver(), ""))


def console_routes() -> list[Route]:
    return [route for route in routes() if not route.is_api]


def api_routes() -> list[Route]:
    return [route for route in routes() if route.is_api]
