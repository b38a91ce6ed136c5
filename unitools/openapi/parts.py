"""OpenAPI parts: what an operation takes and answers, in one form for all revisions of the document.

Swagger 2.0 says of parameters what 3.0 says of schemas, media types and servers; here it becomes the same. Each part keeps the pointer
to where it stands, for whoever has to correct it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit, escape_token
from unitools.openapi.multipart import MULTIPART, UNKNOWN
from unitools.openapi.request_bodies import FORM, JSON
from unitools.openapi.request_bodies import is_json as is_plain_json
from unitools.openapi.requests import STYLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.openapi.documents import OpenApiDocument, OperationEntry

PLACES = ("path", "query", "header", "cookie")
# How 2.0 writes lists: style in a query, and whether each entry is written by itself.
_COLLECTIONS = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_OF_VALUES = (
    "type", "format", "items", "enum", "default", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "x-nullable", "properties", "required",
    "additionalProperties",
)  # fmt: skip
_HEADERS_READ = frozenset({"link", "retry-after", "content-type", "content-length", "content-encoding"})
_SUCCESS = re.compile(r"2(?:[0-9][0-9]|[Xx][Xx])")
_SHOWN = 5
MAX_FORMS = 100  # media types of one body or answer
MAX_ARGUMENTS = 300


class TooManyArguments(DocumentUnfit):
    """An operation takes more than a model can say."""

    def __init__(self, pointer: str, number: int) -> None:
        what = f"The operation has {number:,} arguments; most are {MAX_ARGUMENTS}."
        super().__init__(pointer, what, "Leave the operation out.")


@dataclass(frozen=True, slots=True)
class OperationParameter:
    """``style`` and ``explode``: empty and None where they are the usual ones of the place."""

    name: str
    place: str
    schema: Any
    pointer: str  # of the schema
    is_required: bool = False
    style: str = ""
    explode: bool | None = None
    as_json: bool = False
    description: Any = None
    is_deprecated: bool = False


@dataclass(frozen=True, slots=True)
class MediaSchema:
    """What stands under one media type. ``encoding``: how single properties of a form are written."""

    schema: Any
    pointer: str
    encoding: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperationParts:
    """``body``: by media type, None: there is none. ``answers``: by status, by media type; without any: no body."""

    parameters: list[OperationParameter]
    body: dict[str, MediaSchema] | None
    body_is_required: bool
    body_is_optional: bool  # the document says so, and does not only leave it out
    body_pointer: str
    answers: dict[str, dict[str, MediaSchema]]
    security: Any
    diagnostics: list[DocumentDiagnostic] = field(default_factory=list)


@dataclass(slots=True)
class OperationArgument:
    """One argument before it has a name of its own."""

    place: str
    name: str
    schema: Any
    is_required: bool
    said: dict[str, Any] = field(default_factory=dict)  # style, explode, as_json, file, media_types; name, header

    @property
    def is_always_a_part(self) -> bool:
        """Of a form. Of a list there may be none, unless it is one text of JSON, and of null there is none."""
        kinds = ("string", "integer", "number", "boolean", "object", *(("array",) if self.said.get("as_json") else ()))
        return (
            self.place == "body" and self.is_required and "header" not in self.said and self.schema.get("type") in kinds
        )


def read_parts(document: OpenApiDocument, entry: OperationEntry) -> OperationParts:
    """Raises :class:`DocumentUnfit`."""
    given = list(_iter_parameters(document, entry))
    security = entry.said.get("security", document.root.get("security"))
    if document.revision == "2.0":
        return _read_swagger(document, entry, given, security)
    notes: list[DocumentDiagnostic] = []
    parameters = [_read_parameter(document, said, at, notes) for said, at in given]
    body, body_at = document.resolve(entry.said.get("requestBody"), f"{entry.pointer}/requestBody")
    content = None
    if isinstance(body, dict):
        content = dict(_read_content(body.get("content"), f"{body_at}/content"))
    return OperationParts(
        parameters,
        content,
        isinstance(body, dict) and body.get("required") is True,
        isinstance(body, dict) and body.get("required") is False,
        body_at,
        _read_answers(
            document, entry, lambda said, at: dict(_read_content(said.get("content"), f"{at}/content")), notes
        ),
        security,
        notes,
    )


def _iter_parameters(document: OpenApiDocument, entry: OperationEntry) -> Iterator[tuple[dict[str, Any], str]]:
    """Those of the path and of the operation, which wins."""
    found: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
    above = entry.pointer.rpartition("/")[0]
    for owner, at in ((entry.shared, above), (entry.said, entry.pointer)):
        said = owner.get("parameters", [])
        for index, each in enumerate(said if isinstance(said, list) else []):
            parameter, place = document.resolve(each, f"{at}/parameters/{index}")
            if not (isinstance(parameter, dict) and isinstance(parameter.get("name"), str)):
                raise DocumentUnfit(place, "What stands there is no parameter.", "Correct the document.")
            found[str(parameter.get("in")), parameter["name"]] = (parameter, place)
    yield from found.values()


def _read_parameter(
    document: OpenApiDocument, said: dict[str, Any], at: str, notes: list[DocumentDiagnostic]
) -> OperationParameter:
    place = said.get("in")
    if place not in PLACES:
        raise DocumentUnfit(
            f"{at}/in", f"A parameter is in {str(place)[:40]!a}, which is no place.", "Correct the document."
        )
    schema, pointer, as_json = said.get("schema", {}), f"{at}/schema", False
    content = said.get("content")
    if isinstance(content, dict) and content:
        media = next((each for each in content if is_json(each)), None)
        if media is None:
            raise DocumentUnfit(
                f"{at}/content",
                f"The parameter {said['name'][:60]!a} is written as {next(iter(content))[:60]!a}.",
                "Leave the operation out.",
            )
        inner = content[media] if isinstance(content[media], dict) else {}
        schema, pointer, as_json = inner.get("schema", {}), f"{at}/content/{escape_token(media)}/schema", True
    if said.get("allowReserved") is True:
        notes.append(
            DocumentDiagnostic(f"{at}/allowReserved", "Signs such as / and ? are sent escaped, as in every value.")
        )
    style, explode = said.get("style"), said.get("explode")
    if style is not None and style not in STYLES[place]:
        notes.append(
            DocumentDiagnostic(
                f"{at}/style", f"{str(style)[:40]!a} is no style of {place}; {STYLES[place][0]} is written."
            )
        )
        style = None
    usual = STYLES[place][0]
    style = "" if style in (None, usual) else str(style)
    usually = (style or usual) in ("form", "deepObject")
    del document
    return OperationParameter(
        said["name"],
        place,
        schema,
        pointer,
        said.get("required") is True or place == "path",
        style,
        explode if isinstance(explode, bool) and explode is not usually else None,
        as_json,
        said.get("description"),
        said.get("deprecated") is True,
    )


def _read_content(content: Any, at: str) -> Iterator[tuple[str, MediaSchema]]:
    content = content if isinstance(content, dict) else {}
    _check_number_of_forms(len(content), at)
    for media, each in content.items():
        said = each if isinstance(each, dict) else {}
        encoding = said.get("encoding")
        pointer = f"{at}/{escape_token(media)}/schema"
        yield (
            plain_media_type(media),
            MediaSchema(said.get("schema"), pointer, encoding if isinstance(encoding, dict) else {}),
        )


def _check_number_of_forms(number: int, at: str) -> None:
    if number > MAX_FORMS:
        raise DocumentUnfit(
            at, f"There are {number:,} media types; most are {MAX_FORMS}.", "Take out those that nobody needs."
        )


def plain_media_type(said: str) -> str:
    return said.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    return is_plain_json(plain_media_type(media))


def _read_answers(
    document: OpenApiDocument, entry: OperationEntry, read: Any, notes: list[DocumentDiagnostic]
) -> dict[str, dict[str, MediaSchema]]:
    """Those of success; where the document names none, ``default``."""
    said = entry.said.get("responses", {})
    said = said if isinstance(said, dict) else {}
    named = [status for status in said if _SUCCESS.fullmatch(status)]
    found = {}
    for status in named or [each for each in said if each == "default"]:
        answer, at = document.resolve(said[status], f"{entry.pointer}/responses/{status}")
        found[status] = read(answer, at) if isinstance(answer, dict) else {}
        headers = answer.get("headers") if isinstance(answer, dict) else None
        if lost := [name for name in headers if name.lower() not in _HEADERS_READ] if isinstance(headers, dict) else []:
            listed = ", ".join(each[:40] for each in lost[:_SHOWN]) + (" …" if len(lost) > _SHOWN else "")
            notes.append(DocumentDiagnostic(f"{at}/headers", f"Headers of the answer are not returned: {listed}."))
    return found


# Swagger 2.0.


def _read_swagger(
    document: OpenApiDocument, entry: OperationEntry, given: list[tuple[dict[str, Any], str]], security: Any
) -> OperationParts:
    notes: list[DocumentDiagnostic] = []
    parameters = [
        _read_swagger_parameter(said, at, notes) for said, at in given if said.get("in") not in ("body", "formData")
    ]
    body, required, body_at = None, False, entry.pointer
    whole = [(said, at) for said, at in given if said.get("in") == "body"]
    fields = [(said, at) for said, at in given if said.get("in") == "formData"]
    consumes = _media_types(document, entry, "consumes")
    if whole:
        said, body_at = whole[0]
        required = said.get("required") is True
        body = {media: MediaSchema(said.get("schema", {}), f"{body_at}/schema") for media in consumes or [JSON]}
    elif fields:
        body_at = fields[0][1]
        required = any(said.get("required") is True for said, _ in fields)
        media = [FORM] if FORM in consumes or not consumes else consumes
        if any(said.get("type") == "file" for said, _ in fields):
            media = [MULTIPART]
        body = dict.fromkeys(media, _read_form(fields, notes))
    return OperationParts(
        parameters,
        body,
        required,
        bool(whole) and whole[0][0].get("required") is False,
        body_at,
        _read_answers(document, entry, lambda said, at: _read_swagger_answer(document, entry, said, at), notes),
        security,
        notes,
    )


def _read_swagger_answer(
    document: OpenApiDocument, entry: OperationEntry, said: dict[str, Any], at: str
) -> dict[str, MediaSchema]:
    if "schema" not in said:
        return {}
    schema = MediaSchema(said["schema"], f"{at}/schema")
    if isinstance(said["schema"], dict) and said["schema"].get("type") == "file":
        return {media: schema for media in _media_types(document, entry, "produces") if not is_json(media)} or {
            UNKNOWN: schema
        }
    return dict.fromkeys(_media_types(document, entry, "produces") or [JSON], schema)


def _media_types(document: OpenApiDocument, entry: OperationEntry, name: str) -> list[str]:
    said = entry.said.get(name, document.root.get(name, []))
    _check_number_of_forms(len(said) if isinstance(said, list) else 0, f"{entry.pointer}/{name}")
    return [plain_media_type(each) for each in said if isinstance(each, str)] if isinstance(said, list) else []


def _value_schema(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: said[name]
        for name in _OF_VALUES
        if name in said and not (name == "required" and isinstance(said[name], bool))
    }


def _collection(said: dict[str, Any], at: str, notes: list[DocumentDiagnostic]) -> tuple[str, bool]:
    name = str(said.get("collectionFormat", "csv"))
    if name not in _COLLECTIONS:
        notes.append(DocumentDiagnostic(f"{at}/collectionFormat", f"Lists of {name[:20]!a} are written with commas."))
    return _COLLECTIONS.get(name, ("form", False))


def _read_swagger_parameter(said: dict[str, Any], at: str, notes: list[DocumentDiagnostic]) -> OperationParameter:
    place = said.get("in")
    if place not in PLACES:
        raise DocumentUnfit(
            f"{at}/in", f"A parameter is in {str(place)[:40]!a}, which is no place.", "Correct the document."
        )
    style, explode = "", None
    if said.get("type") == "array" and place == "query":
        style, explodes = _collection(said, at, notes)
        explode = None if explodes else False
        style = "" if style == "form" else style
        explode = None if style else explode
    schema = said["schema"] if isinstance(said.get("schema"), dict) else _value_schema(said)
    is_required = said.get("required") is True or place == "path"
    return OperationParameter(
        said["name"], place, schema, at, is_required, style, explode, description=said.get("description")
    )


def _read_form(fields: list[tuple[dict[str, Any], str]], notes: list[DocumentDiagnostic]) -> MediaSchema:
    encoding = {}
    properties: dict[str, Any] = {}
    for said, at in fields:
        properties[said["name"]] = _value_schema(said) | (
            {"description": said["description"]} if "description" in said else {}
        )
        if said.get("type") == "array":
            style, explode = _collection(said, at, notes)
            encoding[said["name"]] = {"style": style, "explode": explode}
    required = [said["name"] for said, _ in fields if said.get("required") is True]
    schema = {"type": "object", "properties": properties, "required": required}
    return MediaSchema(schema, f"{fields[0][1]}#form", encoding)
