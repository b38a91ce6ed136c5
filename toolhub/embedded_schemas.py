"""Embedded schemas: forms that the hub keeps as JSON Schema, as components of the OpenAPI document.

OpenAPI 3.0 has a dialect of its own: no ``const``, no list of types, and definitions live among the components.
"""

from __future__ import annotations

from typing import Any

from access.policies.language import document_schema

TYPES = {bool: "boolean", int: "integer", str: "string"}
EMBEDDED = {"PolicyDocument": document_schema}


def embed_schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, build in EMBEDDED.items():
        schema = dict(build())
        definitions = schema.pop("$defs", {})
        for each in ("$schema", "title"):  # the title would be another name for the same
            schema.pop(each, None)
        found[name] = _translate(schema, name)
        for each, said in definitions.items():
            found |= _list_forms(_name(name, each), said, name)
    return found


def _list_forms(name: str, said: dict[str, Any], owner: str) -> dict[str, Any]:
    """A definition; where it depends on conditions, one of forms, a component each, which makers of clients can name."""
    branches = [each for each in said.get("allOf", []) if "if" in each]
    if not branches:
        return {name: _translate(said, owner)}
    forms = {f"{name}{number}": _translate(_branch(said, each), owner) for number, each in enumerate(branches, 1)}
    return {name: {"oneOf": [{"$ref": f"#/components/schemas/{form}"} for form in forms]}} | forms


def _name(owner: str, definition: str) -> str:
    return f"{owner}{definition.title().replace('_', '')}"


def _translate(said: Any, owner: str) -> Any:
    if isinstance(said, list):
        return [_translate(each, owner) for each in said]
    if not isinstance(said, dict):
        return said
    found: dict[str, Any] = {}
    for key, value in said.items():
        if key == "$ref":
            found[key] = f"#/components/schemas/{_name(owner, value.rpartition('/')[2])}"
        elif key == "const":
            found |= {"enum": [value], "type": TYPES[type(value)]}
        elif key == "properties":  # whose keys are names, also `const` and the like
            found[key] = {name: {} if each is True else _translate(each, owner) for name, each in value.items()}
        else:
            found[key] = _translate(value, owner)
    return found


def _branch(whole: dict[str, Any], branch: dict[str, Any]) -> dict[str, Any]:
    """What holds under one of several conditions, each of which names all that there may be then."""
    then = branch["then"]
    chosen = {name: whole["properties"][name] if each is True else each for name, each in then["properties"].items()}
    required = [*whole["required"], *then.get("required", [])]
    return {
        "type": "object",
        "required": required,
        "properties": chosen | branch["if"]["properties"],
        "additionalProperties": False,
    }
