"""Pairs of JSON Schemas of which one is a mutation of the other, with values near the limits of both.

Everything comes from one ``random.Random``, so hypothesis can drive (and shrink) it and a plain loop can count. The vocabulary is
small on purpose: three property names, numbers around nought, short texts. Values then hit the limits often.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

NAMES = ("a", "b", "c")
NUMBERS = (-1, 0, 1, 2, 3, 4, 0.5, 1.5, 2.0)
TEXTS = ("", "a", "ab", "abc", "b", "2026-11-22")
SCALARS = (None, True, False, *NUMBERS, *TEXTS)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
PATTERNS = ("^a", "b$", "^[a-b]+$")
DEFINITIONS = ("d", "e")

Schema = Any


def any_schema(rng: Random, depth: int = 2) -> Schema:
    """A subschema. Objects are the most frequent: most rules are about them."""
    kinds = ["scalar", "scalar", "number", "text", "listed", "open"]
    kinds += ["object", "object", "object", "array", "combined", "reference", "closed"] if depth > 0 else []
    match rng.choice(kinds):
        case "number":
            return {"type": rng.choice(["integer", "number"]), **numeric(rng)}
        case "text":
            return {"type": "string", **textual(rng)}
        case "listed":
            return (
                {"enum": rng.sample(SCALARS, rng.randint(1, 4))}
                if rng.random() < 0.7
                else {"const": rng.choice(SCALARS)}
            )
        case "open":
            return rng.choice([True, {}, {}, False])
        case "object":
            return object_schema(rng, depth)
        case "closed":
            return object_schema(rng, depth) | {"additionalProperties": False}
        case "array":
            return array_schema(rng, depth)
        case "combined":
            return combined(rng, depth)
        case "reference":
            return {"$ref": "#/$defs/" + rng.choice(DEFINITIONS)}
        case _:
            types = rng.sample(TYPES, rng.randint(1, 3))
            return {"type": types[0] if len(types) == 1 else types}


def numeric(rng: Random) -> dict[str, Any]:
    words = rng.sample(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), rng.randint(0, 2))
    found: dict[str, Any] = {word: rng.choice(NUMBERS) for word in words}
    return found | ({"multipleOf": rng.choice((1, 2, 4, 0.5))} if rng.random() < 0.2 else {})


def textual(rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        word: rng.randint(0, 3) for word in rng.sample(("minLength", "maxLength"), rng.randint(0, 2))
    }
    found |= {"pattern": rng.choice(PATTERNS)} if rng.random() < 0.2 else {}
    return found | ({"format": "date"} if rng.random() < 0.1 else {})


def object_schema(rng: Random, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object"} if rng.random() < 0.9 else {}
    found["properties"] = {name: any_schema(rng, depth - 1) for name in rng.sample(NAMES, rng.randint(0, 3))}
    optional: dict[str, Any] = {
        "required": rng.sample(NAMES, rng.randint(0, 2)),
        "additionalProperties": any_schema(rng, 0),
        "patternProperties": {rng.choice(PATTERNS): any_schema(rng, 0)},
        "propertyNames": {"maxLength": rng.randint(0, 2)},
        "minProperties": rng.randint(0, 2),
        "maxProperties": rng.randint(0, 3),
        "dependentRequired": {rng.choice(NAMES): [rng.choice(NAMES)]},
        "dependentSchemas": {rng.choice(NAMES): any_schema(rng, 0)},
        "unevaluatedProperties": False,
    }
    weights = {"required": 0.5, "additionalProperties": 0.4, "unevaluatedProperties": 0.05}
    return found | {word: value for word, value in optional.items() if rng.random() < weights.get(word, 0.12)}


def array_schema(rng: Random, depth: int) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "items": any_schema(rng, depth - 1),
        "prefixItems": [any_schema(rng, 0) for _ in range(rng.randint(1, 2))],
        "minItems": rng.randint(0, 2),
        "maxItems": rng.randint(0, 3),
        "uniqueItems": True,
        "contains": any_schema(rng, 0),
        "minContains": rng.randint(0, 2),
        "maxContains": rng.randint(0, 2),
        "unevaluatedItems": False,
    }
    weights = {"items": 0.7, "unevaluatedItems": 0.05}
    chosen = {word: value for word, value in optional.items() if rng.random() < weights.get(word, 0.25)}
    return ({"type": "array"} if rng.random() < 0.9 else {}) | chosen


def combined(rng: Random, depth: int) -> dict[str, Any]:
    match rng.choice(["anyOf", "anyOf", "oneOf", "allOf", "not", "if"]):
        case "not":
            return {"not": any_schema(rng, 0)}
        case "if":
            return {
                word: any_schema(rng, depth - 1)
                for word in ("if", "then", "else")
                if word == "if" or rng.random() < 0.7
            }
        case word:
            return {word: [any_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]}


def document(rng: Random) -> dict[str, Any]:
    """A whole document. Its definitions may refer to each other and to the document, always one step into the value."""
    root = rng.choice([object_schema, object_schema, array_schema, combined])(rng, 3)
    return root | {"$defs": {name: definition(rng) for name in DEFINITIONS}}


def definition(rng: Random) -> Schema:
    if rng.random() < 0.5:
        return any_schema(rng, 0)
    below = {"$ref": rng.choice(["#", *(f"#/$defs/{name}" for name in DEFINITIONS)])}
    return {"type": "object", "properties": {rng.choice(NAMES): below, "c": any_schema(rng, 0)}}


# Mutations.


def places(schema: Schema) -> Iterator[dict[str, Any]]:
    """The subschemas that are objects, without the definitions."""
    if isinstance(schema, dict):
        yield schema
        for word in ("properties", "patternProperties", "dependentSchemas"):
            for child in schema.get(word, {}).values():
                yield from places(child)
        for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
            for child in schema.get(word, []):
                yield from places(child)
        for word in ("items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"):
            yield from places(schema.get(word))


def mutated(rng: Random, schema: Schema) -> Schema:
    """The document after one to three edits."""
    copy = json.loads(json.dumps(schema))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        used = [copy["$defs"][name] for name in DEFINITIONS if f'"#/$defs/{name}"' in json.dumps(copy)]
        meant = [node for part in (copy, *used) for node in places(part)]
        edit(rng, rng.choice(meant))
    return copy


def edit(rng: Random, node: dict[str, Any]) -> None:
    words = [word for word in node if word not in ("$defs", "$ref")]
    match rng.choice(["drop", "step", "step", "grow", "grow", "grow", "text", "wrap", "name", "part"]):
        case "drop" if words:
            del node[rng.choice(words)]
        case "step" if numbers := [word for word in words if type(node[word]) in (int, float)]:
            word = rng.choice(numbers)
            node[word] = max(
                node[word] + rng.choice((-1, 1)), 1 if word == "multipleOf" else 0 if word[:3] in LENGTHS else -9
            )
        case "grow":
            grow(rng, node)
        case "text":
            node[rng.choice(("title", "description"))] = rng.choice(TEXTS)
        case "wrap" if not {"$defs", "anyOf"} & node.keys():
            inner = dict(node)
            node.clear()
            node["anyOf"] = [inner, rng.choice([{"type": "null"}, any_schema(rng, 0)])]
        case "name":
            rename(rng, node)
        case "part" if parts := [word for word in ("anyOf", "oneOf", "allOf", "enum") if node.get(word)]:
            part(rng, node[rng.choice(parts)])
        case _:
            grow(rng, node)


LENGTHS = ("min", "max")


def keywords(rng: Random) -> dict[str, Any]:
    match rng.choice(["number", "text", "object", "array"]):
        case "number":
            return numeric(rng)
        case "text":
            return textual(rng)
        case "object":
            return object_schema(rng, 1)
        case _:
            return array_schema(rng, 1)


def grow(rng: Random, node: dict[str, Any]) -> None:
    """Give it a keyword, often one that its values notice."""
    source = keywords(rng)
    if isinstance(node.get("type"), str) and rng.random() < 0.3:
        source = {"type": rng.sample(sorted({node["type"], *rng.sample(TYPES, 2)}), 2)}
    if source:
        word = rng.choice(list(source))
        node[word] = source[word]


def rename(rng: Random, node: dict[str, Any]) -> None:
    """A property comes, goes, or is needed."""
    name, table = rng.choice(NAMES), node.setdefault("properties", {})
    match rng.choice(["come", "go", "need"]):
        case "come":
            table.setdefault(name, any_schema(rng, 1))
        case "go":
            table.pop(name, None)
        case _:
            needed = set(node.get("required", []))
            node["required"] = sorted(needed ^ {name})


def part(rng: Random, parts: list[Any]) -> None:
    if rng.random() < 0.4 and len(parts) > 1:
        parts.pop(rng.randrange(len(parts)))
    elif rng.random() < 0.3:
        rng.shuffle(parts)
    else:
        parts.append(
            any_schema(rng, 0) if any(isinstance(each, dict | bool) for each in parts) else rng.choice(SCALARS)
        )


# Values.


def some_values() -> list[Any]:
    """What is tried on every pair: all small values of each shape."""
    few = (None, True, 0, 1, 2.5, "", "ab")
    arrays = [
        [],
        *([each] for each in SCALARS),
        *([a, b] for a in few for b in (1, "a", 0)),
        [1, 1, 1],
        ["a", "b", 1],
        [1, 2, 3, 4],
    ]
    objects: list[Any] = [{}, *({name: each} for name in NAMES for each in SCALARS)]
    objects += [
        {a: each, b: other}
        for a, b in (("a", "b"), ("b", "c"), ("a", "c"))
        for each in few
        for other in (0, "ab", None)
    ]
    objects += [
        {"a": 1, "b": 1, "c": 1},
        {"a": "a", "b": "b", "c": "c"},
        {"ab": 1},
        {"d": "x"},
        {"a": 1, "d": 1},
        {"bb": None},
    ]
    nested = [{"a": each} for each in (*arrays[:12], *objects[1:40:3])] + [[each] for each in objects[:20]]
    deeper = [
        {name: {other: value}} for name in NAMES for other in NAMES for value in (1, "a", {"c": None}, {"a": {"a": 2}})
    ]
    return [*SCALARS, *arrays, *objects, *nested, *deeper]


def value_of(rng: Random, schema: Schema, root: Schema, depth: int = 4) -> Any:
    """A value that the schema may well accept, or miss by one."""
    if not isinstance(schema, dict) or depth == 0 or rng.random() < 0.08:
        return rng.choice(SCALARS)
    if "$ref" in schema:
        target = root if schema["$ref"] == "#" else root["$defs"][schema["$ref"].rpartition("/")[2]]
        return value_of(rng, target, root, depth - 1)
    if "const" in schema or schema.get("enum"):
        return schema.get("const", rng.choice(schema.get("enum") or [None]))
    parts = next((schema[word] for word in ("anyOf", "oneOf", "allOf") if schema.get(word)), None)
    if parts and rng.random() < 0.7:
        return value_of(rng, rng.choice(parts), root, depth - 1)
    types = schema.get("type") or ("object" if "properties" in schema else rng.choice(TYPES))
    match types if isinstance(types, str) else rng.choice(types):
        case "null":
            return None
        case "boolean":
            return rng.random() < 0.5
        case "integer" | "number":
            limits = [
                schema[word]
                for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
                if word in schema
            ]
            return rng.choice([*limits, 0]) + rng.choice((-1, 0, 0, 1, 0.5))
        case "string":
            return rng.choice(TEXTS)[: rng.randint(0, 3)] if rng.random() < 0.8 else "2026-11-22"
        case "array":
            first, rest = schema.get("prefixItems", []), schema.get("items", True)
            length = max(
                0, rng.choice([schema.get("minItems", 0), schema.get("maxItems", 2)]) + rng.choice((-1, 0, 0, 1))
            )
            return [value_of(rng, first[i] if i < len(first) else rest, root, depth - 1) for i in range(length)]
        case _:
            named = schema.get("properties", {})
            names = {*schema.get("required", []), *rng.sample(NAMES, rng.randint(0, 2))}
            rest = schema.get("additionalProperties", True)
            return {name: value_of(rng, named.get(name, rest), root, depth - 1) for name in sorted(names)}


POOL = some_values()


def judge(schema: Schema) -> jsonschema_rs.Draft202012Validator:
    """The validator that the hub runs on calls."""
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def pair(rng: Random, near: int = 30) -> tuple[Schema, Schema, list[Any]]:
    """Two schemas, and the values to try on them. Half of the edits lead back, so that both directions are seen."""
    old = document(rng)
    new = mutated(rng, old)
    if rng.random() < 0.5:
        old, new = new, old
    return old, new, [*POOL, *(value_of(rng, side, side) for side in (old, new) for _ in range(near))]
