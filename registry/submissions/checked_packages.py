"""Checked packages: what a developer brings, examined as a hub examines it, with nothing kept.

What is found stands at its line: of the source where it is a Python file, of the manifest where it is a capsule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel.canonical import compute_digest
from kernel.components.sentences import translate_sentence
from kernel.problems import Malformed, Problem, SchemaInvalid
from registry.capsules.services import check_manifest_text, read_archive
from registry.models import ToolVersion
from registry.submissions.placed_findings import MarkedSource, PlacedFinding, find_line, mark_source, write_document
from registry.submissions.python_files import MAX_SOURCE_BYTES, PythonFile, read_python_file
from registry.versions.services import PreparedVersion, prepare_version
from unitools.capsules import CapsuleError, pack_capsule
from unitools.publications import check_group

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.principal import Principal
    from unitools.capsules import Capsule


@dataclass(slots=True)
class CheckedPackage:
    """``archive``: None where it is none. ``documents``: its manifests, as they were read or drafted."""

    archive: Capsule | None = None
    documents: list[dict[str, Any]] = field(default_factory=list)
    prepared: list[PreparedVersion] = field(default_factory=list)
    findings: list[PlacedFinding] = field(default_factory=list)
    sources: list[MarkedSource] = field(default_factory=list)

    @property
    def errors(self) -> list[PlacedFinding]:
        return [each for each in self.findings if each.is_error]

    @property
    def may_be_submitted(self) -> bool:
        return self.archive is not None and bool(self.prepared) and not self.errors


def check_capsule(content: bytes, *, by: Principal) -> CheckedPackage:
    """Raises the problem of what is no capsule at all."""
    archive = read_archive(content)
    made = CheckedPackage(archive, [check_manifest_text(each) for each in archive.manifests])
    for document in made.documents:
        text, places = write_document(document)
        name = f"{document.get('id', '')}.json"
        found = _prepare(made, document, name, lambda pointer, places=places: find_line(pointer, places), by=by)  # type: ignore[misc]
        if found:
            made.sources.append(mark_source(f"source-{len(made.sources) + 1}", name, text, found))
    return made


def check_python_file(
    *, name: str, source: str, group: str, version: str, documents: list[dict[str, Any]] | None, by: Principal
) -> CheckedPackage:
    """``documents``: the manifests as their author has corrected them; None: they are drafted."""
    if len(source.encode()) > MAX_SOURCE_BYTES:
        raise SchemaInvalid.at("/file", "A Python file has at most 256 KiB here.")
    try:
        check_group(group)
    except ValueError as error:
        raise SchemaInvalid.at("/group", str(error)) from error
    read = read_python_file(name, source, group=group, version=version)
    made = CheckedPackage(documents=[each.document for each in read.functions] if documents is None else documents)
    made.findings += read.findings
    if not made.errors:
        _pack(made, read, by=by)
    made.sources.append(mark_source("source-1", name, source, made.findings))
    return made


def _pack(made: CheckedPackage, read: PythonFile, *, by: Principal) -> None:
    try:
        made.archive = pack_capsule(made.documents, read.files)
    except (CapsuleError, ValueError, TypeError) as error:
        made.findings.append(PlacedFinding(read.name, 0, translate_sentence(str(error)), "Correct the manifests."))
        return
    for document in made.documents:
        function = read.find_function(document)
        _prepare(made, document, read.name, function.find_line if function is not None else lambda _: 0, by=by)


def _prepare(
    made: CheckedPackage, document: dict[str, Any], name: str, locate: Callable[[str], int], *, by: Principal
) -> list[PlacedFinding]:
    """What is found about one manifest, which goes to the findings of all."""
    try:
        prepared = prepare_version(document=document, by=by, capsule=made.archive)
    except Problem as problem:
        if problem.status >= 500:
            raise
        said = problem.details.get("findings") or [{"pointer": "", "message": problem.detail, "fix": problem.remedy}]
    else:
        made.prepared.append(prepared)
        said = [each.to_json() for each in prepared.findings] + _find_taken(prepared, by=by)
    found = [
        PlacedFinding(
            file=name,
            line=locate(each["pointer"]),
            message=each["message"],
            fix=each.get("fix", ""),
            severity=each.get("severity", "error"),
            pointer=each["pointer"],
            rule=each.get("rule", ""),
        )
        for each in said
    ]
    made.findings += found
    return found


def _find_taken(prepared: PreparedVersion, *, by: Principal) -> list[dict[str, str]]:
    """Whether the number is that of a version which is there already."""
    name, version = prepared.document["id"], prepared.document["version"]
    rows = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id, tool__name=name, version=version)
    there = rows.only("manifest_digest", "build_digest").first()
    if there is None:
        return []
    if (there.manifest_digest, there.build_digest) == (compute_digest(prepared.document), prepared.build):
        message, fix, severity = (
            f"Version {version} is here already, just as it is.",
            "Nothing is to be done.",
            "warning",
        )
    else:
        message, fix, severity = f"Version {version} is here already, with other content.", "Raise the number.", "error"
    return [{"pointer": "/version", "rule": "version.taken", "message": message, "fix": fix, "severity": severity}]


def read_documents(value: Any) -> list[dict[str, Any]]:
    """The manifests that somebody has written as a list, or one of them."""
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(each, dict) for each in found):
        raise Malformed("The manifests are a list of objects, one for each tool.")
    return found
