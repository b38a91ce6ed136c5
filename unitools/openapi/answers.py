"""OpenAPI answers: what an operation gives back, described loosely, and the media types that it is asked for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from unitools.openapi.bodies import ANY
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.files import FILE_ANSWER, is_file
from unitools.openapi.parts import is_json
from unitools.openapi.schemas import SchemaReader, keep_reachable, measure_schema

if TYPE_CHECKING:
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.parts import MediaSchema, OperationParts

MAX_OUTPUT_BYTES = 2 * 1024
MAX_OUTPUT_NODES = 200
_JSON = "application/json"
_MEDIA_RANGE = re.compile(r"(?:[*]|[a-z0-9.+-]{1,40})/(?:[*]|[a-z0-9.+-]{1,59})")
_TEXTS = re.compile(r"text/.+|application/(?:.+\+)?(?:xml|yaml)")
_ALWAYS_TEXT = ("text/plain", "text/html")  # what else is text may be long, and left as a file
LINKS = {"type": "object", "additionalProperties": {"type": "string"}}


def read_output(
    document: OpenApiDocument, entry: OperationEntry, parts: OperationParts, notes: list[DocumentDiagnostic]
) -> tuple[dict[str, Any], list[str], bool]:
    """The schema of the result, the media types that are asked for, and whether an answer may be left as a file. Loosely: of what is
    nested deep, and of what cannot be read, any value will do. Texts are left out."""
    reader = SchemaReader(document, False, MAX_OUTPUT_NODES, MAX_OUTPUT_BYTES, with_texts=False)
    schemas: list[Any] = []
    accept: list[str] = []
    has_nothing = entry.method == "HEAD" or not parts.answers
    leaves_file = False
    for status, content in parts.answers.items():
        if not content or status in ("204", "205"):
            has_nothing = True
            continue
        for media, said in _choose_forms(content).items():
            is_of_file = _is_file_answer(document, media, said)
            accept.append("*/*" if is_of_file and (is_json(media) or media in ANY) else _accepted(media))
            is_text = not is_of_file and _TEXTS.fullmatch(media) is not None
            if is_of_file or (is_text and media not in _ALWAYS_TEXT):
                leaves_file = True
                schemas.append(FILE_ANSWER)
            if is_text:
                schemas.append({"type": "string"})
            elif is_of_file:
                schemas += [{}] if is_json(media) else []  # as much is meant as a text in JSON
            elif said.schema is not None:
                try:
                    schemas.append(reader.read(said.schema, said.pointer))
                except DocumentUnfit as error:
                    if "leads to another file" in error.message:
                        raise
                    notes.append(DocumentDiagnostic(error.pointer, f"The answer is not described: {error.message}"))
                    schemas.append({})
            else:
                schemas.append({})
    body = _one_schema(reader, schemas, has_nothing=has_nothing, entry=entry, notes=notes)
    kept = list(dict.fromkeys(accept))[:5] or [_JSON]
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["status", "body"],
        "properties": {"status": {"type": "integer"}, "body": body, "links": LINKS},
    }
    return keep_reachable(schema, reader.definitions), kept, leaves_file


def _one_schema(
    reader: SchemaReader,
    schemas: list[Any],
    *,
    has_nothing: bool,
    entry: OperationEntry,
    notes: list[DocumentDiagnostic],
) -> Any:
    different: list[Any] = list({json.dumps(each, sort_keys=True): each for each in schemas}.values())
    reader.nodes, reader.bytes = measure_schema(different)
    if reader.nodes > MAX_OUTPUT_NODES or reader.bytes > MAX_OUTPUT_BYTES:
        different = [_outline(each) for each in different]
        notes.append(
            DocumentDiagnostic(f"{entry.pointer}/responses", "The answer is described in outline only: it is large.")
        )
        reader.nodes, reader.bytes = measure_schema(different)
        if reader.nodes > MAX_OUTPUT_NODES or reader.bytes > MAX_OUTPUT_BYTES:
            different = [{}]
            reader.nodes, reader.bytes = 0, 0
    try:
        reader.finish()
    except DocumentUnfit as error:
        if "leads to another file" in error.message:
            raise
        notes.append(DocumentDiagnostic(error.pointer, f"The answer is not described: {error.message}"))
        return {}
    notes += reader.diagnostics.values()
    if has_nothing and different and {} not in different:
        different.append({"type": "null"})
    if not different:
        return {"type": "null"} if has_nothing else {}
    return different[0] if len(different) == 1 else {} if {} in different else {"anyOf": different}


def _outline(schema: Any) -> Any:
    """The type of each property, and no further."""
    if not isinstance(schema, dict):
        return schema
    found = {name: schema[name] for name in ("type", "$ref") if name in schema}
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {
            name: {word: each[word] for word in ("type", "$ref") if word in each} if isinstance(each, dict) else {}
            for name, each in schema["properties"].items()
        }
    if "items" in schema:
        found["items"] = _outline(schema["items"])
    return found


def _choose_forms(content: dict[str, MediaSchema]) -> dict[str, MediaSchema]:
    """Without those that say in other bytes what JSON says too: they have its schema."""
    as_json = [said.schema for media, said in content.items() if is_json(media) or media in ANY]
    return {
        media: said
        for media, said in content.items()
        if is_json(media)
        or media in ANY
        or media.startswith("text/")
        or said.schema in (None, {})
        or said.schema not in as_json
    }


def _is_file_answer(document: OpenApiDocument, media: str, said: MediaSchema) -> bool:
    is_read = is_json(media) or media in ANY or _TEXTS.fullmatch(media) is not None
    return not is_read or (not media.startswith("text/") and is_file(document, said.schema, said.pointer))


def _accepted(media: str) -> str:
    return media if media not in ANY and _MEDIA_RANGE.fullmatch(media) else _JSON
