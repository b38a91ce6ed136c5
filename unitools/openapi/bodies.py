"""OpenAPI bodies: which of the forms of an operation's body is sent, and what of it is an argument.

A body that is a plain object is taken apart; any other is one argument. What is a file in it is named by an id that the hub knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.files import describe_file, is_file, is_file_type, is_list_of_files
from unitools.openapi.multipart import MULTIPART
from unitools.openapi.part_headers import PartHeaders
from unitools.openapi.parts import OperationArgument, TooManyArguments, is_json
from unitools.openapi.plain_objects import flatten_object
from unitools.openapi.request_bodies import FORM, JSON
from unitools.openapi.security import property_proves_identity
from unitools.openapi.texts import find_name_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.parts import MediaSchema, OperationParts
    from unitools.openapi.plain_objects import PlainObject
    from unitools.openapi.schemas import SchemaReader
    from unitools.openapi.security import Security

MAX_MEDIA_TYPES = 10
MAX_PROPERTIES = 1_000  # that are looked at, whatever becomes of them
ANY = ("*/*", "application/*")
_MEDIA_RANGE = re.compile(r"(\*|[a-z0-9.+-]{1,40})/(\*|[a-z0-9.+-]{1,59})")
_OF_TEXT = re.compile(r"text/[a-z0-9.+-]+|application/(?:[a-z0-9.-]+\+)?(?:xml|yaml)|application/x-yaml")


class BodyKind(Enum):
    """How a body is written; of several the first is sent."""

    JSON, FORM, PARTS, FILE, TEXT = range(5)


@dataclass(frozen=True, slots=True)
class OperationBody:
    """The form of it that is sent. ``media_types``: of a file, those that the service takes; ``is_required``: none is sent without;
    ``plain``: as which it is taken apart, None where it is not."""

    kind: BodyKind
    media: str
    said: MediaSchema
    media_types: tuple[str, ...] = ()
    is_required: bool = False
    plain: PlainObject | None = None

    def to_operation(self, argument: str, arguments: Sequence[OperationArgument]) -> dict[str, Any]:
        """As the manifest has it. ``argument``: that is the whole of it; empty: it is taken apart into those of ``arguments``."""
        found: dict[str, Any] = {"media_type": self.media} | ({"argument": argument} if argument else {})
        if self.kind is BodyKind.FILE:
            found["file"] = True
            if len(self.media_types) > 1:
                found["media_types"] = list(self.media_types)
        if self.kind is BodyKind.PARTS and self.is_required and not any(each.is_always_a_part for each in arguments):
            found["required"] = True
        return found


def choose_body(
    document: OpenApiDocument, entry: OperationEntry, parts: OperationParts, notes: list[DocumentDiagnostic]
) -> OperationBody | None:
    forms = parts.body or {}
    if not forms:
        return None
    if entry.method in ("GET", "HEAD"):
        if parts.body_is_required:
            raise DocumentUnfit(
                parts.body_pointer,
                f"{entry.method} has a body, which not every server between reads.",
                "Leave the operation out.",
            )
        notes.append(DocumentDiagnostic(parts.body_pointer, f"The body of {entry.method} is left out."))
        return None
    kinds = {media: _find_kind(document, media, said) for media, said in forms.items()}
    written = {media: kind for media, kind in kinds.items() if kind is not None}
    if not written:
        named = " or ".join(forms)[:120]
        if not parts.body_is_required and parts.body_is_optional:
            notes.append(
                DocumentDiagnostic(parts.body_pointer, f"The body is {named!a}, which is not sent; it may be left out.")
            )
            return None
        raise DocumentUnfit(
            parts.body_pointer,
            f"The body is {named}, which is not written.",
            "Leave the operation out, or write a tool for it.",
        )
    media, plain = _choose_media(document, written, forms)
    kind, said = written[media], forms[media]
    others = [each for each, of in written.items() if of is BodyKind.FILE] if kind is BodyKind.FILE else []
    if len(forms) > max(1, len(others)):
        notes.append(DocumentDiagnostic(parts.body_pointer, f"Of {len(forms)} forms of the body, {media} is sent."))
    if media in ANY and kind is BodyKind.JSON:
        notes.append(DocumentDiagnostic(parts.body_pointer, "The body may be anything; JSON is sent."))
        media = JSON
    return OperationBody(kind, media, said, tuple(others[:MAX_MEDIA_TYPES]), parts.body_is_required, plain)


def _find_kind(document: OpenApiDocument, media: str, said: MediaSchema) -> BodyKind | None:
    """None: nobody writes it."""
    if media in (MULTIPART, FORM):
        return BodyKind.PARTS if media == MULTIPART else BodyKind.FORM
    if is_json(media):
        return BodyKind.JSON
    if not _MEDIA_RANGE.fullmatch(media):
        return None
    schema, _ = document.resolve(said.schema, said.pointer)
    if is_file(document, schema, said.pointer) or is_file_type(media):
        return BodyKind.FILE
    if media in ANY:
        return BodyKind.JSON
    is_text = not isinstance(schema, dict) or schema.get("type", "string") == "string"
    return BodyKind.TEXT if is_text and _OF_TEXT.fullmatch(media) else None


def _choose_media(
    document: OpenApiDocument, written: dict[str, BodyKind], forms: dict[str, MediaSchema]
) -> tuple[str, PlainObject | None]:
    """The form that is sent, taken apart where it can be: what could not have its files where another form could comes last. Of forms
    that differ the first ten are looked into."""
    seen: dict[int, PlainObject | None] = {}

    def flatten(said: MediaSchema) -> PlainObject | None:
        if id(said.schema) not in seen:
            seen[id(said.schema)] = flatten_object(document, said.schema, said.pointer)
        return seen[id(said.schema)]

    def rank(media: str) -> tuple[int, int]:
        return written[media].value, 0 if media == JSON else 1 if "merge-patch" in media else 2

    def would_lose_files(media: str) -> bool:
        if written[media] not in (BodyKind.JSON, BodyKind.FORM) or BodyKind.PARTS not in written.values():
            return False
        is_one_too_many = id(forms[media].schema) not in seen and len(seen) >= MAX_MEDIA_TYPES
        return is_one_too_many or _has_files(document, flatten(forms[media]))

    media = next(each for each in sorted(written, key=rank) if not would_lose_files(each))
    is_whole = written[media] in (BodyKind.FILE, BodyKind.TEXT)
    return media, None if is_whole else flatten(forms[media])


def _has_files(document: OpenApiDocument, plain: PlainObject | None) -> bool:
    """Whether a property of it is a file: then the form that is made for files is sent."""
    return plain is not None and any(
        is_file(document, said, at) or is_list_of_files(document, said, at) for said, at in plain.properties.values()
    )


def read_body(
    reader: SchemaReader,
    parts: OperationParts,
    body: OperationBody,
    security: Security,
    notes: list[DocumentDiagnostic],
) -> tuple[list[OperationArgument], OperationArgument | None]:
    """Its properties as arguments where it is a plain object, else one argument that is the whole of it."""
    document, media = reader.document, body.said
    schema = {} if media.schema is None else media.schema
    if body.kind is BodyKind.FILE:
        return [], OperationArgument("body", "body", describe_file(document, schema), parts.body_is_required)
    plain = body.plain
    if plain is None or not plain.properties:
        if body.kind is BodyKind.PARTS or (
            body.kind is BodyKind.FORM and plain is None and not _is_object(document, schema, media.pointer)
        ):
            raise DocumentUnfit(media.pointer, "The form is no plain object.", "Leave the operation out.")
        text = {"description": "The whole body."} if not isinstance(schema, dict) or "description" not in schema else {}
        read = reader.read(schema, media.pointer)
        read = text | read if isinstance(read, dict) else text
        read = {"type": "string"} | read if body.kind is BodyKind.TEXT else read
        return [], OperationArgument("body", "body", read, parts.body_is_required)
    if plain.is_open:
        notes.append(
            DocumentDiagnostic(media.pointer, "The body may have properties that are not named; they cannot be sent.")
        )
    if parts.body_is_optional and plain.required:
        notes.append(
            DocumentDiagnostic(media.pointer, "The body may be left out, so none of its properties has to be said.")
        )
    sent = {name: each for name, each in plain.properties.items() if not _is_read_only(each[0])}
    if len(sent) > MAX_PROPERTIES:
        raise TooManyArguments(media.pointer, len(sent))
    headers = PartHeaders(reader, media, security, notes) if body.kind is BodyKind.PARTS else None
    found = []
    for name, (said, at) in sent.items():
        is_required = name in plain.required and not parts.body_is_optional
        if problem := find_name_problem(name) or ("Its name is too long." if len(name) > 200 or not name else ""):
            raise DocumentUnfit(at, problem, "Correct the name in the document, or leave the operation out.")
        if property_proves_identity(document, name, said, at, security, is_required=is_required):
            _take_credential(body, name, at, security, notes, is_required=is_required)
        elif (argument := _read_property(reader, body, name, said, at, notes, is_required=is_required)) is not None:
            found.append(argument)
            if headers is not None:
                found += headers.list_arguments(argument)
    return found, None


def _is_read_only(said: Any) -> bool:
    return isinstance(said, dict) and said.get("readOnly") is True


def _take_credential(
    body: OperationBody,
    name: str,
    pointer: str,
    security: Security,
    notes: list[DocumentDiagnostic],
    *,
    is_required: bool,
) -> None:
    """What says who is asking in the body: where another credential says it already nothing is needed, else it is one of its own."""
    if not is_required or security.has_token:
        said = "says who is asking, and is no argument; the gate adds the credential."
    elif body.kind in (BodyKind.JSON, BodyKind.FORM):
        security.take_property(name)
        said = "says who is asking: it is a secret, which the gate adds to the body, and no argument."
    else:
        raise DocumentUnfit(
            pointer,
            f"{name[:60]!a} says who is asking, within a form with files, where the gate adds nothing.",
            "Leave the operation out, or write a tool for it.",
        )
    notes.append(DocumentDiagnostic(pointer, f"{name[:60]!a} {said}"))


def _read_property(
    reader: SchemaReader,
    body: OperationBody,
    name: str,
    said: Any,
    at: str,
    notes: list[DocumentDiagnostic],
    *,
    is_required: bool,
) -> OperationArgument | None:
    """None: it is left out, and a note says so."""
    document = reader.document
    encoding = body.said.encoding.get(name)
    encoding = encoding if isinstance(encoding, dict) else {}
    written: dict[str, Any] = {}
    if body.kind is BodyKind.PARTS:
        types = _list_media_types(encoding)
        is_many = is_list_of_files(document, said, at)
        if is_many or is_file(document, said, at) or (said == {} and any(map(is_file_type, types))):
            written = {"file": True} | ({"media_types": types} if types else {})
            schema = describe_file(document, said, is_many=is_many)
            return OperationArgument("body", name, schema, is_required, written)
        if types and is_json(types[0]):
            written = {"as_json": True} | ({"media_types": types[:1]} if types[0] != JSON else {})
        elif types and _is_nested(document, said, at):
            if is_required:
                raise DocumentUnfit(
                    at, f"The part {name[:60]!a} is {types[0][:60]}, which is not written.", "Leave the operation out."
                )
            notes.append(DocumentDiagnostic(at, f"The part {name[:60]!a} is {types[0][:60]}, and is not sent."))
            return None
        elif types and "*" not in types[0]:
            written = {"media_types": types[:1]}
    elif body.kind is BodyKind.FORM:
        written = _form_style(document, encoding, said, at)
    read = reader.read(said, at)
    read = {} if read is True else {"not": {}} if read is False else read
    return OperationArgument("body", name, read, is_required, written)


def _list_media_types(encoding: dict[str, Any]) -> list[str]:
    said = encoding.get("contentType")
    types = [each.partition(";")[0].strip().lower() for each in said.split(",")] if isinstance(said, str) else []
    return [each for each in dict.fromkeys(types) if _MEDIA_RANGE.fullmatch(each)][:MAX_MEDIA_TYPES]


def _is_nested(document: OpenApiDocument, said: Any, at: str) -> bool:
    schema, _ = document.resolve(said, at)
    kind = schema.get("type") if isinstance(schema, dict) else None
    items = schema.get("items") if kind == "array" else None
    inner, _ = document.resolve(items, at) if items is not None else (None, "")
    return kind == "object" or (isinstance(inner, dict) and inner.get("type") in ("object", "array"))


def _form_style(document: OpenApiDocument, encoding: dict[str, Any], said: Any, at: str) -> dict[str, Any]:
    if encoding:
        style = encoding.get("style")
        explode = encoding.get("explode")
        found: dict[str, Any] = {"style": style} if style in ("spaceDelimited", "pipeDelimited", "deepObject") else {}
        if isinstance(explode, bool) and explode is not (style in (None, "form", "deepObject")):
            found["explode"] = explode
        if found or style == "form":
            return found
    return {"as_json": True} if _is_nested(document, said, at) else {}  # as 3.0 has it where nothing is said


def _is_object(document: OpenApiDocument, schema: Any, pointer: str) -> bool:
    said, _ = document.resolve(schema, pointer)
    return isinstance(said, dict) and (said.get("type") in ("object", None))
