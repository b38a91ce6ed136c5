"""Addresses: what the ``urls`` module of each noun's package declares, collected.

Such a module has up to three lists: ``API`` (patterns below /api/v1/), ``PAGES`` (all others) and ``NAVIGATION`` (pages that the
console's sidebar leads to). Nothing else has to be told of a new one. ``ACCESS`` says by hand who may
(:mod:`toolhub.access_tables`).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

from django.urls import register_converter

from access.converters import Base36Converter, UserIdConverter
from kernel.http.navigation import Job
from kernel.ids import build_converters
from toolhub.packages import find_paths

if TYPE_CHECKING:
    from types import ModuleType

    from django.urls import URLPattern

    from kernel.http.navigation import NavigationEntry

ROOT = "toolhub.urls"

# Before any module with addresses is imported: they name these.
for _name, _converter in build_converters().items():
    register_converter(_converter, _name)
register_converter(UserIdConverter, "usr")
register_converter(Base36Converter, "base36")


@cache
def load_url_modules() -> list[ModuleType]:
    names = (f"{package}.{path.stem}" for package, path in find_paths("urls.py"))
    return [import_module(name) for name in names if name != ROOT]


def collect_pages() -> list[URLPattern]:
    return list(chain.from_iterable(getattr(module, "PAGES", []) for module in load_url_modules()))


def collect_endpoints() -> list[URLPattern]:
    return list(chain.from_iterable(getattr(module, "API", []) for module in load_url_modules()))


def collect_navigation() -> list[tuple[Job, list[NavigationEntry]]]:
    """The pages of each job, in order."""
    modules = [*load_url_modules(), import_module(ROOT)]
    entries: list[NavigationEntry] = [each for module in modules for each in getattr(module, "NAVIGATION", [])]
    entries.sort(key=lambda entry: entry.order)
    return [(job, [entry for entry in entries if entry.job == job]) for job in Job]
