"""OpenAPI plain objects: a body that can be taken apart into its properties, or several that all hold, as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import escape_token

if TYPE_CHECKING:
    from unitools.openapi.documents import OpenApiDocument

MAX_MERGED = 50  # objects that all hold, in one body; each hundred of names in one of them counts as another
_PLAIN_OBJECT = frozenset({
    "type", "properties", "required", "title", "description", "example", "examples", "externalDocs", "xml", "additionalProperties",
    "nullable", "deprecated", "readOnly", "writeOnly", "default", "$schema", "discriminator", "minProperties", "$comment",
})  # fmt: skip


@dataclass(slots=True)
class PlainObject:
    """Properties with where they stand. ``is_open``: others may be said as well."""

    properties: dict[str, tuple[Any, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    is_open: bool = False


def flatten_object(document: OpenApiDocument, schema: Any, pointer: str) -> PlainObject | None:
    """A plain object, or several that all hold, as one; None: it is anything else."""
    return _flatten(document, schema, pointer, [MAX_MERGED])


def _flatten(document: OpenApiDocument, schema: Any, pointer: str, left: list[int]) -> PlainObject | None:
    """``left``: how many more are looked at."""
    left[0] -= 1
    if not _has_room(left, schema):
        return None
    if (
        document.revision == "3.1"
        and isinstance(schema, dict)
        and len(schema) > 1
        and isinstance(schema.get("$ref"), str)
    ):
        beside = {name: each for name, each in schema.items() if name != "$ref"}  # both count there
        return _flatten(document, {"allOf": [{"$ref": schema["$ref"]}, {"type": "object", **beside}]}, pointer, left)
    said, at = document.resolve(schema, pointer)
    if not isinstance(said, dict):
        return None
    properties, required = said.get("properties", {}), said.get("required", [])
    if not isinstance(properties, dict) or not _has_room(
        left, said if said is not schema else (), properties, required
    ):
        return None
    names = {name for name in said if not str(name).startswith("x-")} - {"allOf"}
    if (
        names - _PLAIN_OBJECT
        or said.get("type", "object") != "object"
        or isinstance(said.get("additionalProperties"), dict)
        or not ({"properties", "allOf"} & said.keys() or said.get("type") == "object")
    ):
        return None
    found = PlainObject(is_open=said.get("additionalProperties") is True)
    parts = said.get("allOf", [])
    if not isinstance(parts, list) or (parts and said.get("additionalProperties") is False):
        return None
    for index, each in enumerate(parts):
        inner = _flatten(document, each, f"{at}/allOf/{index}", left)
        if inner is None or not _agree(document, found, inner.properties):
            return None
        found.properties |= inner.properties
        found.required |= inner.required
        found.is_open = found.is_open or inner.is_open
    own = {name: (each, f"{at}/properties/{escape_token(name)}") for name, each in properties.items()}
    if not _agree(document, found, own):
        return None
    found.properties |= own
    if isinstance(required, list):
        found.required |= {each for each in required if isinstance(each, str)}
    return found


def _has_room(left: list[int], *named: Any) -> bool:
    """Whether so many names may be looked at; they are taken from what is left."""
    left[0] -= sum(len(each) for each in named if isinstance(each, dict | list)) // 100
    return left[0] >= 0


def _agree(document: OpenApiDocument, found: PlainObject, properties: dict[str, tuple[Any, str]]) -> bool:
    """Whether what two objects say of one property is the same."""
    return all(
        document.is_same(found.properties[name][0], said, at)
        for name, (said, at) in properties.items()
        if name in found.properties
    )
