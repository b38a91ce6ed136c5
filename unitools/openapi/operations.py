"""OpenAPI operations: one operation of a document as what a manifest says of it, or why it cannot be brought.

Arguments are one flat, closed object, since models take no other; where each goes is data beside it. What the document says and the
manifest does not is a diagnostic. Only the operation that was chosen is looked at, with what it refers to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.mcp_listings import compute_json_digest
from unitools.openapi.account_security import CREDENTIAL, read_account
from unitools.openapi.answers import read_output
from unitools.openapi.arguments import MAX_WHOLE_BYTES, keep_arguments, name_arguments, read_input
from unitools.openapi.bodies import choose_body
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit, find_references
from unitools.openapi.parts import read_parts
from unitools.openapi.requests import leaves_path
from unitools.openapi.schemas import keep_reachable, measure_schema
from unitools.openapi.security import Security, find_schemes, read_security
from unitools.openapi.servers import choose_server
from unitools.openapi.texts import clean_text

if TYPE_CHECKING:
    from unitools.openapi.account_security import AccountChoice
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.security import CredentialChoice

MAX_NOTES = 200
_PATH = re.compile(r'/[!"$&-;=@-\[\]-~]*')


@dataclass(frozen=True, slots=True)
class OperationReading:
    """``operation``: as under ``implementation`` of a manifest. ``digest``: of all that the document says of it. ``leaves_file``:
    whether an answer may be a file, which a call leaves beside its result."""

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
    leaves_file: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person says beside the document. ``prefix``: of the names of secrets. ``account``: the service is asked as the person
    whom a call is for."""

    servers: tuple[str, ...] = ()
    secrets: tuple[CredentialChoice, ...] = ()
    idempotency_header: str = ""
    prefix: str = "SERVICE"
    account: AccountChoice | None = None


def read_operation(document: OpenApiDocument, entry: OperationEntry, choices: Choices) -> OperationReading:
    """Raises :class:`DocumentUnfit` with pointer and remedy."""
    path = entry.path.partition("#")[
        0
    ]  # some documents tell operations of one path apart by a fragment, which nobody sends
    if not _PATH.fullmatch(path) or len(path) > 1000 or "//" in path or any(map(leaves_path, path.split("/"))):
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
    at = f"{entry.pointer}/security"
    account = choices.account and read_account(document, parts.security, choices.account, at)
    if account:
        security = Security([dict(CREDENTIAL)], host=_host(server), prefix=choices.prefix)
    else:
        security = read_security(document, parts.security, _host(server), choices.prefix, choices.secrets, at)
    parameters = list(keep_arguments(document, parts, security, choices, notes, _host(server)))
    body = choose_body(document, entry, parts, notes)
    reader, arguments, whole = read_input(document, entry, parts, parameters, body, security, notes)
    operation: dict[str, Any] = {"server": server, "method": entry.method, "path": path}
    input_schema = name_arguments(operation, arguments, whole, body, entry)
    input_schema = keep_reachable(input_schema, reader.definitions)
    if measure_schema(input_schema)[1] > MAX_WHOLE_BYTES:
        raise DocumentUnfit(
            entry.pointer, "What the operation takes is too much for one manifest.", "Leave the operation out."
        )
    if account:
        operation["account"] = account
    elif security.credentials:
        operation["credentials"] = security.credentials
    output_schema, accept, leaves_file = read_output(document, entry, parts, notes)
    if accept != ["application/json"]:
        operation["accept"] = accept
    if choices.idempotency_header and entry.method not in ("GET", "HEAD"):
        operation["idempotency_header"] = choices.idempotency_header
    notes += [*security.diagnostics, *reader.diagnostics.values()]
    described = _describe(document, entry, notes)
    if len(notes) > MAX_NOTES:
        what = f"{len(notes) - MAX_NOTES:,} more things are otherwise than the document says."
        notes = [*notes[:MAX_NOTES], DocumentDiagnostic(entry.pointer, what)]
    return OperationReading(
        entry,
        operation,
        input_schema,
        output_schema,
        [] if account else security.secrets,
        described,
        clean_text(entry.said.get("summary"), 80)[0] or entry.id[:80],
        entry.said.get("deprecated") is True,
        compute_operation_digest(document, entry, server, parts.security),
        notes,
        leaves_file,
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
    schemes = find_schemes(document)
    definitions: dict[str, str] = {}
    followed: set[int] = set()  # what a place refers to counts once, by however many spellings it is named
    waiting = list(find_references(said))
    while waiting:
        reference = waiting.pop()
        if reference not in definitions:
            definitions[reference], inner = document.measure(reference, entry.pointer)
            if id(inner) not in followed:
                followed.add(id(inner))
                waiting += [each for each in inner if each not in definitions]
    return compute_json_digest({"said": said, "schemes": schemes, "definitions": definitions})
