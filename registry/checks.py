"""Can this manifest be registered, and if not, what exactly must change?

Every finding names a JSON pointer, the rule, a sentence and a fix. Errors refuse the manifest; warnings go along to the
reviewer.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema_rs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend

from access.capabilities import Capabilities
from unitools.manifest import Manifest, manifest_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_SCHEMA_NODES = 2000
MAX_SCHEMA_DEPTH = 24
MAX_EXPANSIONS = 20_000
MAX_MAJOR = 2_147_483_647
DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#")
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\uffff\U000e0000-\U000e0fff]"
)
CAPABILITY_OF_EFFECT = {"Network": "net", "Filesystem": "fs", "Browser": "browser", "Process": "proc"}
FRESHNESS_WORDS = re.compile(r"\b(price|pricing|quote|stock|inventory|availability|rate|route)s?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    pointer: str
    rule: str
    message: str
    fix: str
    severity: str = "error"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def _pointer(path: Any) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _fix_for(error: Any) -> str:
    match error.validator:
        case "required":
            return "Add the field."
        case "additionalProperties":
            return "Remove the field, or check its spelling."
        case "enum":
            return "Use one of: " + ", ".join(str(value) for value in error.validator_value) + "."
        case "pattern":
            return str(error.schema.get("description") or f"Match the pattern {error.validator_value}.")
        case "type":
            return f"Use a value of type {error.validator_value}."
        case _:
            return "See the manifest reference for this field."


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    """As JSON Schema means it: its `$` is the end, while Python's also matches before a last line feed."""
    del validator, schema
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


_ManifestValidator = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


def check_document(document: Any) -> Iterator[Finding]:
    """The shape: is it valid against the published manifest schema?"""
    validator = _ManifestValidator(manifest_schema(), format_checker=Draft202012Validator.FORMAT_CHECKER)
    for error in sorted(validator.iter_errors(document), key=lambda each: [str(part) for part in each.path]):
        yield Finding(_pointer(error.path), f"manifest.{error.validator}", error.message[:300], _fix_for(error))


def _walk(node: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    stack = [(path, node)]
    while stack:
        here, value = stack.pop()
        yield here, value
        if isinstance(value, dict):
            stack += [((*here, key), child) for key, child in value.items()]
        elif isinstance(value, list):
            stack += [((*here, index), child) for index, child in enumerate(value)]


def expansions(schema: dict[str, Any]) -> int:
    """How many subschemas one value can be held against, references followed; capped above ``MAX_EXPANSIONS``.

    Definitions that each refer twice to the next double the work at every step: small to write, hours to validate.
    """
    known: dict[str, int] = {}

    def cost(node: Any) -> int:
        total, stack = 0, [node]
        while stack and total <= MAX_EXPANSIONS:
            value = stack.pop()
            if isinstance(value, list):
                stack += value
            elif isinstance(value, dict):
                total += 1
                stack += [child for key, child in value.items() if key not in ("$defs", "definitions")]
                if isinstance(target := value.get("$ref"), str):
                    total += of_reference(target)
        return min(total, MAX_EXPANSIONS + 1)

    def of_reference(reference: str) -> int:
        if reference not in known:
            known[reference] = 1  # a cycle ends with the value, not with the schema
            known[reference] = cost(_resolve(schema, reference))
        return known[reference]

    return cost(schema)


def _resolve(schema: dict[str, Any], reference: str) -> Any:
    """What a ``#/…`` pointer names; nothing for anchors and for what is not there."""
    node: Any = schema
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, dict) and key in node:
            node = node[key]
        else:
            return None
    return node


