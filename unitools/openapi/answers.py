"""OpenAPI answers: what an operation gives back, described loosely, and the media types that it is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.parts import is_json, plain_media_type
from unitools.openapi.schemas import SchemaReader, keep_reachable, measure_schema

if TYPE_CHECKING:
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.parts import OperationParts

MAX_OUTPUT_BYTES = 2 * 1024
MAX_OUTPUT_NODES = 200
LINKS = {"type": "object", "additionalProperties": {"type": "string"}}


def read_output(
    document: OpenApiDocument, entry: OperationEntry, parts: OperationParts, notes: list[DocumentDiagnostic]
) -> tuple[dict[str, Any], list[str]]:
    """Loosely: of what is nested deep, and of what cannot be read, any value will do. Texts are left out."""
    reader = SchemaReader(document, False, MAX_OUTPUT_NODES, MAX_OUTPUT_BYTES, with_texts=False)
    schemas: list[Any] = []
    accept: list[str] = []
    has_nothing = entry.method == "HEAD" or not parts.answers
    refused: list[str] = []
    for status, content in parts.answers.items():
        if not content or status in ("204", "205"):
            has_nothing = True
            continue
        readable = {media: said for media, said in content.items() if _is_readable(media)}
        if not readable:
            refused += content
            continue
        accept += [_accepted(media) for media in readable]
        for media, said in readable.items():
            if media.startswith("text/"):
                schemas.append({"type": "string"})
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
    if refused and not accept:
        at = f"{entry.pointer}/responses"
        raise DocumentUnfit(
            at,
            f"It answers {' or '.join(dict.fromkeys(refused))[:120]}, which is not read yet.",
            "Leave the operation out, or write a tool for it.",
        )
    body = _one_schema(reader, schemas, has_nothing=has_nothing, entry=entry, notes=notes)
    kept = list(dict.fromkeys(accept))[:5] or ["application/json"]
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["status", "body"],
        "properties": {"status": {"type": "integer"}, "body": body, "links": LINKS},
    }
    return keep_reachable(schema, reader.definitions), kept


def _one_schema(
    reader: SchemaReader,
    schemas: list[Any],
    *,
    has_nothing: bool,
    entry: OperationEntry,
    notes: list[DocumentDiagnostic],
) -> Any:
    different: list[Any] = []
    for each in schemas:
        if each not in different:
            different.append(each)
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


def _is_readable(media: str) -> bool:
    return is_json(media) or media in ("*/*", "application/*") or media.startswith("text/")


def _accepted(media: str) -> str:
    plain = plain_media_type(media)
    return (
        plain if re.fullmatch(r"(text/[a-z0-9.+-]+|application/([a-z0-9.+-]+\+)?json)", plain) else "application/json"
    )
