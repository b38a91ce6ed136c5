"""MCP argument headers: which arguments of a tool are said in headers too, since 2026-07-28 (SEP-2243).

A server marks them in the tool's schema, so that what stands between can route by them without reading the body. Clients must say
them, and take no tool whose marks are not as the specification has them.
"""

from __future__ import annotations

import re

from unitools.mcp_http import write_header_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MARK = "x-mcp-header"
PREFIX = "Mcp-Param-"
TYPES = frozenset({"string", "integer", "boolean"})

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUES = frozenset({"const", "default", "enum", "examples"})  # of these the content is no schema
_NAMED = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_MAX_SHOWN = 60


class MarkUnfit(ValueError):
    """An argument is marked where, or as, MCP has no such mark. The message says which."""


def find_argument_headers(schema: Any) -> list[dict[str, Any]]:
    """Of each argument that is marked the ``header`` and the ``path`` of names to it. :class:`MarkUnfit`."""
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for path, node, is_reachable in _walk(schema):
        if MARK not in node:
            continue
        shown = ".".join(path)[:_MAX_SHOWN] or "the whole"
        name = node[MARK]
        if not is_reachable:
            raise MarkUnfit(f"{shown} is marked with {MARK} where it is not an argument by itself.")
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise MarkUnfit(f"{shown} is to be said in a header by a name that no header has.")
        if not _is_plain(node.get("type")):
            raise MarkUnfit(f"{shown} is to be said in a header, and is no text, whole number or yes and no.")
        if name.lower() in taken:
            raise MarkUnfit(f"Two arguments are to be said in the header {PREFIX}{name}.")
        taken.add(name.lower())
        found.append({"header": PREFIX + name, "path": path})
    return found


def list_argument_headers(marked: Iterable[dict[str, Any]], arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers of a call. What is null or not given is not said."""
    found = []
    for each in marked:
        value: Any = arguments
        for name in each["path"]:
            value = value.get(name) if isinstance(value, dict) else None
        if (text := _write(value)) is not None:
            found.append((each["header"], text))
    return found


def _walk(schema: Any) -> Iterator[tuple[list[str], dict[str, Any], bool]]:
    """The path, each schema, and whether `properties` alone lead to it."""
    waiting: list[tuple[list[str], Any, bool]] = [([], schema, True)]
    while waiting:
        path, node, is_reachable = waiting.pop()
        if isinstance(node, list):
            waiting += [(path, each, False) for each in node]
        if not isinstance(node, dict):
            continue
        yield path, node, is_reachable and bool(path)
        for key, inner in node.items():
            if key in _VALUES:
                continue
            if key in _NAMED and isinstance(inner, dict):
                is_there = is_reachable and key == "properties"
                waiting += [([*path, name], each, is_there) for name, each in inner.items()]
            else:
                waiting.append((path, inner, False))


def _is_plain(kind: Any) -> bool:
    kinds = {*kind} - {"null"} if isinstance(kind, list) else {kind}
    return len(kinds) == 1 and kinds <= TYPES


def _write(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():  # a whole number to JSON Schema
        value = int(value)
    if isinstance(value, int):
        return str(value)
    return write_header_value(value) if isinstance(value, str) else None