def check_schema(manifest: Manifest, field: str) -> Iterator[Finding]:
    """Is an embedded schema valid 2020-12, of bounded size, closed in itself and safe to run?"""
    schema = manifest.document[field]
    nodes = list(_walk(schema, (field,)))
    if len(nodes) > MAX_SCHEMA_NODES:
        yield Finding(
            f"/{field}",
            "schema.size",
            f"The schema has {len(nodes)} nodes.",
            f"Keep it below {MAX_SCHEMA_NODES} nodes.",
        )
        return
    if max(len(path) for path, _ in nodes) > MAX_SCHEMA_DEPTH:
        yield Finding(
            f"/{field}", "schema.depth", "The schema is nested too deeply.", f"Keep it below {MAX_SCHEMA_DEPTH} levels."
        )
        return
    if expansions(schema) > MAX_EXPANSIONS:
        yield Finding(
            f"/{field}",
            "schema.expansion",
            "References multiply: one value would be held against too many subschemas.",
            "Refer to each definition once where you can, or write it out.",
        )
        return
    for path, value in nodes:
        if path[-1] in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
            yield Finding(
                _pointer(path),
                "schema.remote_ref",
                f"{value} points outside the manifest.",
                "Copy the schema into $defs and refer to #/$defs/….",
            )
            return
        # A text deep inside as well: the library would fetch a dialect that it does not know, from whatever address it is.
        if path[-1] == "$schema" and (len(path) == 2 or isinstance(value, str)) and value not in DIALECTS:
            yield Finding(
                _pointer(path),
                "schema.dialect",
                f"{str(value)[:200]} is not JSON Schema 2020-12.",
                f"Use {DIALECTS[0]} or leave it out.",
            )
            return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield Finding(
            f"/{field}" + _pointer(error.path),
            "schema.invalid",
            error.message[:300],
            "Make it valid JSON Schema 2020-12.",
        )
        return
    try:
        compile_schema(schema)
    except ValueError as error:
        yield Finding(
            f"/{field}",
            "schema.unsupported",
            str(error)[:300],
            "Use only regular expressions without look-around and back-references.",
        )


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside the manifest.")


