"""How does a tool version get into the catalogue, and how does its tool change state?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from registry.checks import Finding, findings_of
from registry.models import TRANSITIONS, Decision, Review, Tool, ToolState, ToolVersion, VersionState
from registry.problems import ManifestInvalid, NotReviewed, OwnSubmission, VersionExists
from toolhub.kernel.canonical import digest
from toolhub.kernel.problems import Conflict, SchemaInvalid
from unitools.manifest import Manifest
from unitools.packages import PackageError, build_digest, find_package

if TYPE_CHECKING:
    from datetime import date
    from uuid import UUID

    from toolhub.kernel.principal import Principal

APPROVALS_NEEDED = {"Low": 1, "Medium": 1, "High": 2}


def examine(document: Any) -> tuple[list[Finding], str]:
    """All findings about a manifest, and the digest of the code that it names (empty when there is an error)."""
    findings = findings_of(document)
    if any(finding.severity == "error" for finding in findings):
        return findings, ""
    try:
        package = find_package(Manifest(document).module, settings.TOOLHUB_TOOLS_PATH)
        return findings, build_digest(package)
    except PackageError as error:
        fix = "Put the package under one of the tools roots (TOOLHUB_TOOLS_PATH), or correct the name."
        return [Finding("/implementation/module", "implementation.unusable", str(error), fix), *findings], ""


def submit_version(*, document: Any, by: Principal) -> ToolVersion:
    """Register a manifest as a version that waits for its review.

    Submitting the same content again gives the same version back; the same version number with other content is refused.
    The manifest and the package are examined before the transaction begins: that takes as long as they are large.
    """
    findings, build = examine(document)
    errors = [finding for finding in findings if finding.severity == "error"]
    if errors:
        first = errors[0]
        raise ManifestInvalid(
            f"{first.message} ({first.pointer or '/'})"
            if len(errors) == 1
            else f"The manifest has {len(errors)} errors; the first: {first.message} ({first.pointer or '/'})",
            details={"findings": [finding.to_json() for finding in findings]},
            remedy=first.fix,
        )
    return _register(document, findings, build, by=by)


@transaction.atomic
def _register(document: Any, findings: list[Finding], build: str, *, by: Principal) -> ToolVersion:
    manifest = Manifest(document)
    tool, _ = Tool.objects.get_or_create(tenant_id=by.tenant_id, name=manifest.id, defaults={"state_changed_by": by.id})
    same = {"manifest_digest": digest(document), "build_digest": build}
    try:
        with transaction.atomic():
            version = ToolVersion.objects.create(
                tool=tool,
                version=manifest.version,
                manifest=document,
                warnings=[finding.to_json() for finding in findings],
                submitted_by=by.id,
                side_effect=manifest.side_effect,
                safety_class=manifest.safety_class,
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
    evidence.record(
        kind=Kind.TOOL_REGISTERED,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data={"version": version.version, "id": version.wire_id, **same},
    )
    return version


def check_can_review(version: ToolVersion, *, by: Principal) -> None:
    if version.submitted_by == by.id:
        raise OwnSubmission(
            "You submitted this version, so somebody else must review it.", remedy="Ask another reviewer."
        )
    if version.review_state != VersionState.SUBMITTED:
        raise Conflict(f"This version is {version.review_state} already.")
    if version.reviews.filter(decided_by=by.id).exists():
        raise Conflict(
            "You have reviewed this version already.", remedy="A version of high risk needs a second reviewer."
        )


def approvals_missing(version: ToolVersion) -> int:
    given = version.reviews.filter(decision=Decision.APPROVE).count()
    return max(0, APPROVALS_NEEDED[version.safety_class] - given)


@transaction.atomic
def review_version(*, version_id: UUID, decision: Decision, note: str, by: Principal) -> Review:
    """Approve or refuse a submitted version. High risk takes two people; one refusal is enough."""
    version = (
        ToolVersion.objects.select_for_update(of=("self",))
        .select_related("tool")
        .get(pk=version_id, tool__tenant_id=by.tenant_id)
    )
    check_can_review(version, by=by)
    if decision is Decision.REFUSE and not note.strip():
        message = "Write why you refuse, so that the developer knows what to change."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/note", "message": message}]})
    review = Review.objects.create(version=version, decision=decision, note=note.strip(), decided_by=by.id)
    if decision is Decision.REFUSE or approvals_missing(version) == 0:
        version.review_state = VersionState.REFUSED if decision is Decision.REFUSE else VersionState.APPROVED
        version.save(update_fields=["review_state"])
    evidence.record(
        kind=Kind.TOOL_REVIEWED,
        subject=version.tool.urn,
        actor=by,
        tool=version.tool.name,
        data={
            "version": version.version,
            "id": version.wire_id,
            "decision": str(decision),
            "note": review.note,
            "state": version.review_state,
        },
    )
    return review


def check_can_move(tool: Tool, to: ToolState) -> None:
    if to not in TRANSITIONS[tool.state]:
        allowed = sorted(TRANSITIONS[tool.state])
        raise Conflict(
            f"{tool.name} is {tool.state}; it cannot become {to}.",
            details={"state": tool.state, "allowed": allowed},
            remedy=f"From {tool.state} a tool can become: {', '.join(allowed) or 'nothing else'}.",
        )


def check_is_approved(version: ToolVersion) -> None:
    if version.review_state != VersionState.APPROVED:
        raise NotReviewed(
            f"{version.tool.name} {version.version} is {version.review_state}; only an approved version can be enabled.",
            remedy="Have the version reviewed by somebody who did not submit it.",
        )


def _locked(name: str, by: Principal) -> Tool:
    return Tool.objects.select_for_update(of=("self",)).get(tenant_id=by.tenant_id, name=name)


def _move(tool: Tool, to: ToolState, kind: Kind, *, reason: str, by: Principal, data: dict[str, Any]) -> Tool:
    if not reason.strip():
        message = "Write why; the reason is kept as evidence."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/reason", "message": message}]})
    before = tool.state
    tool.state, tool.state_reason = to, reason.strip()
    tool.state_changed_at, tool.state_changed_by = timezone.now(), by.id
    tool.save(update_fields=["state", "state_reason", "state_changed_at", "state_changed_by", "current", "sunset_on"])
    evidence.record(
        kind=kind,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data={"from": before, "to": str(to), "reason": tool.state_reason, **data},
    )
    return tool


@transaction.atomic
def enable_tool(*, name: str, reason: str, by: Principal, version_id: UUID | None = None) -> Tool:
    """Make a tool callable with an approved version: the given one, or the one it had before it was paused."""
    tool = _locked(name, by)
    version = tool.versions.select_related("tool").get(pk=version_id) if version_id else tool.current
    if version is None:
        raise NotReviewed(f"{tool.name} has never been enabled; say which version to enable.")
    check_is_approved(version)
    promotes = tool.state == ToolState.ENABLED and tool.current_id != version.pk
    if not promotes:
        check_can_move(tool, ToolState.ENABLED)
    tool.current = version
    return _move(
        tool,
        ToolState.ENABLED,
        Kind.TOOL_ENABLED,
        reason=reason,
        by=by,
        data={"version": version.version, "id": version.wire_id},
    )


@transaction.atomic
def pause_tool(*, name: str, reason: str, by: Principal) -> Tool:
    """Stop a tool at once: the next call is refused."""
    tool = _locked(name, by)
    check_can_move(tool, ToolState.PAUSED)
    return _move(tool, ToolState.PAUSED, Kind.TOOL_PAUSED, reason=reason, by=by, data={})


@transaction.atomic
def deprecate_tool(*, name: str, reason: str, sunset_on: date, by: Principal) -> Tool:
    """Hide a tool from discovery; it answers with a warning until ``sunset_on``, then not at all."""
    tool = _locked(name, by)
    check_can_move(tool, ToolState.DEPRECATED)
    if sunset_on < timezone.now().date():
        message = "The sunset date is in the past."
        raise SchemaInvalid(message, details={"findings": [{"pointer": "/sunset_on", "message": message}]})
    tool.sunset_on = sunset_on
    return _move(
        tool,
        ToolState.DEPRECATED,
        Kind.TOOL_DEPRECATED,
        reason=reason,
        by=by,
        data={"sunset_on": sunset_on.isoformat()},
    )
