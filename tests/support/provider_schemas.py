"""Provider schemas: which parameters of tools do providers of models take, as their APIs refuse the others?

OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", "array schema missing
items". Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level", and a pattern for names of properties.
Gemini: the same type; of JSON Schema all, where it arrives as such (``parametersJsonSchema``), else what its own form has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_AT_THE_TOP = {"oneOf", "anyOf", "allOf", "enum", "not"}
PROPERTY = r"[a-zA-Z0-9_.-]{1,64}"
# The Schema of Gemini's API; its SDK writes some names in snake case.
OF_GEMINI = {
    *("type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required"),
    *("minProperties", "maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering"),
    *("default", "items", "minimum", "maximum", "additionalProperties", "ref", "defs"),
}


def find_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """It, and every one within."""
    if not isinstance(schema, dict):
        return
    yield schema
    within = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), schema.get("items")]
    for name in ("anyOf", "oneOf", "allOf"):
        within += schema.get(name, [])
    for each in within:
        yield from find_schemas(each)


def check_parameters_taken_by_all(name: str, parameters: dict[str, Any]) -> None:
    """As a chat API gets them."""
    assert parameters.get("type") == "object", f"{name}: the type is no object: {parameters}"
    assert not NOT_AT_THE_TOP & set(parameters), f"{name}: {sorted(NOT_AT_THE_TOP & set(parameters))} at the top level"
    for schema in find_schemas(parameters):
        assert schema.get("type") != "array" or "items" in schema, f"{name}: an array without items: {schema}"
        odd = [each for each in schema.get("properties", {}) if not re.fullmatch(PROPERTY, each)]
        assert not odd, f"{name}: names of properties: {odd}"


def check_declaration_taken_by_gemini(declaration: dict[str, Any]) -> None:
    """As Gemini gets it, in either of its forms."""
    name, own = declaration["name"], declaration.get("parameters")
    if own is None:
        if "parametersJsonSchema" in declaration:  # a tool without parameters may have none
            assert declaration["parametersJsonSchema"].get("type") == "object", declaration
        return
    assert own.get("type", "").upper() == "OBJECT", f"{name}: the type is no object: {own}"
    for schema in find_schemas(own):
        unknown = {re.sub("_([a-z])", lambda found: found[1].upper(), each) for each in schema} - OF_GEMINI
        assert not unknown, f"{name}: Gemini has no {sorted(unknown)}"
