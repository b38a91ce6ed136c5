"""Schemas: whether an embedded one is valid 2020-12, closed in itself and safe to hold calls against."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema_rs
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from unitools.checks import patterns
from unitools.checks.findings import declare_rule, declare_warning, format_pointer, walk_document
from unitools.checks.schema_walk import (
    MAX_EXPANSIONS,
    count_expansions,
    find_reference_loop,
    index_fragments,
    normalize_reference,
    walk_subschemas,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding, Path
    from unitools.manifest import Manifest

DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#")
DYNAMIC = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor")
MAX_EXAMPLES = 200
# Regular expressions are another rule's question: the engine that runs them is not Python's.
_FORMATS = FormatChecker(set(Draft202012Validator.FORMAT_CHECKER.checkers) - {"regex"})
CREDENTIAL = re.compile(
    r"(?:.*[_-])?(?:password|passwd|passphrase|secret|api_?key|access_?key|private_?key|access_?token|auth_?token|bearer|credentials?)",
    re.IGNORECASE,
)

REMOTE_REF = declare_rule(
    "schema.remote_ref",
    "References stay inside the schema: nothing is fetched.",
    "Copy the schema into $defs and refer to #/$defs/….",
)
DANGLING_REF = declare_rule(
    "schema.dangling_ref",
    "A reference names a schema of the same document.",
    "Add the definition, or correct the pointer.",
)
REF_LOOP = declare_rule(
    "schema.ref_loop",
    "References that come back to the same schema go through a part of the value (properties, items): else they never end.",
    "Take the reference out, or put it below properties or items.",
)
DYNAMIC_REF = declare_rule(
    "schema.dynamic_ref",
    "References are plain $ref: what a dynamic one means depends on how it was reached.",
    "Write $ref to #/$defs/….",
)
NESTED_ID = declare_rule(
    "schema.nested_id",
    "Only the outermost schema has an $id: an inner one changes what references mean.",
    "Remove the $id.",
)
DIALECT = declare_rule("schema.dialect", "Schemas are JSON Schema 2020-12.", f"Use {DIALECTS[0]} or leave it out.")
EXPANSION = declare_rule(
    "schema.expansion",
    f"With references followed, one value is held against at most {MAX_EXPANSIONS:,} subschemas.",
    "Refer to each definition once where you can, or write it out.",
)
INVALID = declare_rule("schema.invalid", "Schemas are valid JSON Schema.", "Make it valid JSON Schema 2020-12.")
PATTERN = declare_rule(
    "schema.pattern",
    f"Regular expressions are for a linear engine: no look-around or back-references, at most {patterns.MAX_LENGTH:,} "
    f"characters, and {patterns.MAX_SIZE} with counted repetitions written out ({patterns.MAX_TOTAL:,} in one schema).",
    "Simplify the expression; say lengths with minLength and maxLength.",
)
UNSUPPORTED = declare_rule(
    "schema.unsupported",
    "The validator that runs on calls can compile the schema.",
    "Use only keywords and formats of JSON Schema 2020-12.",
)
INPUT_OBJECT = declare_rule(
    "schema.input_object", "Arguments are passed by name, so the input is an object.", 'Set "type": "object".'
)
EXAMPLE_INVALID = declare_warning(
    "schema.example_invalid",
    "Defaults and examples are valid: models copy them.",
    "Correct the example, or the schema beside it.",
)
CREDENTIAL_ARGUMENT = declare_warning(
    "schema.credential_argument",
    "No argument is a credential: models would write it, and callers would have to know it.",
    "Name it under secrets; a tenant sets it and the tool gets it when it runs.",
)
CONFIG_OBJECT = declare_rule("config.not_object", "A configuration is an object.", 'Set "type": "object".')
CONFIG_OPEN = declare_rule(
    "config.open",
    "A configuration has no unknown names: a mistyped one would be kept and never read.",
    'Set "additionalProperties": false.',
)
CONFIG_SECRET = declare_warning(
    "config.secret",
    "No secret is part of a configuration: configurations are shown and kept in clear.",
    "Name it under secrets.",
)


def check_schema(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    """The first kind of mistake ends the look: what follows would rest on it."""
    steps = (_references, _expansion, _valid, _patterns, _compiles, _examples)
    for each in steps:
        found = list(each(field, schema))
        yield from found
        if found:
            return


def _references(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    for path, value in walk_document(schema, (field,)):
        # A text anywhere, also in data: the library would fetch a dialect that it does not know, from whatever address it is.
        if path[-1] == "$schema" and (len(path) == 2 or isinstance(value, str)) and value not in DIALECTS:
            yield DIALECT.at(path, f"{str(value)[:200]} is not JSON Schema 2020-12.")
    known = index_fragments(schema)
    for path, node in walk_subschemas(schema, (field,)):
        for key in DYNAMIC:
            if key in node:
                yield DYNAMIC_REF.at((*path, key), f"{key} is not read.")
        if len(path) > 1 and "$id" in node:
            yield NESTED_ID.at((*path, "$id"), "An inner schema has an $id.")
        if isinstance(reference := node.get("$ref"), str):
            yield from _reference((*path, "$ref"), reference, known)
    if not known or (loop := find_reference_loop(schema)) is None:
        return
    yield REF_LOOP.at((field, *loop), "From here references come back to this schema with the same value, for ever.")


def _reference(path: Path, reference: str, known: dict[str, Path]) -> Iterator[ManifestFinding]:
    if not reference.startswith("#"):
        yield REMOTE_REF.at(path, f"{reference[:200]} points outside the manifest.")
    elif normalize_reference(reference) not in known:
        yield DANGLING_REF.at(path, f"{reference[:200]} names no schema of this document.")


def _expansion(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    if count_expansions(schema) > MAX_EXPANSIONS:
        yield EXPANSION.at((field,), "References multiply: one value would be held against too many subschemas.")


def _valid(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    try:
        Draft202012Validator.check_schema(schema, format_checker=_FORMATS)
    except SchemaError as error:
        yield INVALID.at((field, *error.path), error.message)


def _patterns(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    total, refused = 0, False
    for path, node in walk_subschemas(schema, (field,)):
        asked: list[tuple[Path, str]] = [((*path, "pattern"), node["pattern"])] if "pattern" in node else []
        asked += [((*path, "patternProperties", name), name) for name in node.get("patternProperties", {})]
        for place, text in asked:
            if isinstance(text, str):
                total += patterns.measure_pattern(text[: patterns.MAX_LENGTH])
                if sentence := patterns.find_refusal_reason(text):
                    refused = True
                    yield PATTERN.at(place, sentence)
    if total > patterns.MAX_TOTAL and not refused:
        yield PATTERN.at((field,), f"Written out, all patterns together have about {total:,} characters.")


def _compiles(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    try:
        compile_schema(schema)
    except ValueError as error:
        yield UNSUPPORTED.at((field,), str(error))


def _examples(field: str, schema: dict[str, Any]) -> Iterator[ManifestFinding]:
    """Only where no reference is followed: one would be read from another document here."""
    looked = 0
    for path, node in walk_subschemas(schema, (field,)):
        given: list[tuple[str, int | None, Any]] = [("default", None, node["default"])] if "default" in node else []
        examples = node.get("examples", [])
        given += [
            ("examples", index, value) for index, value in enumerate(examples if isinstance(examples, list) else [])
        ]
        if not given or any("$ref" in inner for _, inner in walk_subschemas(node)):
            continue
        validator = compile_schema(node)
        for key, index, value in given:
            looked += 1
            if looked > MAX_EXAMPLES:
                return
            error = next(iter(validator.iter_errors(value)), None)
            if error is not None:
                yield EXAMPLE_INVALID.at(
                    (*path, key) if index is None else (*path, key, index), describe_violation(error)
                )


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the manifest.")


def compile_schema(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """The validator that runs on calls: linear regular expressions, formats asserted, nothing fetched, no value quoted."""
    return jsonschema_rs.Draft202012Validator(
        schema,
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=True,
        retriever=_fetch_nothing,
        mask="the value",
    )


_UNEXPECTED = (
    jsonschema_rs.ValidationErrorKind.AdditionalProperties,
    jsonschema_rs.ValidationErrorKind.UnevaluatedProperties,
)


def describe_violation(error: jsonschema_rs.ValidationError, *, to_sender: bool = True) -> str:
    """What a compiled schema asks for. No value is quoted, nor a name by its form; a property that is one too many is named only to
    whoever sent it.
    """
    kind = error.kind
    if not to_sender and isinstance(kind, _UNEXPECTED):
        return "Properties that the schema does not name are not allowed"
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.PropertyNames):
        error = kind.error
    return error.message[:300]


def walk_property_names(field: str, schema: Any) -> Iterator[tuple[Path, str]]:
    """The name of every property at any depth, with its path."""
    for path, node in walk_subschemas(schema, (field,)):
        properties = node.get("properties")
        for name in properties if isinstance(properties, dict) else ():
            yield (*path, "properties", name), name


def check_schemas(manifest: Manifest) -> Iterator[ManifestFinding]:
    for field in ("input_schema", "output_schema", "config_schema"):
        if field in manifest.document:
            yield from check_schema(field, manifest.document[field])


def check_input(manifest: Manifest) -> Iterator[ManifestFinding]:
    schema = manifest.document["input_schema"]
    if schema.get("type") != "object":
        yield INPUT_OBJECT.at(("input_schema", "type"), "The input is not an object.")
    for path, name in walk_property_names("input_schema", schema):
        if CREDENTIAL.fullmatch(name):
            yield CREDENTIAL_ARGUMENT.at(path, f"The argument {name[:80]} looks like a credential.")


def check_config(manifest: Manifest) -> Iterator[ManifestFinding]:
    schema = manifest.config_schema
    if schema is None:
        return
    if schema.get("type") != "object":
        yield CONFIG_OBJECT.at(("config_schema", "type"), "The configuration is not an object.")
    if schema.get("additionalProperties") is not False and schema.get("unevaluatedProperties") is not False:
        yield CONFIG_OPEN.at(
            ("config_schema", "additionalProperties"), "The configuration takes names that nobody described."
        )
    for path, name in walk_property_names("config_schema", schema):
        if CREDENTIAL.fullmatch(name):
            yield CONFIG_SECRET.at(path, f"The setting {name[:80]} looks like a secret.")


__all__ = [
    "MAX_EXPANSIONS",
    "check_config",
    "check_input",
    "check_schemas",
    "compile_schema",
    "count_expansions",
    "format_pointer",
    "walk_property_names",
]
