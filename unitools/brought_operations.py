"""Brought operations: the draft manifests of a service's operations, from the document that describes it.

A draft is for a person to read and to change, and nothing is chosen beforehand. A second run with a newer document takes over what
that says otherwise, and raises only the versions of what changed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.brought_tools import FIRST_VERSION, MAX_CHOSEN, raise_version
from unitools.changes import compare_manifests, compute_needed_bump
from unitools.checks import check_manifest
from unitools.checks.operations import read_server
from unitools.metadata import derive_hub_segment
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.operations import Choices, read_operation
from unitools.openapi.texts import clean_text
from unitools.publications import find_id_collisions

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from unitools.changes import ManifestChange
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.operations import OperationReading

MAX_SEGMENT_CHARS = 64
MAX_FILE_BYTES = 8 * 1024 * 1024  # of an answer that is a file: as much as the gate passes on
# What the draft takes from the document anew where the document has it otherwise; all else of a manifest is its author's.
OF_DOCUMENT = (
    "display_name", "description", "input_schema", "output_schema", "side_effect", "safety_class", "capabilities", "secrets",
    "deprecations",
)  # fmt: skip
# What a person chooses beside the document or writes by hand: taken anew where it is known what was chosen before.
_CHOSEN, _CHOSEN_OF_OPERATION = ("idempotency",), ("idempotency_header", "strict")
_DIGEST_CHARS = 8
_NOT_A_NAME = re.compile(
    r"\b(?:the|api|apis|rest|restful|http|openapi|swagger|public|v?[0-9]+(?:\.[0-9]+)*|reference|documentation|official|spec|specification)\b"
    r"|'s\b"
)


@dataclass(frozen=True, slots=True)
class OperationDraft:
    """``changes``: what is otherwise than in the manifest that was there; None: there was none. ``made``: as the document alone has
    it, which the next run compares by."""

    document: dict[str, Any]
    made: dict[str, Any]
    diagnostics: list[DocumentDiagnostic]
    changes: list[ManifestChange] | None = field(default=None)


@dataclass(frozen=True, slots=True)
class OperationRefusal:
    """An operation that cannot be brought."""

    operation: str
    pointer: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Drafts:
    drafts: list[OperationDraft]
    refusals: list[OperationRefusal]


def derive_service_group(title: str) -> str:
    """``service.github`` for ``GitHub v3 REST API``."""
    words = re.sub(r"[^a-z0-9]+", " ", _NOT_A_NAME.sub(" ", title.lower())).split()[:2]
    word = "_".join(words)[:40].strip("_") or "service"
    return f"service.{word if word[0].isalpha() else f's_{word}'}"


def derive_operation_segment(entry: OperationEntry) -> str:
    """The last part of the id: the operationId by the rule of all names, else method and path."""
    if entry.id != entry.place:
        word = derive_hub_segment(entry.id)
    else:
        word = derive_hub_segment(re.sub(r"[^A-Za-z0-9]+", "_", entry.place).strip("_"))
    word = word if word[0].isalpha() else f"t_{word}"
    if len(word) <= MAX_SEGMENT_CHARS and entry.id.isascii():
        return word
    # Two that differ in what is cut, or in letters that no id has, are two all the same.
    digest = hashlib.sha256(entry.id.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{word[: MAX_SEGMENT_CHARS - 1 - _DIGEST_CHARS].rstrip('_')}_{digest}"


def draft_operations(
    document: OpenApiDocument,
    entries: Sequence[OperationEntry],
    group: str,
    choices: Choices,
    existing: Iterable[dict[str, Any]] = (),
    earlier: Mapping[str, dict[str, Any]] | None = None,
    *,
    rechosen: Container[str] = frozenset(),
) -> Drafts:
    """Drafts of these operations, and of which none can be made. ``existing``: manifests of an earlier run; ``earlier``: what the
    document made then, by the ids of operations; ``rechosen``: those of which other choices were made then.

    Raises:
        DocumentUnfit: too many at once, or two that would be one tool.
    """
    if len(entries) > MAX_CHOSEN:
        raise DocumentUnfit(
            "/paths", f"At most {MAX_CHOSEN} operations are brought at once; these are {len(entries)}.", "Choose fewer."
        )
    ids: dict[str, list[str]] = {}
    for entry in entries:
        ids.setdefault(f"{group}.{derive_operation_segment(entry)}", []).append(entry.id)
    if collisions := find_id_collisions(ids):
        raise DocumentUnfit(
            "/paths", " ".join(each.message for each in collisions), "Bring one of them, or bring them into two groups."
        )
    before = {str(each["id"]): each for each in existing}
    found = Drafts([], [])
    for entry in entries:
        id = f"{group}.{derive_operation_segment(entry)}"
        try:
            made_then = (earlier or {}).get(entry.id)
            found.drafts.append(
                _draft(document, entry, id, choices, before.get(id), made_then, is_rechosen=entry.id in rechosen)
            )
        except DocumentUnfit as error:
            found.refusals.append(OperationRefusal(entry.id, error.pointer, error.message, error.remedy))
    return found


def _draft(
    document: OpenApiDocument,
    entry: OperationEntry,
    id: str,
    choices: Choices,
    before: dict[str, Any] | None,
    earlier: dict[str, Any] | None,
    *,
    is_rechosen: bool,
) -> OperationDraft:
    if before is not None and before.get("origin", {}).get("operation") != entry.id:
        raise DocumentUnfit(
            entry.pointer,
            f"The manifest of {id} was brought from another operation.",
            "Remove it, or choose another --group.",
        )
    made, notes = make_manifest(document, entry, id, choices)
    if before is None:
        return OperationDraft(made, made, notes)
    is_same = before["origin"]["operation_digest"] == made["origin"]["operation_digest"]
    if is_same and (earlier is None or not (is_rechosen or _is_read_otherwise(earlier, made))):
        return OperationDraft(before, made, [], [])  # another file may say the same of it
    merged = before | ({} if is_same else {"origin": made["origin"]})
    for name in (*OF_DOCUMENT, *(_CHOSEN if earlier is not None else ())):
        _take(merged, name, made, earlier)
    operation = dict(before["implementation"]["operation"])
    was = None if earlier is None else earlier["implementation"]["operation"]
    for name in dict.fromkeys((*operation, *made["implementation"]["operation"])):
        if earlier is not None or name not in _CHOSEN_OF_OPERATION:
            _take(operation, name, made["implementation"]["operation"], was)
    merged["implementation"] = before["implementation"] | {"operation": operation}
    if "artifacts" in made["limits"] and "artifacts" not in (earlier or {}).get("limits", {}):
        merged["limits"] = made["limits"] | before.get("limits", {})  # its answers are files by now
    changes = compare_manifests(before, merged)
    if changes:
        merged["version"] = raise_version(str(before["version"]), compute_needed_bump(changes))
        if "deprecations" in merged and "deprecations" not in before:
            merged["deprecations"] = [each | {"since": merged["version"]} for each in merged["deprecations"]]
    return OperationDraft(merged, made, notes, changes)


def _is_read_otherwise(earlier: dict[str, Any], made: dict[str, Any]) -> bool:
    """Whether more is made of the same operation by now, such as of its files."""
    return any(earlier.get(name) != made.get(name) for name in ("input_schema", "output_schema")) or (
        earlier["implementation"]["operation"] != made["implementation"]["operation"]
    )


def _take(into: dict[str, Any], name: str, made: dict[str, Any], earlier: dict[str, Any] | None) -> None:
    """What the document says otherwise than it did; without knowing what it did, whatever it says."""
    if earlier is not None and earlier.get(name) == made.get(name):
        return
    if name in made:
        into[name] = made[name]
    else:
        into.pop(name, None)


def make_manifest(
    document: OpenApiDocument, entry: OperationEntry, id: str, choices: Choices
) -> tuple[dict[str, Any], list[DocumentDiagnostic]]:
    """A manifest that a hub takes, and what of the document it does not have."""
    reading = read_operation(document, entry, choices)
    made = _write_manifest(document, reading, id)
    notes = list(reading.diagnostics)
    errors = [each for each in check_manifest(made) if each.severity == "error"]
    if errors and all(each.pointer.startswith("/output_schema") for each in errors):
        made["output_schema"] = {
            "type": "object",
            "required": ["status", "body"],
            "properties": reading.output_schema["properties"] | {"body": {}},
        }
        notes.append(
            DocumentDiagnostic(f"{entry.pointer}/responses", f"The answer is not described: {errors[0].message}")
        )
        errors = [each for each in check_manifest(made) if each.severity == "error"]
    if errors:
        first = errors[0]
        raise DocumentUnfit(
            entry.pointer, f"No manifest can be made of it: {first.message} ({first.pointer})", first.fix
        )
    return made, notes


def _write_manifest(document: OpenApiDocument, reading: OperationReading, id: str) -> dict[str, Any]:
    method = reading.entry.method
    reads = method in ("GET", "HEAD")
    host, port = read_server(reading.operation["server"])
    net: dict[str, Any] = {"host": host} | ({} if port == 443 else {"port": port}) | {"methods": [method]}
    made: dict[str, Any] = {
        "id": id,
        "version": FIRST_VERSION,
        "display_name": reading.title,
        "description": reading.description,
        "input_schema": reading.input_schema,
        "output_schema": reading.output_schema,
        "capabilities": {"net": [net]},
        "side_effect": "Read" if reads else "Write",
        "safety_class": "Low" if reads else "Medium",
        "timeout_ms": 30_000,
        "limits": {"max_bytes_out": 1024 * 1024},
        "determinism": {"output": "none"},
        "implementation": {"kind": "openapi", "operation": reading.operation},
        "origin": {
            "document": {
                "title": clean_text(document.title, 200)[0],
                "version": clean_text(document.version, 100)[0],
                "openapi": document.said_revision,
                "digest": document.digest,
            },
            "operation": reading.entry.id,
            "operation_digest": reading.digest,
        },
    }
    if reading.leaves_file:
        made["limits"] |= {"artifacts": 1, "artifact_bytes": MAX_FILE_BYTES}
    if reading.secrets:
        made["secrets"] = reading.secrets
    if "idempotency_header" in reading.operation:
        made["idempotency"] = "keyed"
    if reading.is_deprecated:
        made["deprecations"] = [
            {"pointer": "", "since": FIRST_VERSION, "advice": "Its document calls the operation deprecated."}
        ]
    return made
