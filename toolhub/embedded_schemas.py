"""Embedded schemas: forms that the hub keeps as JSON Schema, as components of the OpenAPI document.

OpenAPI 3.0 has a dialect of its own: no ``const``, no list of types, and definitions live among the components.
"""

from __future__ import annotations

from typing import Any

from access.policies.language import document_schema

EMBEDDED = {"PolicyDocument": document_schema}


def embed_schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, build in EMBEDDED.items():
        schema = dict(build())
        definitions = schema.pop("$defs", {})
        for each in ("$schema", "title"):  # the title would be another name for the same
            schema.pop(each, None)
        found[name] = _translate(schema, name)
        found |= {_name(name, each): _translate(said, name) for each, said in definitions.items()}
    return found


def _name(owner: str, definition: str) -> str:
    return f"{owner}{definition.title().replace('_', '')}"


def _translate(said: Any, owner: str) -> Any:
    if isinstance(said, list):
        return [_translate(each, owner) for each in said]
    if not isinstance(said, dict):
        return said
    found = {}
    for key, value in said.items():
        if key == "$ref":
            found[key] = f"#/components/schemas/{_name(owner, value.rpartition('/')[2])}"
        elif key == "const":
            found |= {"enum": [value], "type": "integer" if isinstance(value, int) else "string"}
        elif key == "properties":  # whose keys are names, also `const` and the like
            found[key] = {name: _translate(each, owner) for name, each in value.items()}
        else:
            found[key] = _translate(value, owner)
    return found
