"""OpenAPI arguments: what an agent says of an operation, as one flat, closed object, and where each of it goes.

Not an agent's are what frames the request and what says who is asking. A body that is a plain object is taken apart; any other is one
argument.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit, escape_token
from unitools.openapi.parts import is_json
from unitools.openapi.requests import FORM, PLACEHOLDER, is_reserved_header, is_token
from unitools.openapi.schemas import MAX_INNER_TEXT, SchemaReader, measure_schema
from unitools.openapi.security import find_key_names, property_proves_identity, proves_identity
from unitools.openapi.texts import clean_text, find_name_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.operations import Choices
    from unitools.openapi.parts import MediaSchema, OperationParameter, OperationParts
    from unitools.openapi.security import Security

MAX_ARGUMENTS = 300
MAX_MERGED = 50  # objects that all hold, in one body
MAX_TEXT_BYTES = 4 * 1024  # of all arguments with all texts; with more, what is nested has none
MAX_INPUT_BYTES = 7 * 1024  # with more than that, what is nested deepest is not described
MAX_INPUT_NODES = 1800
MAX_TAKEN_BYTES = 256 * 1024
MAX_WHOLE_BYTES = 100 * 1024
_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")
_PLAIN_OBJECT = frozenset({
    "type", "properties", "required", "title", "description", "example", "examples", "externalDocs", "xml", "additionalProperties",
    "nullable", "deprecated", "readOnly", "writeOnly", "default", "$schema", "discriminator", "minProperties", "$comment",
})  # fmt: skip


@dataclass(slots=True)
class OperationArgument:
    """One argument before it has a name of its own."""

    place: str
    name: str
    schema: Any
    is_required: bool
    said: dict[str, Any] = field(default_factory=dict)  # style, explode, as_json


def keep_arguments(
    document: OpenApiDocument,
    parts: OperationParts,
    security: Security,
    choices: Choices,
    notes: list[DocumentDiagnostic],
    host: str,
) -> Iterator[OperationParameter]:
    """The parameters that an agent says: not what frames the request, nor who is asking."""
    keys = find_key_names(document)
    for each in parts.parameters:
        at = each.pointer
        if each.place == "header" and each.name.lower() == choices.idempotency_header.lower() != "":
            continue
        if security.covers(each.place, each.name):
            notes.append(
                DocumentDiagnostic(at, f"The parameter {each.name[:60]!a} is a credential, which the gate adds.")
            )
        elif proves_identity(each, keys):
            _take_credential(each, security, choices, notes, host)
        elif each.place == "header" and is_reserved_header(each.name):
            notes.append(
                DocumentDiagnostic(at, f"The header {each.name[:60]!a} is the gate's to say, and no argument.")
            )
        elif each.place in ("header", "cookie") and not is_token(each.name):
            raise DocumentUnfit(
                at,
                f"No {each.place} can be called {each.name[:60]!a}.",
                "Correct the name in the document, or leave the operation out.",
            )
        elif problem := find_name_problem(each.name) or ("Its name is too long." if len(each.name) > 200 else ""):
            raise DocumentUnfit(at, problem, "Correct the name in the document, or leave the operation out.")
        else:
            yield each


def _take_credential(
    each: OperationParameter, security: Security, choices: Choices, notes: list[DocumentDiagnostic], host: str
) -> None:
    if security.credentials or not is_token(each.name):
        notes.append(
            DocumentDiagnostic(
                each.pointer,
                f"The parameter {each.name[:60]!a} says who is asking, and is no argument; the gate adds the credential.",
            )
        )
        return
    secret = (
        next((said.name for said in choices.secrets if not said.how), "")
        or f"{choices.prefix}_{re.sub('[^A-Z0-9]+', '_', each.name.upper())}"[:64]
    )
    security.take_parameter(each, secret, host=host)
    notes.append(
        DocumentDiagnostic(
            each.pointer, f"The parameter {each.name[:60]!a} says who is asking: it is a secret, and no argument."
        )
    )


def choose_body(
    entry: OperationEntry, parts: OperationParts, notes: list[DocumentDiagnostic]
) -> tuple[str, MediaSchema | None]:
    if not parts.body:
        return "", None
    if entry.method in ("GET", "HEAD"):
        if parts.body_is_required:
            raise DocumentUnfit(
                parts.body_pointer,
                f"{entry.method} has a body, which not every server between reads.",
                "Leave the operation out.",
            )
        notes.append(DocumentDiagnostic(parts.body_pointer, f"The body of {entry.method} is left out."))
        return "", None
    ranked = sorted(parts.body, key=_rank_body)
    media = ranked[0]
    if _rank_body(media) > 3:
        if not parts.body_is_required and parts.body_is_optional:
            notes.append(
                DocumentDiagnostic(
                    parts.body_pointer, f"The body is {media[:60]!a}, which is not sent; it may be left out."
                )
            )
            return "", None
        raise DocumentUnfit(
            parts.body_pointer,
            f"The body is {' or '.join(ranked)[:120]}: files and XML are not sent yet.",
            "Leave the operation out, or write a tool for it.",
        )
    if len(ranked) > 1:
        notes.append(DocumentDiagnostic(parts.body_pointer, f"Of {len(ranked)} forms of the body, {media} is sent."))
    found = parts.body[media]
    if media in ("*/*", "application/*"):
        notes.append(DocumentDiagnostic(parts.body_pointer, "The body may be anything; JSON is sent."))
        media = "application/json"
    return media, found


def _rank_body(media: str) -> int:
    if media == "application/json":
        return 0
    if is_json(media):
        return 1 if "merge-patch" in media else 2
    return 2 if media in ("*/*", "application/*") else 3 if media == FORM else 9


def read_input(
    document: OpenApiDocument,
    entry: OperationEntry,
    parts: OperationParts,
    parameters: Sequence[OperationParameter],
    media: str,
    body: MediaSchema | None,
    security: Security,
    notes: list[DocumentDiagnostic],
) -> tuple[SchemaReader, list[OperationArgument], OperationArgument | None]:
    """With all texts; where that is too much, without those further away; then without what is nested deepest."""
    kept = [len(notes)]
    for step in ("all", "near", "cut", "none"):
        limit = MAX_TAKEN_BYTES if step in ("all", "near") else MAX_INPUT_BYTES
        nodes = 10 * MAX_INPUT_NODES if step in ("all", "near") else MAX_INPUT_NODES
        reader = SchemaReader(document, True, nodes, limit, with_texts=step != "none")
        del notes[kept[0] :]
        arguments = list(_read_parameters(reader, parameters))
        whole = None
        if body is not None:
            properties, whole = _read_body(reader, parts, media, body, security, notes)
            arguments += properties
        if len(arguments) > MAX_ARGUMENTS:
            raise DocumentUnfit(
                entry.pointer,
                f"The operation has {len(arguments)} arguments; most are {MAX_ARGUMENTS}.",
                "Leave the operation out.",
            )
        roots = [each.schema for each in [*arguments, *([whole] if whole else [])]]
        reader.nodes, reader.bytes = measure_schema(roots)
        if step == "near":
            reader.with_texts = False
        if step == "cut":
            reader.with_texts = False
            reader.bytes = max(
                0, reader.bytes - MAX_INPUT_BYTES // 2
            )  # the arguments themselves may have more than a half
        reader.finish()
        size = reader.bytes
        if step in ("all", "near") and "far" in reader.diagnostics:
            raise DocumentUnfit(
                parts.body_pointer,
                f"What the operation takes has more than {MAX_TAKEN_BYTES // 1024} KiB with all that it refers to.",
                "Leave the operation out.",
            )
        fits = {"all": MAX_TEXT_BYTES, "near": MAX_INPUT_BYTES}.get(step, MAX_WHOLE_BYTES)
        if reader.nodes <= MAX_INPUT_NODES and size <= fits:
            if step != "all":
                reader.note(
                    "texts", entry.pointer, "There is too much to take: descriptions of what is nested are left out."
                )
            return reader, arguments, whole
    raise DocumentUnfit(
        parts.body_pointer, "What the operation takes is too much for one manifest.", "Leave the operation out."
    )


def _read_parameters(reader: SchemaReader, parameters: Sequence[OperationParameter]) -> Iterator[OperationArgument]:
    for each in parameters:
        schema = reader.read(each.schema, each.pointer)
        schema = {} if schema is True else {"not": {}} if schema is False else schema
        if "description" not in schema and reader.with_texts and each.description:
            text, why = clean_text(each.description, MAX_INNER_TEXT)
            schema = {"description": text, **schema} if text else schema
            if why:
                reader.note(f"text {why}", each.pointer, why)
        said: dict[str, Any] = {"style": each.style} if each.style else {}
        said |= {"explode": each.explode} if each.explode is not None else {}
        said |= {"as_json": True} if each.as_json else {}
        if each.is_deprecated:
            schema = {**schema, "deprecated": True}
        yield OperationArgument(each.place, each.name, schema, each.is_required, said)


def _read_body(
    reader: SchemaReader,
    parts: OperationParts,
    media: str,
    body: MediaSchema,
    security: Security,
    notes: list[DocumentDiagnostic],
) -> tuple[list[OperationArgument], OperationArgument | None]:
    """Its properties as arguments where it is a plain object, else one argument that is the whole of it."""
    document = reader.document
    schema = {} if body.schema is None else body.schema
    plain = _flatten(document, schema, body.pointer, [MAX_MERGED])
    if plain is None or not plain.properties:
        if media == FORM and plain is None and not _is_object(document, schema, body.pointer):
            raise DocumentUnfit(body.pointer, "The form is no object.", "Leave the operation out.")
        text = {"description": "The whole body."} if not isinstance(schema, dict) or "description" not in schema else {}
        read = reader.read(schema, body.pointer)
        read = text | read if isinstance(read, dict) else text
        return [], OperationArgument("body", "body", read, parts.body_is_required)
    if plain.is_open:
        notes.append(
            DocumentDiagnostic(body.pointer, "The body may have properties that are not named; they cannot be sent.")
        )
    if parts.body_is_optional and plain.required:
        notes.append(
            DocumentDiagnostic(body.pointer, "The body may be left out, so none of its properties has to be said.")
        )
    found = []
    for name, (said, at) in plain.properties.items():
        if isinstance(said, dict) and said.get("readOnly") is True:
            continue
        is_required = name in plain.required and not parts.body_is_optional
        if problem := find_name_problem(name) or ("Its name is too long." if len(name) > 200 or not name else ""):
            raise DocumentUnfit(at, problem, "Correct the name in the document, or leave the operation out.")
        if property_proves_identity(document, name, said, at, security, is_required=is_required):
            notes.append(
                DocumentDiagnostic(
                    at, f"{name[:60]!a} says who is asking, and is no argument; the gate adds the credential."
                )
            )
            continue
        read = reader.read(said, at)
        read = {} if read is True else {"not": {}} if read is False else read
        found.append(
            OperationArgument("body", name, read, is_required, _form_style(reader, media, body, name, said, at))
        )
    return found, None


def _form_style(reader: SchemaReader, media: str, body: MediaSchema, name: str, said: Any, at: str) -> dict[str, Any]:
    if media != FORM:
        return {}
    encoding = body.encoding.get(name)
    if isinstance(encoding, dict):
        style = encoding.get("style")
        explode = encoding.get("explode")
        found: dict[str, Any] = {"style": style} if style in ("spaceDelimited", "pipeDelimited", "deepObject") else {}
        if isinstance(explode, bool) and explode is not (style in (None, "form", "deepObject")):
            found["explode"] = explode
        if found or style == "form":
            return found
    schema, _ = reader.document.resolve(said, at)
    kind = schema.get("type") if isinstance(schema, dict) else None
    items = schema.get("items") if kind == "array" else None
    inner, _ = reader.document.resolve(items, at) if items is not None else (None, "")
    if kind == "object" or (isinstance(inner, dict) and inner.get("type") in ("object", "array")):
        return {"as_json": True}  # as 3.0 has it where nothing is said
    return {}


@dataclass(slots=True)
class _PlainObject:
    properties: dict[str, tuple[Any, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    is_open: bool = False


def _is_object(document: OpenApiDocument, schema: Any, pointer: str) -> bool:
    said, _ = document.resolve(schema, pointer)
    return isinstance(said, dict) and (said.get("type") in ("object", None))


def _flatten(document: OpenApiDocument, schema: Any, pointer: str, left: list[int]) -> _PlainObject | None:
    """A plain object, or several that all hold, as one; None: it is anything else. ``left``: how many more are looked at."""
    left[0] -= 1
    if left[0] < 0:
        return None
    beside = {name: each for name, each in schema.items() if name != "$ref"} if isinstance(schema, dict) else {}
    if document.revision == "3.1" and beside and isinstance(schema.get("$ref"), str):  # both count there
        return _flatten(document, {"allOf": [{"$ref": schema["$ref"]}, {"type": "object", **beside}]}, pointer, left)
    said, at = document.resolve(schema, pointer)
    if not isinstance(said, dict):
        return None
    names = {name for name in said if not str(name).startswith("x-")} - {"allOf"}
    if (
        names - _PLAIN_OBJECT
        or said.get("type", "object") != "object"
        or isinstance(said.get("additionalProperties"), dict)
    ):
        return None
    properties = said.get("properties", {})
    if not isinstance(properties, dict) or not ({"properties", "allOf"} & said.keys() or said.get("type") == "object"):
        return None
    found = _PlainObject(is_open=said.get("additionalProperties") is True)
    parts = said.get("allOf", [])
    if not isinstance(parts, list) or (parts and said.get("additionalProperties") is False):
        return None
    for index, each in enumerate(parts):
        inner = _flatten(document, each, f"{at}/allOf/{index}", left)
        if inner is None or any(
            found.properties.get(name, value)[0] != value[0] for name, value in inner.properties.items()
        ):
            return None
        found.properties |= inner.properties
        found.required |= inner.required
        found.is_open = found.is_open or inner.is_open
    own = {name: (each, f"{at}/properties/{escape_token(name)}") for name, each in properties.items()}
    if any(found.properties.get(name, value)[0] != value[0] for name, value in own.items()):
        return None
    found.properties |= own
    if isinstance(said.get("required"), list):
        found.required |= {each for each in said["required"] if isinstance(each, str)}
    return found


def name_arguments(
    operation: dict[str, Any],
    arguments: list[OperationArgument],
    whole: OperationArgument | None,
    media: str,
    entry: OperationEntry,
) -> dict[str, Any]:
    """One name for each. One that stands in two places gets its place in all of them."""
    everything = [*arguments, *([whole] if whole else [])]
    plain = [_plain_name(each.name) for each in everything]
    names: dict[str, OperationArgument] = {}
    for word, each in zip(plain, everything, strict=True):
        places = {other.place for said, other in zip(plain, everything, strict=True) if said == word}
        wanted = f"{word[:57]}_{each.place}" if len(places) > 1 else word
        name, number = wanted, 1
        while name in names or (name != word and name in plain and len(places) > 1):
            number += 1
            name = f"{wanted[:60]}_{number}"
        names[name] = each
    mapped = [
        {"argument": name, "in": each.place, "name": each.name} | each.said
        for name, each in names.items()
        if each is not whole
    ]
    in_path = {each["name"] for each in mapped if each["in"] == "path"}
    asked = PLACEHOLDER.findall(entry.path)
    if set(asked) != in_path or len(set(asked)) < len(asked):
        odd = sorted(set(asked) ^ in_path) or asked
        raise DocumentUnfit(
            f"{entry.pointer}/parameters",
            f"The path and its parameters disagree about {odd[0][:60]!a}.",
            "Correct the document.",
        )
    if mapped:
        operation["arguments"] = mapped
    if media:
        operation["body"] = {"media_type": media}
        if whole:
            operation["body"]["argument"] = next(name for name, each in names.items() if each is whole)
    required = [name for name, each in names.items() if each.is_required]
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: each.schema for name, each in names.items()},
    }
    return schema | ({"required": required} if required else {})


def _plain_name(name: str) -> str:
    word = _ALLOWED.sub("_", name).strip("_") or "value"
    return word if len(word) <= 60 else f"{word[:51]}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
