"""Version bump: whether a version's number says what changed since the version before it.

A version is compared with the newest approved one below it, yanked ones left out: 1.2.4 that is made after 2.0.0 with 1.2.3. What
was approved in between is seen at the review, so that two versions that were submitted side by side cannot pass each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.models import Dependencies, VersionState
from registry.problems import VersionExists, WrongBump
from unitools import semver
from unitools.changes import ManifestChange, compare_manifests, find_offending_changes
from unitools.changes.dependency_changes import compare_dependency_lock

if TYPE_CHECKING:
    from registry.models import Tool, ToolVersion

MAX_NAMED = 50


def find_base(tool: Tool, number: str) -> ToolVersion | None:
    """What a version with this number is compared with; None when there is nothing below it."""
    usable = tool.versions.filter(review_state=VersionState.APPROVED, yanked_at=None)
    chosen = semver.find_predecessor(usable.values_list("version", flat=True), number)
    return None if chosen is None else usable.get(version=chosen)


def check_is_another_version(tool: Tool, number: str) -> None:
    """Build metadata tells no versions apart: 1.0.0+a and 1.0.0+b would be chosen by chance."""
    wanted = semver.Version.parse(number)
    same = next(
        (each for each in tool.versions.values_list("version", flat=True) if semver.Version.parse(each) == wanted), ""
    )
    if same and same != number:
        raise VersionExists(
            f"{tool.name} {same} exists, and build metadata does not make {number} another version.",
            remedy="Raise the version number and submit again.",
            details={"existing": same, "submitted": number},
        )


def _sentence(change: ManifestChange) -> str:
    return f"{change.message} ({change.pointer or '/'}: {change.bump.upper()})"


def load_lock(version: ToolVersion) -> list[str]:
    """The lines of its lock, whoever made it; empty until there is one."""
    if version.view.dependency_lock or not version.view.dependencies:
        return version.view.dependency_lock
    found = Dependencies.objects.filter(version=version).values_list("lock", flat=True).first()
    return found or []


def _side(version: ToolVersion, *, of: dict[str, Any]) -> dict[str, Any]:
    """The manifest as it is compared with another one: with its lock where the other has one, and only there."""
    manifest = {name: value for name, value in version.manifest.items() if name != "dependency_lock"}
    return manifest | ({"dependency_lock": load_lock(version)} if of.get("dependency_lock") else {})


def lock_changes(base: ToolVersion | None, version: ToolVersion) -> list[dict[str, Any]]:
    """What the lock that the hub has found changes; one that stands in the manifest is compared with it."""
    if base is None or version.view.dependency_lock:
        return []
    before, after = load_lock(base), load_lock(version)
    if version.view.dependencies and not after:
        return []  # not there yet
    return [change.to_json() for change in compare_dependency_lock(before, after)]


def check_bump(base: ToolVersion | None, document: dict[str, Any]) -> list[ManifestChange]:
    """The changes from the base; refuses a number that promises less than they need, and names each that is too much for it."""
    if base is None:
        return []
    changes = compare_manifests(_side(base, of=document), document)
    wrong = find_offending_changes(base.version, document["version"], changes)
    if wrong:
        tool, number = document["id"], document["version"]
        raise WrongBump(
            f"{number} does not say what changed since {base.version}: {_sentence(wrong[0])}"
            + (f" and {len(wrong) - 1} more." if len(wrong) > 1 else ""),
            details={
                "tool": tool,
                "base": base.version,
                "version": number,
                "changes": [change.to_json() for change in wrong[:MAX_NAMED]],
                "findings": [
                    {
                        "pointer": change.pointer,
                        "rule": f"version.{change.bump}",
                        "message": change.message,
                        "fix": f"It needs a new {change.bump.upper()} version; or take the change back.",
                        "severity": "error",
                    }
                    for change in wrong[:MAX_NAMED]
                ],
            },
            remedy=f"Raise the version to one that allows these changes since {base.version}, or take them back.",
        )
    return changes


def changes_now(version: ToolVersion) -> tuple[ToolVersion | None, list[dict[str, Any]]]:
    """What a version changes as of now, and compared with what: of a submitted one another may have been approved meanwhile, or
    the lock of its dependencies found.
    """
    submitted = version.review_state == VersionState.SUBMITTED
    base = find_base(version.tool, version.version) if submitted else version.base
    if (base.pk if base else None) == version.base_id:
        return base, [*version.changes, *lock_changes(base, version)]
    changes = compare_manifests(_side(base, of=version.manifest), version.manifest) if base else []
    return base, [*(change.to_json() for change in changes), *lock_changes(base, version)]
