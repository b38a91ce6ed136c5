"""OpenAPI operations: one operation of a document as what a manifest says of it, or why it cannot be brought.

Arguments are one flat, closed object, since models take no other; where each goes is data beside it. What the document says and the
manifest does not is a diagnostic. Only the operation that was chosen is looked at, with what it refers to.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.mcp_listings import compute_json_digest
from unitools.openapi_documents import DocumentDiagnostic, DocumentUnfit, escape_token, find_references
from unitools.openapi_parts import is_json, plain_media_type, read_parts
from unitools.openapi_requests import FORM, PLACEHOLDER, is_reserved_header, is_token
from unitools.openapi_schemas import MAX_INNER_TEXT, SchemaReader, keep_reachable, measure_schema
from unitools.openapi_security import find_key_names, property_proves_identity, proves_identity, read_security
from unitools.openapi_servers import choose_server
from unitools.openapi_texts import clean_text, find_name_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.openapi_documents import OpenApiDocument, OperationEntry
    from unitools.openapi_parts import MediaSchema, OperationParameter, OperationParts
    from unitools.openapi_security import CredentialChoice, Security

MAX_ARGUMENTS = 300
MAX_MERGED = 50  # objects that all hold, in one body
MAX_TEXT_BYTES = 4 * 1024  # of all arguments with all texts; with more, what is nested has none
MAX_INPUT_BYTES = 7 * 1024  # with more than that, what is nested deepest is not described
MAX_INPUT_NODES = 1800
MAX_TAKEN_BYTES = 256 * 1024
MAX_OUTPUT_BYTES = 2 * 1024
MAX_OUTPUT_NODES = 200
MAX_WHOLE_BYTES = 100 * 1024
_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")
_PATH = re.compile(r'/[!"$&-;=@-\[\]-~]*')
_PLAIN_OBJECT = frozenset({
    "type", "properties", "required", "title", "description", "example", "examples", "externalDocs", "xml", "additionalProperties",
    "nullable", "deprecated", "readOnly", "writeOnly", "default", "$schema", "discriminator", "minProperties", "$comment",
})  # fmt: skip
LINKS = {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class OperationReading:
    """``operation``: as under ``implementation`` of a manifest. ``digest``: of all that the document says of it."""

    entry: OperationEntry
    operation: dict[str, Any]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    secrets: list[dict[str, Any]]
    description: str
    title: str
    is_deprecated: bool
    digest: str
    diagnostics: list[DocumentDiagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person says beside the document. ``prefix``: of the names of secrets."""

    servers: tuple[str, ...] = ()
    secrets: tuple[CredentialChoice, ...] = ()
    idempotency_header: str = ""
    prefix: str = "SERVICE"


@dataclass(slots=True)
class _Argument:
    """One argument before it has a name of its own."""

    place: str
    name: str
    schema: Any
    is_required: bool
    said: dict[str, Any] = field(default_factory=dict)  # style, explode, as_json


def read_operation(document: OpenApiDocument, entry: OperationEntry, choices: Choices) -> OperationReading:
    """Raises :class:`DocumentUnfit` with pointer and remedy."""
    path = entry.path.partition("#")[
        0
    ]  # some documents tell operations of one path apart by a fragment, which nobody sends
    if not _PATH.fullmatch(path) or len(path) > 1000 or "//" in path or {".", ".."} & set(path.split("/")):
        raise DocumentUnfit(
            entry.pointer,
            "The path holds a query, a fragment, an escape or a way out.",
            "Correct the path in the document, or leave the operation out.",
        )
    server = choose_server(document, entry, choices.servers)
    parts = read_parts(document, entry)
    notes: list[DocumentDiagnostic] = list(parts.diagnostics)
    if path != entry.path:
        notes.append(DocumentDiagnostic(entry.pointer, "The fragment of the path is not sent."))
    security = read_security(
        document, parts.security, _host(server), choices.prefix, choices.secrets, f"{entry.pointer}/security"
    )
    parameters = list(_keep_arguments(document, parts, security, choices, notes, _host(server)))
    media, body = _choose_body(entry, parts, notes)
    reader, arguments, whole = _read_input(document, entry, parts, parameters, media, body, security, notes)
    operation: dict[str, Any] = {"server": server, "method": entry.method, "path": path}
    input_schema = _name_arguments(operation, arguments, whole, media, entry)
    input_schema = keep_reachable(input_schema, reader.definitions)
    if measure_schema(input_schema)[1] > MAX_WHOLE_BYTES:
        raise DocumentUnfit(
            entry.pointer, "What the operation takes is too much for one manifest.", "Leave the operation out."
        )
    if security.credentials:
        operation["credentials"] = security.credentials
    output_schema, accept = _read_output(document, entry, parts, notes)
    if accept != ["application/json"]:
        operation["accept"] = accept
    if choices.idempotency_header and entry.method not in ("GET", "HEAD"):
        operation["idempotency_header"] = choices.idempotency_header
    notes += [*security.diagnostics, *reader.diagnostics.values()]
    return OperationReading(
        entry,
        operation,
        input_schema,
        output_schema,
        security.secrets,
        _describe(document, entry, notes),
        clean_text(entry.said.get("summary"), 80)[0] or entry.id[:80],
        entry.said.get("deprecated") is True,
        compute_operation_digest(document, entry, server, parts.security),
        notes,
    )


