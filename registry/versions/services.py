"""Versions: how a tool version gets into the catalogue.

What becomes of it there is decided in :mod:`registry.reviews.services` and :mod:`registry.tools.lifecycle`, whose services
are here as well:
callers need one name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction

from access.notifications.services import notify_channels
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import RegisteredVersion
from kernel.canonical import compute_digest
from registry.dependencies.states import note_dependencies, retry_dependencies
from registry.discovery.search import searched_fields
from registry.models import Tool, ToolVersion
from registry.problems import VersionExists
from registry.reviews.services import approvals_missing, check_can_review, review_version
from registry.tools.lifecycle import (
    deprecate_tool,
    distrust_version,
    enable_tool,
    pause_tool,
    share_tool,
    stage_version,
    trust_version,
    unshare_tool,
    yank_version,
)
from registry.versions.bump import check_bump, check_is_another_version, find_base
from registry.versions.manifest_checks import ManifestFinding, refuse_errors, validate_document
from unitools.checks import find_entry_differences
from unitools.manifest import Manifest
from unitools.packages import (
    EntryUnfit,
    PackageError,
    check_entry,
    compute_zip_digest,
    find_shipped,
    read_package_files,
    zip_files,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.principal import Principal
    from registry.models import Capsule
    from unitools.capsules import Capsule as Archive

__all__ = [
    "approvals_missing",
    "check_can_review",
    "deprecate_tool",
    "distrust_version",
    "enable_tool",
    "examine_manifest",
    "pause_tool",
    "prepare_version",
    "register_version",
    "retry_dependencies",
    "review_version",
    "share_tool",
    "stage_version",
    "submit_version",
    "trust_version",
    "unshare_tool",
    "yank_version",
]


def examine_manifest(document: Any, *, capsule: Archive | None = None) -> tuple[list[ManifestFinding], str]:
    """All findings about a manifest, and the digest of the code that it names (empty when there is an error).

    ``capsule``: the archive that brings the code; without it, the code lies under a tools root.
    """
    findings = validate_document(document)
    if any(finding.severity == "error" for finding in findings):
        return findings, ""
    manifest = Manifest(document)
    place = f"/implementation/{'program' if manifest.program else 'module' if manifest.module else 'server/listing'}"
    fix = "Put the package under one of the tools roots (TOOLHUB_TOOLS_PATH), upload it as a capsule, or correct the name."
    try:
        build, more = _digest_of_code(manifest, capsule)
        findings, why = [*findings, *more], ""
    except PackageError as error:
        build, why = "", str(error)
        if isinstance(error, EntryUnfit):
            place, fix = (
                "/implementation/entry",
                "Correct the name, the module, the function or the input schema, so that they fit each other.",
            )
    if manifest.image not in settings.TOOLHUB_SANDBOX_IMAGES:
        known = ", ".join(sorted(settings.TOOLHUB_SANDBOX_IMAGES))
        place, why = "/implementation/image", f"This hub has no image {manifest.image!r}; it has: {known}."
        fix = "Correct the name, or have an operator add it to TOOLHUB_SANDBOX_IMAGES."
    if why:
        return [ManifestFinding(place, "implementation.unusable", why, fix), *findings], ""
    return findings, build


def _digest_of_code(manifest: Manifest, capsule: Archive | None) -> tuple[str, list[ManifestFinding]]:
    """Once it is seen that what answers the calls is in it; and where the manifest says otherwise than that does."""
    files = capsule.files if capsule else _read_files(manifest)
    check_entry(manifest, files)
    digest = capsule.digest if capsule else compute_zip_digest(zip_files(files.items()))
    return digest, list(find_entry_differences(manifest, files))


def _read_files(manifest: Manifest) -> dict[str, bytes]:
    """Under a tools root; none for an operation of a service, whose manifest is all there is."""
    if not manifest.has_package:
        return {}
    return dict(read_package_files(find_shipped(manifest, settings.TOOLHUB_TOOLS_PATH)))


@dataclass(frozen=True, slots=True)
class PreparedVersion:
    """A manifest that may become a version: what was found about it, and what it changes since ``base``."""

    document: dict[str, Any]
    findings: list[ManifestFinding]
    build: str
    base: ToolVersion | None
    changes: list[dict[str, Any]]


def prepare_version(*, document: Any, by: Principal, capsule: Archive | None = None) -> PreparedVersion:
    """Everything that is asked of a manifest before it is registered; nothing is written."""
    findings, build = examine_manifest(document, capsule=capsule)
    refuse_errors(document, findings)
    manifest = Manifest(document)
    tool = Tool.objects.filter(tenant_id=by.tenant_id, name=manifest.id).first()
    base, changes = None, list[dict[str, Any]]()
    if tool is not None and not tool.versions.filter(version=manifest.version).exists():
        check_is_another_version(tool, manifest.version)
        base = find_base(tool, manifest.version)
        changes = [change.to_json() for change in check_bump(base, document)]
    return PreparedVersion(document, findings, build, base, changes)


def submit_version(*, document: Any, by: Principal) -> ToolVersion:
    """Register a manifest as a version that waits for its review.

    Submitting the same content again gives the same version back; the same version number with other content is refused.
    The manifest and the package are examined, and compared with the version before, ahead of the transaction: that takes as
    long as they are large. What is approved meanwhile is seen at the review.
    """
    return register_version(prepare_version(document=document, by=by), by=by)


def _words(words: list[str]) -> str:
    """A space around each, so that one word can be looked for."""
    return f" {' '.join(words)} " if words else ""


def _searched_texts(manifest: Manifest) -> list[str]:
    """Of every language: whoever looks for a part of a text looks in their own."""
    texts = [manifest.id, manifest.display_name, manifest.description, *manifest.tags, *manifest.examples]
    for said in manifest.localizations.values():
        texts += [said.get("display_name", ""), said.get("description", ""), *said.get("examples", ())]
    return [text for text in texts if text]


def listed_fields(manifest: Manifest) -> dict[str, str]:
    """The copies of manifest fields that lists filter by."""
    return {
        "side_effect": manifest.side_effect,
        "safety_class": manifest.safety_class,
        "display_name": manifest.display_name,
        "tags": _words(manifest.tags),
        "domains": _words(sorted(manifest.domains)),
        "search": " ".join(_searched_texts(manifest)).lower(),
        **searched_fields(manifest),
    }


@transaction.atomic
def register_version(
    prepared: PreparedVersion, *, by: Principal, capsule: Capsule | None = None, drafted_by: Sequence[str] = ()
) -> ToolVersion:
    """``capsule``: what brought the code, where it did not lie under a tools root; ``drafted_by``: who wrote in it before it is
    submitted.
    """
    document, base, build = prepared.document, prepared.base, prepared.build
    manifest = Manifest(document)
    tool, _ = Tool.objects.get_or_create(tenant_id=by.tenant_id, name=manifest.id, defaults={"state_changed_by": by.id})
    same = {"manifest_digest": compute_digest(document), "build_digest": build}
    try:
        with transaction.atomic():
            version = ToolVersion.objects.create(
                tool=tool,
                version=manifest.version,
                manifest=document,
                warnings=[finding.to_json() for finding in prepared.findings],
                base=base,
                changes=prepared.changes,
                capsule=capsule,
                submitted_by=by.id,
                drafted_by=list(drafted_by),
                **listed_fields(manifest),
                **same,
            )
    except IntegrityError as error:
        existing = ToolVersion.objects.get(tool=tool, version=manifest.version)
        if {name: getattr(existing, name) for name in same} == same:
            return existing
        raise VersionExists(
            f"{manifest.id} {manifest.version} exists with other content.",
            remedy="Raise the version number and submit again.",
            details={
                "existing": existing.manifest_digest,
                "submitted": same["manifest_digest"],
                "existing_build": existing.build_digest,
                "submitted_build": build,
            },
        ) from error
    note_dependencies(version, by=by)
    evidence.record(
        kind=Kind.TOOL_REGISTERED,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data=RegisteredVersion(
            version=version.version,
            id=version.wire_id,
            base=base.version if base else "",
            changes=len(prepared.changes),
            signed_by=capsule.signed_by.key_id if capsule and capsule.signed_by else "",
            manifest_digest=same["manifest_digest"],
            build_digest=build,
        ),
    )
    said = {"tool": tool.name, "version": version.version, "url": f"/reviews/{version.wire_id}"}
    notify_channels("review.waiting", subject=version.wire_id, body=said, tenant_id=tool.tenant_id)
    return version
