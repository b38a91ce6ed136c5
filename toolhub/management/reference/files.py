"""Files: what may stand in a configuration file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from toolhub.configuration.document import PRUNABLE, load_document_schema
from toolhub.configuration.file_format import MAX_BYTES, MAX_DEPTH
from toolhub.configuration.services import NEEDED
from toolhub.management.reference.markdown import format_code, format_page, format_table

if TYPE_CHECKING:
    from collections.abc import Iterator


def _resolved(node: dict[str, Any]) -> dict[str, Any]:
    """With what it refers to in the same schema."""
    found: dict[str, Any] = dict(node)
    for each in (node, *node.get("anyOf", [])):
        if "$ref" in each:
            found = load_document_schema()["$defs"][each["$ref"].rpartition("/")[2]] | found
    return found


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return ", ".join(format_code(value) for value in node["enum"])
    if "const" in node:
        return format_code(json.dumps(node["const"]))
    kinds = node.get("type", "")
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _bounds(node: dict[str, Any]) -> str:
    said = []
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " entries"),
    ):
        least, most = node.get(low), node.get(high)
        if most is not None:
            said.append(f"{f'{least:,} to' if least is not None else 'at most'} {most:,}{unit}")
    return f" ({'; '.join(said)})" if said else ""


def _fields(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, child in node.get("properties", {}).items():
        said = _resolved(child)
        needed = "yes" if name in node.get("required", []) else ""
        default = format_code(json.dumps(said["default"])) if "default" in said else ""
        yield format_code(prefix + name), _type(said), needed, default, said.get("description", "") + _bounds(said)
        yield from _fields(said.get("items", {}), f"{prefix}{name}[].")


def _section(name: str, node: dict[str, Any]) -> Iterator[str]:
    permission, scope = NEEDED[name]
    yield f"## `{name}`"
    yield node["description"]
    key = f" and a key {format_code(scope)}" if scope else "; no key may"
    yield f"To change something here, a person needs {format_code(permission)}{key}."
    if "items" in node:
        yield format_table(
            ("field", "type", "required", "when left out of something new", "meaning"), _fields(node["items"])
        )
    else:
        yield "Its form is that of the [policy document](../how-to/change-a-policy.md); a hub serves it at `/api/v1/policies/schema`."


def configuration_file_page() -> str:
    schema = load_document_schema()
    sections = {name: node for name, node in schema["properties"].items() if name in NEEDED}
    top = {**schema, "properties": {name: each for name, each in schema["properties"].items() if name not in NEEDED}}
    top["properties"]["prune"] = top["properties"]["prune"] | {"items": {}}
    return format_page(
        "Configuration file",
        "toolhub/configuration",
        "One file says what a tenant has: [how to use it](../how-to/configure-from-a-file.md). Its shape is the JSON Schema "
        "2020-12 in [configuration.schema.json](configuration.schema.json), which a hub serves at "
        "`/api/v1/configuration/schema`.",
        schema["description"],
        f"It is JSON or YAML of at most {MAX_BYTES:,} bytes and {MAX_DEPTH} levels. YAML is read as JSON means it: `true`, "
        "`false`, `null` and numbers in digits; everything else is a text, dates too. Anchors, aliases, tags and names that "
        "stand twice are refused.",
        format_table(("field", "type", "required", "default", "meaning"), _fields(top)),
        f"Sections that can be pruned: {', '.join(format_code(name) for name in PRUNABLE)}.",
        *(part for name, node in sections.items() for part in _section(name, node)),
    )