def compile_schema(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """The validator that runs on calls: linear regular expressions, formats asserted, nothing fetched from anywhere."""
    return jsonschema_rs.Draft202012Validator(
        schema, pattern_options=jsonschema_rs.RegexOptions(), validate_formats=True, retriever=_fetch_nothing
    )


def check_version(manifest: Manifest) -> Iterator[Finding]:
    """Consents name the major version, as a number in the database."""
    if manifest.major > MAX_MAJOR:
        yield Finding(
            "/version", "version.major", f"The major version is larger than {MAX_MAJOR:,}.", "Use a smaller number."
        )


def check_input_is_object(manifest: Manifest) -> Iterator[Finding]:
    if manifest.input_schema.get("type") != "object":
        yield Finding(
            "/input_schema/type",
            "schema.input_object",
            "Arguments are passed by name, so the input is an object.",
            'Set "type": "object".',
        )


def check_side_effect(manifest: Manifest) -> Iterator[Finding]:
    """TOOLS-8: what the tool says it does and what it asks for must agree."""
    named = {name for name, value in manifest.capabilities.items() if name != "tmp" and value}
    effect = manifest.side_effect
    if effect == "None" and named:
        for name in sorted(named):
            yield Finding(
                f"/capabilities/{name}",
                "effect.none_with_capability",
                f"A tool with side_effect None asks for {name}.",
                "Name the side effect, or drop the capability.",
            )
    writes = any("write" in entry["actions"] for entry in manifest.capabilities.get("fs", []))
    if writes and effect in ("None", "Read"):
        yield Finding(
            "/side_effect",
            "effect.read_that_writes",
            f"side_effect is {effect}, but a file tree is asked for writing.",
            "Use Write or Filesystem.",
        )
    needed = CAPABILITY_OF_EFFECT.get(effect)
    if needed and needed not in named:
        yield Finding(
            f"/capabilities/{needed}",
            "effect.without_capability",
            f"side_effect is {effect}, but no {needed} capability is asked for.",
            f"Add capabilities.{needed}, or change the side effect.",
        )
    if effect != "None" and manifest.document.get("requires_sandbox") is False:
        yield Finding(
            "/requires_sandbox",
            "effect.outside_sandbox",
            "A tool with a side effect always runs in the sandbox.",
            "Set requires_sandbox to true, or leave it out.",
        )


def check_capabilities_readable(manifest: Manifest) -> Iterator[Finding]:
    try:
        Capabilities.from_json(manifest.capabilities)
    except ValueError as error:
        yield Finding("/capabilities", "capabilities.invalid", str(error), "Use plain absolute paths without `..`.")


def check_scopes_match_capabilities(manifest: Manifest) -> Iterator[Finding]:
    for index, scope in enumerate(manifest.document.get("scopes", [])):
        kind = scope["resource"].split(":")[1]
        if kind in ("fs", "net", "browser", "proc") and not manifest.capabilities.get(kind):
            yield Finding(
                f"/scopes/{index}",
                "scopes.without_capability",
                f"The scope {scope['resource']} needs the capability {kind}.",
                f"Add capabilities.{kind}, or drop the scope.",
            )


def check_write_is_retry_safe(manifest: Manifest) -> Iterator[Finding]:
    if manifest.side_effect == "Write" and manifest.idempotency == "none":
        yield Finding(
            "/idempotency",
            "write.not_keyed",
            "A write without an idempotency key is never retried after a crash.",
            'Honour the key and set "idempotency": "keyed".',
            "warning",
        )


def check_freshness(manifest: Manifest) -> Iterator[Finding]:
    """SPEC-5: prices, stock and routes need a TTL."""
    if manifest.ttl_seconds is None and FRESHNESS_WORDS.search(manifest.id.replace("_", " ").replace(".", " ")):
        yield Finding(
            "/ttl_seconds",
            "ttl.missing",
            "A tool that quotes prices, stock or routes says how long its answer is fresh.",
            "Add ttl_seconds.",
        )


def check_texts(manifest: Manifest) -> Iterator[Finding]:
    """What the reviewer sees must be what the model reads."""
    for path, value in _walk(manifest.document):
        if isinstance(value, str) and (found := INVISIBLE.search(value)):
            yield Finding(
                _pointer(path),
                "text.invisible",
                f"The text holds the invisible character U+{ord(found.group()):04X}.",
                "Remove it.",
            )


def check_not_enforced(manifest: Manifest) -> Iterator[Finding]:
    """What a manifest may say already and this version does not act on: nobody should rely on it."""
    document = manifest.document
    fix = "It may stay; do not rely on it yet."
    said = {
        "/consent/scope": document.get("consent", {}).get("scope") == "once",
        "/concurrency": document.get("concurrency") == "serial",
        "/limits/concurrency": "concurrency" in document.get("limits", {}),
        "/limits/files": bool(document.get("limits", {}).get("files")),
        "/provider_compat": bool(document.get("provider_compat")),
    }
    for pointer in (pointer for pointer, is_said in said.items() if is_said):
        yield Finding(
            pointer, "field.not_enforced", "This version of the hub does not act on this field.", fix, "warning"
        )


def check_dependencies(manifest: Manifest) -> Iterator[Finding]:
    if manifest.dependencies:
        yield Finding(
            "/dependencies",
            "dependencies.unsupported",
            "This version of the hub does not install dependencies for tools.",
            "Use the standard library, or ship the code in the tool's package.",
        )


CHECKS: tuple[Callable[[Manifest], Iterator[Finding]], ...] = (
    lambda manifest: check_schema(manifest, "input_schema"),
    lambda manifest: check_schema(manifest, "output_schema"),
    check_version,
    check_input_is_object,
    check_capabilities_readable,
    check_side_effect,
    check_scopes_match_capabilities,
    check_write_is_retry_safe,
    check_freshness,
    check_texts,
    check_dependencies,
    check_not_enforced,
)


def findings_of(document: Any) -> list[Finding]:
    """All findings, errors first. When the shape is wrong the other checks cannot run."""
    found = list(check_document(document))
    if not found:
        manifest = Manifest(document)
        found = [finding for check in CHECKS for finding in check(manifest)]
    return sorted(found, key=lambda finding: (finding.severity, finding.pointer))