def _host(server: str) -> str:
    return server.removeprefix("https://").partition("/")[0].partition(":")[0]


def _describe(document: OpenApiDocument, entry: OperationEntry, notes: list[DocumentDiagnostic]) -> str:
    texts = []
    for name in ("summary", "description"):
        text, why = clean_text(entry.said.get(name))
        if why:
            notes.append(DocumentDiagnostic(f"{entry.pointer}/{name}", why))
        if text and text not in texts:
            texts.append(text)
    joined = "\n\n".join(texts)
    if len(joined) > 4000:
        notes.append(
            DocumentDiagnostic(f"{entry.pointer}/description", "A text has more than 4,000 characters; it is cut.")
        )
        joined = joined[:3999].rstrip() + "…"
    return (
        joined
        or f"{entry.place[:300]} of {clean_text(document.title)[0] or 'a service'}. Its document says nothing about it."
    )


# What it takes.


def _keep_arguments(
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


def _choose_body(
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


def _read_input(
    document: OpenApiDocument,
    entry: OperationEntry,
    parts: OperationParts,
    parameters: Sequence[OperationParameter],
    media: str,
    body: MediaSchema | None,
    security: Security,
    notes: list[DocumentDiagnostic],
) -> tuple[SchemaReader, list[_Argument], _Argument | None]:
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


def _read_parameters(reader: SchemaReader, parameters: Sequence[OperationParameter]) -> Iterator[_Argument]:
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
        yield _Argument(each.place, each.name, schema, each.is_required, said)


def _read_body(
    reader: SchemaReader,
    parts: OperationParts,
    media: str,
    body: MediaSchema,
    security: Security,
    notes: list[DocumentDiagnostic],
) -> tuple[list[_Argument], _Argument | None]:
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
        return [], _Argument("body", "body", read, parts.body_is_required)
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
        if property_proves_identity(name, said, security, is_required=is_required):
            notes.append(
                DocumentDiagnostic(
                    at, f"{name[:60]!a} says who is asking, and is no argument; the gate adds the credential."
                )
            )
            continue
        read = reader.read(said, at)
        read = {} if read is True else {"not": {}} if read is False else read
        found.append(_Argument("body", name, read, is_required, _form_style(reader, media, body, name, said, at)))
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
    said, at = document.resolve(schema, pointer)
    left[0] -= 1
    if not isinstance(said, dict) or left[0] < 0:
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


def _name_arguments(
    operation: dict[str, Any], arguments: list[_Argument], whole: _Argument | None, media: str, entry: OperationEntry
) -> dict[str, Any]:
    """One name for each. One that stands in two places gets its place in all of them."""
    everything = [*arguments, *([whole] if whole else [])]
    plain = [_plain_name(each.name) for each in everything]
    names: dict[str, _Argument] = {}
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


# What it answers.


def _read_output(
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


# Its digest.


def compute_operation_digest(document: OpenApiDocument, entry: OperationEntry, server: str, security: Any) -> str:
    """Of what the document says of the operation, its path's shared parts, its security and every definition that it leads to."""
    said = {
        "method": entry.method,
        "path": entry.path,
        "server": server,
        "shared": entry.shared,
        "operation": entry.said,
        "security": security,
    }
    schemes = document.root.get("securityDefinitions") or (document.root.get("components") or {}).get("securitySchemes")
    definitions: dict[str, str] = {}
    waiting = list(find_references(said))
    while waiting:
        reference = waiting.pop()
        if reference not in definitions:
            definitions[reference], inner = document.measure(reference)
            waiting += inner
    return compute_json_digest({"said": said, "schemes": schemes, "definitions": definitions})
