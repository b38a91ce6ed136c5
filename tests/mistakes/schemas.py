"""Examples for the rules about documents and schemas."""

from __future__ import annotations

from tests.mistakes.base import KEY, OBJECT, Mistake, doubling, giving, nested, said, taking
from unitools.checks import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES

DOCUMENT: dict[str, list[Mistake]] = {
    "model.written_by_author": [Mistake("what the hub writes of a model", {"model": {"provider": "openai"}}, "/model")],
    "model.group_reserved": [Mistake("the group of models", {"id": "model.openai.main"}, "/id")],
    "document.size": [
        Mistake("a list of very many", {"tags": ["a"] * 501}, "/tags", {"tags": ["a"]}),
        Mistake("very many values", {"scopes": [[0] * 400] * 20}, "/scopes"),
        Mistake("a text of half a megabyte", {"display_name": "x" * 2**19}, ""),
        Mistake("nesting without end", {"scopes": nested(70)}, "/scopes"),
    ],
    "document.not_json": [
        Mistake("not a number", {"timeout_ms": float("nan")}, "/timeout_ms", {"timeout_ms": 5000}),
        Mistake(
            "a number that programs read differently",
            giving({"const": 2**53}),
            "/output_schema/const",
            giving({"const": 1}),
        ),
        Mistake("half a character", said("a\ud800"), "/description", said("a")),
        Mistake("a NUL in a name", taking(**{"a\0": {}}), "/input_schema/properties", taking(a={})),
        Mistake("a set", {"tags": {"a"}}, "/tags", {"tags": ["a"]}),
    ],
    "schema.size": [
        Mistake(
            "too many nodes", giving({"enum": list(range(MAX_SCHEMA_NODES))}), "/output_schema", giving({"enum": [1]})
        ),
        Mistake("too many bytes", giving({"description": "x" * MAX_SCHEMA_BYTES}), "/output_schema"),
        Mistake("a megabyte", {"input_schema": OBJECT | {"title": "x" * 2**20}}, "/input_schema"),
        Mistake("a million numbers", giving({"enum": [1] * 2**20}), "/output_schema"),
        Mistake("a configuration too", {"config_schema": {"enum": [1] * MAX_SCHEMA_NODES}}, "/config_schema"),
    ],
    "schema.depth": [Mistake("too deep", giving(nested(MAX_SCHEMA_DEPTH)), "/output_schema", giving(nested(11)))],
}
SCHEMAS: dict[str, list[Mistake]] = {
    "schema.remote_ref": [
        Mistake("an address", giving({"$ref": "https://example.org/x"}), "/output_schema/$ref"),
        Mistake("a file", giving({"allOf": [{"$ref": "file:///etc/passwd"}]}), "/output_schema/allOf/0/$ref"),
        Mistake("a neighbour", giving({"items": {"$ref": "other.json#/a"}}), "/output_schema/items/$ref"),
        Mistake(
            "in a configuration",
            {"config_schema": OBJECT | {"additionalProperties": False, "$ref": "urn:x"}},
            "/config_schema/$ref",
        ),
    ],
    "schema.dangling_ref": [
        Mistake(
            "no definition",
            giving({"$ref": "#/$defs/a"}),
            "/output_schema/$ref",
            giving({"$ref": "#/$defs/a", "$defs": {"a": True}}),
        ),
        Mistake(
            "no anchor",
            giving({"$ref": "#a"}),
            "/output_schema/$ref",
            giving({"$ref": "#a", "items": {"$anchor": "a"}}),
        ),
        Mistake("not a schema", giving({"$ref": "#/enum/0", "enum": [{}]}), "/output_schema/$ref"),
        Mistake(
            "a name with signs",
            giving({"$ref": "#/$defs/a~1b%20d", "$defs": {"a/b c": {}}}),
            "/output_schema/$ref",
            giving({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {}}}),
        ),
    ],
    "schema.ref_loop": [
        Mistake("itself", giving({"$ref": "#"}), "/output_schema", giving({"properties": {"a": {"$ref": "#"}}})),
        Mistake(
            "two that name each other",
            giving({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "/output_schema/$defs/b",
            giving({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}),
        ),
        Mistake(
            "through a choice",
            giving({"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]}),
            "/output_schema/anyOf/1/not",
            giving({"anyOf": [{"type": "null"}, {"prefixItems": [{"$ref": "#"}]}]}),
        ),
    ],
    "schema.dynamic_ref": [
        Mistake("a dynamic reference", giving({"items": {"$dynamicRef": "#a"}}), "/output_schema/items/$dynamicRef"),
        Mistake("a dynamic anchor", giving({"$dynamicAnchor": "a"}), "/output_schema/$dynamicAnchor"),
        Mistake(
            "an old recursive one", giving({"items": {"$recursiveRef": "#"}}), "/output_schema/items/$recursiveRef"
        ),
    ],
    "schema.nested_id": [
        Mistake(
            "an inner name",
            giving({"$defs": {"a": {"$id": "urn:a"}}}),
            "/output_schema/$defs/a/$id",
            giving({"$id": "urn:a", "properties": {"$id": {"type": "string"}}}),
        )
    ],
    "schema.dialect": [
        Mistake(
            "another one", giving({"$schema": "http://json-schema.org/draft-07/schema#"}), "/output_schema/$schema"
        ),
        Mistake(
            "another one inside",
            giving({"properties": {"a": {"$schema": "http://127.0.0.1:9/x"}}}),
            "/output_schema/properties/a/$schema",
            giving({"properties": {"$schema": {"type": "string"}}}),
        ),
        Mistake("no text", {"input_schema": OBJECT | {"$schema": []}}, "/input_schema/$schema"),
        Mistake("no address", {"input_schema": OBJECT | {"$schema": "http://[bad"}}, "/input_schema/$schema"),
    ],
    "schema.expansion": [
        Mistake(
            "definitions that multiply", {"input_schema": doubling(40)}, "/input_schema", {"input_schema": doubling(5)}
        )
    ],
    "schema.invalid": [
        Mistake("no type", giving({"type": "strnig"}), "/output_schema/type", giving({"type": "string"})),
        Mistake("inside", taking(**{"a/b": {"minimum": "1"}}), "/input_schema/properties/a~1b/minimum"),
        Mistake("properties as a list", giving({"properties": []}), "/output_schema/properties"),
        Mistake("twice required", giving({"required": ["a", "a"]}), "/output_schema/required"),
    ],
    "schema.pattern": [
        Mistake("look-around", taking(a={"pattern": "(?=a)b"}), "/input_schema/properties/a/pattern"),
        Mistake("a back-reference", taking(a={"pattern": r"(a)\1"}), "/input_schema/properties/a/pattern"),
        Mistake("no expression", taking(a={"pattern": "["}), "/input_schema/properties/a/pattern"),
        Mistake(
            "a huge count",
            taking(a={"pattern": "^.{0,100000}$"}),
            "/input_schema/properties/a/pattern",
            taking(a={"maxLength": 100_000, "pattern": "^.{0,30}"}),
        ),
        Mistake("counts of counts", taking(a={"pattern": "((a{20}){20}){20}"}), "/input_schema/properties/a/pattern"),
        Mistake("very long", taking(a={"pattern": "a" * 1001}), "/input_schema/properties/a/pattern"),
        Mistake(
            "in a name",
            giving({"patternProperties": {"(?!x)": {}}}),
            "/output_schema/patternProperties/(?!x)",
            giving({"patternProperties": {"^[^x]": {}}}),
        ),
        Mistake("many together", giving({"allOf": [{"pattern": "(ab){200}"}] * 8}), "/output_schema"),
    ],
    "schema.unsupported": [
        Mistake(
            "an anchor where the engine sees none",
            giving({"$ref": "#b", "dependencies": {"a": {"$anchor": "b"}}}),
            "/output_schema",
            giving({"$ref": "#b", "dependentSchemas": {"a": {"items": {"$anchor": "b"}}}}),
        )
    ],
    "schema.input_object": [
        Mistake("a list", {"input_schema": {"type": "array"}}, "/input_schema/type", {"input_schema": OBJECT}),
        Mistake("anything", {"input_schema": {}}, "/input_schema/type"),
    ],
    "schema.example_invalid": [
        Mistake(
            "a default of another type",
            taking(a={"type": "integer", "default": "1"}),
            "/input_schema/properties/a/default",
            taking(a={"type": "integer", "default": 1}),
        ),
        Mistake(
            "an example that is too long",
            taking(a={"maxLength": 1, "examples": ["a", "ab"]}),
            "/input_schema/properties/a/examples/1",
            taking(a={"maxLength": 2, "examples": ["a", "ab"]}),
        ),
    ],
    "schema.credential_argument": [
        Mistake(
            "a password",
            taking(password={}),
            "/input_schema/properties/password",
            taking(password_length={"type": "integer"}),
        ),
        Mistake("a key", taking(service_api_key={}), "/input_schema/properties/service_api_key", taking(key={})),
    ],
    "config.not_object": [
        Mistake(
            "a list",
            {"config_schema": {"type": "array", "additionalProperties": False}},
            "/config_schema/type",
            {"config_schema": OBJECT | {"additionalProperties": False}},
        )
    ],
    "config.open": [
        Mistake(
            "open",
            {"config_schema": OBJECT},
            "/config_schema/additionalProperties",
            {"config_schema": OBJECT | {"unevaluatedProperties": False}},
        )
    ],
    "config.secret": [
        Mistake(
            "a secret in the clear",
            {"config_schema": {**OBJECT, "additionalProperties": False, "properties": {"client_secret": {}}}},
            "/config_schema/properties/client_secret",
            {"secrets": [KEY]},
        )
    ],
}
