"""Readiness: whether a version's dependencies let its calls run, and the folder in which they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.dependencies import store
from registry.dependencies.target import folder_name
from registry.models import Dependencies, DependencyState
from registry.problems import DependenciesNotReady

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from registry.models import ToolVersion
    from unitools.manifest import Manifest

SOON_S, LATER_S = 5, 60
WAITING = {
    DependencyState.RESOLVING: "are being resolved",
    DependencyState.UNRESOLVED: "could not be resolved",
    DependencyState.LOCKED: "are about to be built",
    DependencyState.QUEUED: "wait to be built",
    DependencyState.BUILDING: "are being built",
    DependencyState.FAILED: "could not be built",
}
DependencyFigures = dict[str, Any]


def check_ready(version_id: UUID, manifest: Manifest) -> None:
    """Costs nothing without dependencies; with some, one look at the database."""
    if not manifest.dependencies:
        return
    said = _read_state(version_id)
    if said["state"] != DependencyState.READY:
        raise _not_ready(said, tool=manifest.id, version=manifest.version)


def find_dependency_folder(version: ToolVersion) -> tuple[str, Path] | None:
    """Digest and folder of what a call of this version finds installed; None when it has no dependencies.

    Raises :class:`DependenciesNotReady`, also when this host does not have the folder yet: the builder beside the worker makes
    it as soon as it sees that it is missing, and the call may be made again.
    """
    if not version.view.dependencies:
        return None
    said = _read_state(version.pk)
    if said["state"] != DependencyState.READY:
        raise _not_ready(said, tool=version.tool.name, version=version.version)
    folder = store.folder_of_lock(said["lock_digest"])
    if not folder.is_dir():
        raise DependenciesNotReady(
            f"The host that took the call does not have the dependencies of {version.tool.name} {version.version} yet.",
            details={"state": "missing_here", "version": version.version},
            remedy="Call again: this host builds them now. Its log says when that fails.",
        )
    return f"sha256:{folder_name(said['lock_digest'])}", folder


def _read_state(version_id: UUID) -> DependencyFigures:
    found = Dependencies.objects.filter(version_id=version_id).values("state", "progress", "failure", "lock_digest")
    return dict(found.first() or {"state": DependencyState.RESOLVING, "progress": [], "failure": {}, "lock_digest": ""})


def _not_ready(said: DependencyFigures, *, tool: str, version: str) -> DependenciesNotReady:
    failure, progress = said["failure"], said["progress"]
    why = failure.get("message") or (f"{progress[-1]}." if progress else "")
    return DependenciesNotReady(
        f"The dependencies of {tool} {version} {WAITING[said['state']]}. {why}".strip(),
        details={"state": said["state"], "version": version, "failure": failure.get("code") or None},
        remedy="Ask an operator of who publishes the tool to look at the version's page and to retry."
        if failure
        else "Call again when they are ready.",
        retry_after_s=LATER_S if failure else SOON_S,
    )
