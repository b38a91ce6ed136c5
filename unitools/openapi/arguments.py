"""OpenAPI arguments: what an agent says of an operation, as one flat, closed object, and where each of it goes.

Not an agent's are what frames the request and what says who is asking. A body that is a plain object is taken apart; any other is one
argument.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from unitools.openapi.argument_values import is_token
from unitools.openapi.bodies import read_body
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.parts import MAX_ARGUMENTS, OperationArgument, TooManyArguments
from unitools.openapi.requests import PLACEHOLDER, is_reserved_header
from unitools.openapi.schemas import MAX_INNER_TEXT, SchemaReader, measure_schema
from unitools.openapi.security import find_key_names, proves_identity
from unitools.openapi.texts import clean_text, find_name_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.openapi.bodies import OperationBody
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.operations import Choices
    from unitools.openapi.parts import OperationParameter, OperationParts
    from unitools.openapi.security import Security

MAX_TEXT_BYTES = 4 * 1024  # of all arguments with all texts; with more, what is nested has none
MAX_INPUT_BYTES = 7 * 1024  # with more than that, what is nested deepest is not described
MAX_INPUT_NODES = 1800
MAX_TAKEN_BYTES = 256 * 1024
MAX_WHOLE_BYTES = 100 * 1024
_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")


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


def read_input(
    document: OpenApiDocument,
    entry: OperationEntry,
    parts: OperationParts,
    parameters: Sequence[OperationParameter],
    body: OperationBody | None,
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
            properties, whole = read_body(reader, parts, body, security, notes)
            arguments += properties
        if len(arguments) > MAX_ARGUMENTS and (lost := [each for each in arguments if _is_optional_header(each)]):
            arguments = [each for each in arguments if not _is_optional_header(each)]
            notes.append(
                DocumentDiagnostic(
                    parts.body_pointer,
                    f"With them there are too many arguments: {len(lost)} headers of parts that may be left out are.",
                )
            )
        if len(arguments) > MAX_ARGUMENTS:
            raise TooManyArguments(entry.pointer, len(arguments))
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


def _is_optional_header(argument: OperationArgument) -> bool:
    return "header" in argument.said and not argument.is_required


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


def name_arguments(
    operation: dict[str, Any],
    arguments: list[OperationArgument],
    whole: OperationArgument | None,
    body: OperationBody | None,
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
    if body is not None:
        of_whole = next((name for name, each in names.items() if each is whole), "")
        operation["body"] = body.to_operation(of_whole, arguments)
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
