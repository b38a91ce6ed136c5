"""Version resolution: the version of a tool that an installation gets.

It is chosen when something changes: the publisher enables, stages, approves or yanks a version, or the tenant sets a pin.
Calls read the choice. An installation without a pin follows the tool's current version; one with a pin gets the newest usable
version within it as soon as that is approved. A version that was yanked is never chosen; what cannot be moved to another
version stays on it and is refused with what to do.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import MovedInstallation
from kernel.database.tenancy import hub_wide
from kernel.principal import Principal
from registry.installations.setup import compute_config_digest
from registry.models import LONG_FIELDS, Installation, InstallationState, VersionState
from unitools import semver

if TYPE_CHECKING:
    from registry.models import InstallationQuerySet, Tool, ToolVersion


def is_usable(version: ToolVersion) -> bool:
    """Whether it may be chosen at all."""
    return version.review_state == VersionState.APPROVED and version.yanked_at is None


def usable_versions(tool: Tool) -> list[ToolVersion]:
    """The newest first, as SemVer orders them; what was built alike but for its build metadata, by the time of submission."""
    found = tool.versions.filter(review_state=VersionState.APPROVED, yanked_at=None).defer(*LONG_FIELDS)
    return sorted(found, key=lambda each: (semver.Version.parse(each.version), each.pk), reverse=True)


def resolve_version(tool: Tool, pin: str) -> ToolVersion | None:
    """What an installation with this pin gets now; None when there is nothing that it may get.

    Without a pin that is the tool's current version, or, once that was yanked, the newest usable one below it: what is above
    it nobody has enabled.
    """
    if pin:
        within = semver.Range.parse(pin)
        return next((each for each in usable_versions(tool) if semver.Version.parse(each.version) in within), None)
    if tool.current is None or is_usable(tool.current):
        return tool.current
    below = semver.Version.parse(tool.current.version)
    return next((each for each in usable_versions(tool) if semver.Version.parse(each.version) < below), None)


def evidence_actor(installation: Installation, by: Principal) -> Principal:
    """Who is named in the installing tenant's evidence: the actor, or the publisher as such when they are of another tenant."""
    if installation.tenant_id == by.tenant_id:
        return by
    return Principal.system("publisher", tenant_id=installation.tenant_id)


def move_installation(installation: Installation, version: ToolVersion, *, why: str, by: Principal) -> bool:
    """Let an installation's calls get this version from now on. False when they do already."""
    if installation.version_id == version.pk:
        return False
    before = installation.version
    installation.version, installation.changed_by = version, evidence_actor(installation, by).id
    installation.config_digest = compute_config_digest(installation.config, version.view)
    installation.save(update_fields=["version", "config_digest", "changed_by", "changed_at"])
    evidence.record(
        kind=Kind.INSTALLATION_MOVED,
        subject=installation.wire_id,
        actor=evidence_actor(installation, by),
        tool=installation.name,
        data=MovedInstallation(from_=before.version if before else "", to=version.version, id=version.wire_id, why=why),
    )
    return True


def _installed(tool: Tool) -> InstallationQuerySet:
    """Removed ones are chosen for when they are installed again.

    All are locked, and asked about their pins and versions afterwards: what somebody changes at this moment would not be
    found by what it becomes. Versions are read after the lock for the same reason.
    """
    rows = Installation.objects.select_for_update(of=("self",)).prefetch_related("version").filter(tool=tool)
    return rows.exclude(state=InstallationState.REMOVED).order_by("pk")


@hub_wide()
def follow_current(tool: Tool, *, why: str, by: Principal) -> None:
    """The tool has another current version: whoever has no pin gets it."""
    version = resolve_version(tool, "")
    if version is not None:
        for row in _installed(tool):
            if not row.pin:
                move_installation(row, version, why=why, by=by)


@hub_wide()
def settle_pins(tool: Tool, *, why: str, by: Principal) -> None:
    """Another version has become usable: whoever's pin it is within gets it."""
    chosen = cache(partial(resolve_version, tool))
    for row in _installed(tool):
        version = chosen(row.pin) if row.pin else None
        if version is not None:
            move_installation(row, version, why=why, by=by)


@hub_wide()
def leave_version(version: ToolVersion, *, why: str, by: Principal) -> tuple[list[Installation], list[Installation]]:
    """This version is not usable any more: who moved away from it, and who cannot."""
    chosen = cache(partial(resolve_version, version.tool))
    moved, stuck = [], []
    for row in _installed(version.tool):
        if row.version_id != version.pk:
            continue
        other = chosen(row.pin)
        if other is not None and move_installation(row, other, why=why, by=by):
            moved.append(row)
        else:
            stuck.append(row)
    return moved, stuck
