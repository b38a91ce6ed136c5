"""Presentation: how the changes and the dependencies of a version are shown to people and programs.

Long values from shortly before the first difference on, so that what changed is never cut away.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from access.policies.impact.previews import layers_in_force
from access.policies.verdict import evaluate_policies
from registry.dependencies.states import IN_WORK, RETRIED
from registry.models import Dependencies, DependencyState, InstallationState, ToolVersion
from registry.versions.compiler import compiled_version
from unitools.changes import find_acknowledgement_reason
from unitools.dependency_locks import read_dependency_name, read_lock_entry
from unitools.npm_locks import NpmPackage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from unitools.manifest import Manifest

MAX_SHOWN = 300
LEAD_IN = 40


def shown_changes(changes: Iterable[dict[str, Any]], *, acknowledged: Collection[str] = ()) -> list[dict[str, Any]]:
    """The changes with ``before`` and ``after`` as texts (None: there was nothing), and whether each box is ticked.

    ``asks``: why a change must be acknowledged; nothing where it need not be.
    """
    found = []
    for change in changes:
        before, after = _around_the_change(_text(change["before"]), _text(change["after"]))
        ticked = change["id"] in acknowledged
        asks = find_acknowledgement_reason(change)
        found.append({**change, "before": before, "after": after, "asks": asks, "acknowledged": ticked})
    return found


def shown_time_limit(version: ToolVersion | None, *, tenant_id: UUID) -> dict[str, Any] | None:
    """How long a call may run in this tenant, and who says so: ``rule`` of a policy in force, else the ``manifest``, else the hub.

    A rule that asks for what only a call knows limits ``some`` calls. Grants may set less, each for itself.
    """
    if version is None:
        return None
    asked = version.view.timeout_ms
    told = {"ms": asked, "asked": asked, "manifest": "timeout_ms" in version.view.document, "rule": "", "some": False}
    verdict = evaluate_policies(layers_in_force(tenant_id), compiled_version(version.pk).attributes)
    least, rule = verdict.limits.get("timeout_ms", asked), verdict.restrictions.limiters.get("timeout_ms", "")
    if least >= asked:
        return told
    return told | {"ms": least, "rule": rule, "some": any(each == rule for each, _ in verdict.unknown)}


def shown_file_sharers(version: ToolVersion) -> list[str]:
    """The other tools of its tenant that would find what this version keeps, and it what they do; by any version of theirs."""
    mine = version.view
    if mine.state is None:
        return []
    others = ToolVersion.objects.filter(
        tool__tenant_id=version.tool.tenant_id, tool__name__startswith=f"{mine.group}."
    ).exclude(tool_id=version.tool_id)
    return sorted({each.tool.name for each in others.select_related("tool") if _shares_files(each.view, mine)})


def _shares_files(one: Manifest, other: Manifest) -> bool:
    return (
        one.state is not None
        and other.state is not None
        and (one.group, one.files_package, one.state["scope"])
        == (other.group, other.files_package, other.state["scope"])
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _around_the_change(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    start = 0
    if before is not None and after is not None and max(len(before), len(after)) > MAX_SHOWN // 2:
        start = max(0, _shared(before, after) - LEAD_IN)
    return _cut(before, start), _cut(after, start)


def _shared(before: str, after: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(before), len(after)))


def _cut(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    shown = text[start : start + MAX_SHOWN]
    return ("…" if start else "") + shown + ("…" if start + MAX_SHOWN < len(text) else "")


def dependencies_json(version: ToolVersion) -> dict[str, Any] | None:
    """What it needs of others and how far that is; None when it needs nothing."""
    named = version.view.dependencies
    row = Dependencies.objects.filter(version=version).first() if named else None
    if row is None:
        return None
    direct = {read_dependency_name(each) for each in named}
    packages = [
        {
            "name": each.name,
            "version": each.version,
            "alias": each.alias if isinstance(each, NpmPackage) else "",
            "named": each.name in direct and not (isinstance(each, NpmPackage) and each.marker),
            "sha256": [] if isinstance(each, NpmPackage) else list(each.hashes),
            "sha512": list(each.hashes) if isinstance(each, NpmPackage) else [],
        }
        for each in map(read_lock_entry, row.lock)
    ]
    return {
        "state": row.state,
        "changed_at": row.changed_at.isoformat(),
        "lock": row.lock_digest or None,
        "packages": packages,
        "progress": row.progress,
        "failure": row.failure or None,
        "size_bytes": row.size_bytes,
    }


def shown_dependencies(version: ToolVersion) -> dict[str, Any] | None:
    """The same for the console: ``is_waiting`` while the page should look again, ``may_retry`` when that would help."""
    found = dependencies_json(version)
    if found is None:
        return None
    state = DependencyState(found["state"])
    about_to = (
        state == DependencyState.LOCKED and version.installations.exclude(state=InstallationState.REMOVED).exists()
    )
    changed_at = datetime.fromisoformat(found["changed_at"])
    return {
        **found,
        "changed_at": changed_at,
        "is_waiting": state in IN_WORK or about_to,
        "may_retry": state in RETRIED,
    }
