"""Call sentences: whether what a manifest lets a person read of a call can be filled in from its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.call_sentences import Argument, Entries, Maybe, SentenceMalformed, parse_sentence
from unitools.checks.findings import declare_rule
from unitools.checks.schema_walk import resolve_fragment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unitools.call_sentences import Part, Path
    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

    Places = list[tuple[dict[str, Any], bool]]  # a schema that a value is held against, and whether it always is

WHERE = ("call_sentence",)
MAX_REFERENCES = 32

FORM = declare_rule(
    "call_sentence.form",
    "The call sentence names arguments in braces, and what may be left out in brackets.",
    "Write for example “{lines: {quantity} × {sku}} to {destination.city}[, {note}]”.",
)
NO_ARGUMENT = declare_rule(
    "call_sentence.no_argument",
    "The call sentence says something of the call: it names an argument at least.",
    "Name what a person decides by, or leave the sentence out.",
)
UNKNOWN = declare_rule(
    "call_sentence.unknown_argument",
    "Each argument that the call sentence names is a property in input_schema.",
    "Correct the name, or add the argument.",
)
WRONG_TYPE = declare_rule(
    "call_sentence.type",
    "The call sentence names single values, and lists with words for each entry.",
    "Name a property of the object, or write {list: words for each entry}.",
)
OPTIONAL = declare_rule(
    "call_sentence.optional",
    "What may be left out of a call stands in brackets in the call sentence.",
    "Put it in brackets with the words around it, or require it.",
)


def check_call_sentence(manifest: Manifest) -> Iterator[ManifestFinding]:
    text = manifest.call_sentence
    if not text:
        return
    try:
        parts = parse_sentence(text)
    except SentenceMalformed as error:
        yield FORM.at(WHERE, str(error))
        return
    if not any(_arguments(parts)):
        yield NO_ARGUMENT.at(WHERE, "The sentence would read the same for every call.")
    schema = manifest.input_schema
    yield from _check(parts, [(schema, True)], schema, may_be_missing=False)


def _arguments(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Maybe):
            yield from _arguments(part.parts)
        elif isinstance(part, Argument | Entries):
            yield part


def _check(parts: Iterable[Part], places: Places, root: Any, *, may_be_missing: bool) -> Iterator[ManifestFinding]:
    for part in parts:
        if isinstance(part, Maybe):
            yield from _check(part.parts, places, root, may_be_missing=True)
        elif isinstance(part, Argument | Entries):
            yield from _check_argument(part, places, root, may_be_missing=may_be_missing)


def _check_argument(
    part: Argument | Entries, places: Places, root: Any, *, may_be_missing: bool
) -> Iterator[ManifestFinding]:
    name = ".".join(part.path)
    found, always = _follow(places, part.path, root)
    if not found:
        yield UNKNOWN.at(WHERE, f"input_schema has no argument {name}.")
        return
    if not (always or may_be_missing):
        yield OPTIONAL.at(WHERE, f"A call may leave out {name}.")
    kinds = {kind for schema, _ in found for kind in _types(schema)}
    if isinstance(part, Entries):
        if kinds and "array" not in kinds:
            yield WRONG_TYPE.at(WHERE, f"{name} is no list.")
            return
        entries = [(schema["items"], always) for schema, always in found if isinstance(schema.get("items"), dict)]
        yield from _check(part.parts, _spread(entries, root), root, may_be_missing=False)
    elif kinds & {"array", "object"} and not kinds & {"string", "number", "integer", "boolean"}:
        yield WRONG_TYPE.at(WHERE, f"{name} is a list or an object.")


def _types(schema: dict[str, Any]) -> list[str]:
    said = schema.get("type", [])
    return [said] if isinstance(said, str) else [each for each in said if isinstance(each, str)]


def _spread(places: Places, root: Any, left: int = MAX_REFERENCES) -> Places:
    """The schemas with all that they refer to or are composed of."""
    found: Places = []
    for schema, always in places:
        if left <= 0:
            break
        found.append((schema, always))
        below = [(each, always) for each in schema.get("allOf", ()) if isinstance(each, dict)]
        below += [
            (each, False) for word in ("anyOf", "oneOf") for each in schema.get(word, ()) if isinstance(each, dict)
        ]
        reference = schema.get("$ref")
        if isinstance(reference, str) and isinstance(target := resolve_fragment(root, reference), dict):
            below.append((target, always))
        found += _spread(below, root, left - 1)
    return found


def _follow(places: Places, path: Path, root: Any) -> tuple[Places, bool]:
    """What an argument is held against, and whether every call has it."""
    always, here = True, _spread(places, root)
    for name in path:
        always = always and any(sure and name in schema.get("required", ()) for schema, sure in here)
        below = [(schema.get("properties", {}).get(name), sure) for schema, sure in here]
        here = _spread([(schema, sure) for schema, sure in below if isinstance(schema, dict)], root)
    return here, always
