"""Lifecycle: how a tool changes state, and who gets which version of it.

Enabling moves every installation without a pin; staging moves those of named tenants; yanking moves whoever is on the
version. Rolling back is enabling an older approved version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.reasons import StatedReason
from evidence.leaves.tools import (
    DeprecatedTool,
    EnabledTool,
    MovedTool,
    PausedTool,
    StagedVersion,
    VersionTrust,
    YankedVersion,
)
from kernel.database.tenancy import hub_wide
from kernel.problems import Conflict, SchemaInvalid, StateUnfit
from registry.installations.resolution import (
    follow_current,
    is_usable,
    leave_version,
    move_installation,
    resolve_version,
    settle_pins,
)
from registry.installations.services import checked_reason, install_at_home
from registry.models import (
    TRANSITIONS,
    Installation,
    InstallationState,
    Tool,
    ToolKind,
    ToolState,
    ToolVersion,
    VersionState,
)
from registry.problems import NotReviewed, NotTrustable, VersionYanked
from registry.tools.selectors import check_is_tool, get_tool
from unitools import semver

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from uuid import UUID

    from kernel.principal import Principal


def check_can_move(tool: Tool, to: ToolState) -> None:
    if to not in TRANSITIONS[tool.state]:
        allowed = sorted(TRANSITIONS[tool.state])
        raise Conflict(
            f"{tool.name} is {tool.state}; it cannot become {to}.",
            details={"state": tool.state, "allowed": allowed},
            remedy=f"From {tool.state} a tool can become: {', '.join(allowed) or 'nothing else'}.",
        )


def check_is_usable(version: ToolVersion) -> None:
    if version.review_state != VersionState.APPROVED:
        raise NotReviewed(
            f"{version.tool.name} {version.version} is {version.review_state}; only an approved version can be enabled.",
            remedy="Have the version reviewed by somebody who did not submit it.",
        )
    if version.yanked_at is not None:
        raise VersionYanked(
            f"{version.tool.name} {version.version} was withdrawn on {version.yanked_at:%Y-%m-%d}: {version.yank_reason}",
            details={"version": version.version, "since": version.yanked_at.isoformat()},
            remedy="Enable another version.",
        )


def locked_tool(name: str, by: Principal) -> Tool:
    """One of the tenant's own, which is no model."""
    tool = get_tool(name, tenant_id=by.tenant_id, locked=True)
    check_is_tool(tool)
    return tool


def locked_version(version_id: UUID, by: Principal) -> ToolVersion:
    """The version and its tool, both locked: whoever changes one decides about the other."""
    rows = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id)
    tool_id = rows.values_list("tool_id", flat=True).get(pk=version_id)
    tool = Tool.objects.select_for_update(of=("self",)).select_related("current").get(pk=tool_id)
    check_is_tool(tool)
    # Its key stays: an installation that is being given this version refers to it while its lock is waited for here.
    version = ToolVersion.objects.select_for_update(of=("self",), no_key=True).get(pk=version_id)
    version.tool = tool
    return version


def only_approved_version(tool: Tool) -> ToolVersion:
    """What the first enabling means that names no version."""
    usable = (
        tool.versions.select_related("tool").filter(review_state=VersionState.APPROVED, yanked_at=None).order_by("pk")
    )
    match list(usable):
        case [version]:
            return version
        case []:
            raise NotReviewed(
                f"{tool.name} has no approved version that could be enabled.",
                remedy="Have a version reviewed by somebody who did not submit it.",
            )
        case several:
            names = ", ".join(version.version for version in several[:MAX_STAGED])
            raise SchemaInvalid.at("/version", f"{tool.name} has never been enabled. Say which version: {names}.")


MOVED = ("state", "state_reason", "state_changed_at", "state_changed_by", "current", "sunset_on", "successor")


def move_tool(
    tool: Tool, to: ToolState, kind: Kind, *, cls: type[MovedTool], reason: str, by: Principal, **more: Any
) -> Tool:
    """Called with the tool locked, once it is clear that it can move."""
    before = tool.state
    tool.state, tool.state_reason = to, checked_reason(reason)
    tool.state_changed_at, tool.state_changed_by = timezone.now(), by.id
    tool.save(update_fields=MOVED)
    evidence.record(
        kind=kind,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data=cls(from_=before, to=str(to), reason=tool.state_reason, **more),
    )
    return tool


@hub_wide()
def is_staged_apart(tool: Tool) -> bool:
    """Whether somebody without a pin has another version than the current one."""
    rows = Installation.objects.filter(tool=tool, pin="").exclude(state=InstallationState.REMOVED)
    return rows.exclude(version_id=tool.current_id).exists()


@transaction.atomic
def enable_tool(*, name: str, reason: str, by: Principal, version_id: UUID | None = None) -> Tool:
    """Make a tool callable with an approved version: the given one, the one it had before it was paused, or the only one.

    Everybody who has it installed without a pin gets the version that is named. The publisher's tenant gets it installed.
    """
    tool = locked_tool(name, by)
    version = tool.versions.select_related("tool").get(pk=version_id) if version_id else tool.current
    version = version or only_approved_version(tool)
    check_is_usable(version)
    promotes = tool.state == ToolState.ENABLED and (tool.current_id != version.pk or is_staged_apart(tool))
    if not promotes:
        check_can_move(tool, ToolState.ENABLED)
    tool.current = version
    said = {"version": version.version, "id": version.wire_id}
    move_tool(tool, ToolState.ENABLED, Kind.TOOL_ENABLED, cls=EnabledTool, reason=reason, by=by, **said)
    install_at_home(tool, reason=tool.state_reason, by=by)
    if version_id is not None:
        follow_current(tool, why=f"{version.version} was enabled", by=by)
        settle_pins(tool, why=f"{version.version} was enabled", by=by)
    return tool


@transaction.atomic
def pause_tool(*, name: str, reason: str, by: Principal) -> Tool:
    """Stop a tool at once, for every tenant: the next call is refused."""
    tool = locked_tool(name, by)
    check_can_move(tool, ToolState.PAUSED)
    return move_tool(tool, ToolState.PAUSED, Kind.TOOL_PAUSED, cls=PausedTool, reason=reason, by=by)


@transaction.atomic
def deprecate_tool(*, name: str, reason: str, sunset_on: date, by: Principal, successor: str = "") -> Tool:
    """Hide a tool from discovery; it answers with a warning until ``sunset_on``, then not at all."""
    tool = locked_tool(name, by)
    check_can_move(tool, ToolState.DEPRECATED)
    if sunset_on < timezone.now().date():
        raise StateUnfit.at("/sunset_on", "The sunset date is in the past.")
    if successor == name:
        raise StateUnfit.at("/successor", "A tool is not its own successor.")
    usable = Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(name=successor, current__isnull=False)
    if successor and not usable.exists():
        raise StateUnfit.at("/successor", f"There is no tool {successor[:128]} that can be used instead.")
    tool.sunset_on, tool.successor = sunset_on, successor
    said = {"sunset_on": sunset_on.isoformat(), "successor": successor}
    return move_tool(tool, ToolState.DEPRECATED, Kind.TOOL_DEPRECATED, cls=DeprecatedTool, reason=reason, by=by, **said)


@transaction.atomic
def stage_version(*, version_id: UUID, tenants: Iterable[str], reason: str, by: Principal) -> list[Installation]:
    """Let only the named tenants (slugs) get this version; everybody else keeps the current one. Gives those that moved.

    Enabling the version afterwards gives it to all; enabling the current one again takes it back from the named ones.
    """
    reason, version = checked_reason(reason), locked_version(version_id, by)
    check_is_usable(version)
    if version.tool.state != ToolState.ENABLED:
        raise Conflict(
            f"{version.tool.name} is {version.tool.state}; only versions of an enabled tool are staged.",
            remedy="Enable the tool first.",
        )
    wanted = sorted(set(tenants))
    with hub_wide():
        moved = _stage(version, wanted, why=f"{version.version} was staged: {reason}", by=by)
    evidence.record(
        kind=Kind.VERSION_STAGED,
        subject=version.tool.urn,
        actor=by,
        tool=version.tool.name,
        data=StagedVersion(version=version.version, id=version.wire_id, tenants=wanted, reason=reason),
    )
    return moved


MAX_STAGED = 100


def _stage(version: ToolVersion, wanted: list[str], *, why: str, by: Principal) -> list[Installation]:
    rows = (
        Installation.objects.select_for_update(of=("self",))
        .select_related("tenant", "version")
        .filter(tool=version.tool, tenant__slug__in=wanted)
        .exclude(state=InstallationState.REMOVED)
    )
    found = {row.tenant.slug: row for row in rows}
    _check_can_stage(wanted, found, version)
    return [row for row in found.values() if move_installation(row, version, why=why, by=by)]


def _check_can_stage(wanted: list[str], found: dict[str, Installation], version: ToolVersion) -> None:
    if not wanted or len(wanted) > MAX_STAGED:
        raise SchemaInvalid.at("/tenants", f"Name 1 to {MAX_STAGED} tenants.")
    missing = [slug for slug in wanted if slug not in found]
    if missing:
        raise SchemaInvalid.at(
            "/tenants", f"These tenants have not installed {version.tool.name}: {', '.join(missing)[:300]}."
        )
    number = semver.Version.parse(version.version)
    apart = [slug for slug, row in found.items() if row.pin and number not in semver.Range.parse(row.pin)]
    if apart:
        raise SchemaInvalid.at("/tenants", f"{version.version} is outside the pin of: {', '.join(apart)[:300]}.")


@transaction.atomic
def yank_version(*, version_id: UUID, reason: str, by: Principal) -> tuple[list[Installation], list[Installation]]:
    """Withdraw a version for good. Gives the installations that got another version, and those that have none to get.

    When it was the current one, the newest usable version below it becomes current; without one the tool is refused until
    another version is enabled.
    """
    reason, version = checked_reason(reason), locked_version(version_id, by)
    if version.yanked_at is not None:
        raise Conflict(f"{version.version} was yanked already.")
    version.yanked_at, version.yanked_by, version.yank_reason = timezone.now(), by.id, reason
    version.save(update_fields=["yanked_at", "yanked_by", "yank_reason"])
    tool = version.tool
    if tool.current_id == version.pk:
        tool.current = version
        tool.current = resolve_version(tool, "") or version
        tool.save(update_fields=["current"])
    moved, stuck = leave_version(version, why=f"{version.version} was yanked: {reason}", by=by)
    evidence.record(
        kind=Kind.VERSION_YANKED,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data=YankedVersion(
            version=version.version,
            id=version.wire_id,
            reason=reason,
            current=tool.current.version if tool.current and is_usable(tool.current) else "",
            moved=len(moved),
            stuck=len(stuck),
        ),
    )
    return moved, stuck


def check_can_trust(version: ToolVersion) -> None:
    """SVC-11: what has an effect, or asks for the sandbox itself, is never run without one."""
    check_is_usable(version)
    asks = bool(version.manifest.get("requires_sandbox", True))
    if version.side_effect != "None" or asks:
        why = f"its side effect is {version.side_effect}" if version.side_effect != "None" else "it requires a sandbox"
        raise NotTrustable(
            f"{version.tool.name} {version.version} may not run without a sandbox: {why}.",
            details={"side_effect": version.side_effect, "requires_sandbox": asks},
            remedy="Only a version with side_effect None and requires_sandbox false can be trusted.",
        )


@transaction.atomic
def trust_version(*, version_id: UUID, reason: str, by: Principal) -> ToolVersion:
    """Mark a version as trusted to run without a sandbox (SVC-11)."""
    reason, version = checked_reason(reason), locked_version(version_id, by)
    check_can_trust(version)
    if version.trusted_at is not None:
        raise Conflict(f"{version.version} is trusted already.")
    return _mark(version, Kind.VERSION_TRUSTED, at=timezone.now(), marked_by=by.id, reason=reason, by=by)


@transaction.atomic
def distrust_version(*, version_id: UUID, reason: str, by: Principal) -> ToolVersion:
    """Take the mark back: it runs in the sandbox from the next call on."""
    reason, version = checked_reason(reason), locked_version(version_id, by)
    if version.trusted_at is None:
        raise Conflict(f"{version.version} is not trusted.")
    return _mark(version, Kind.VERSION_DISTRUSTED, at=None, marked_by="", reason=reason, by=by)


def _mark(version: ToolVersion, kind: Kind, *, at: Any, marked_by: str, reason: str, by: Principal) -> ToolVersion:
    version.trusted_at, version.trusted_by = at, marked_by
    version.save(update_fields=["trusted_at", "trusted_by"])
    evidence.record(
        kind=kind,
        subject=version.tool.urn,
        actor=by,
        tool=version.tool.name,
        data=VersionTrust(version=version.version, id=version.wire_id, build=version.build_digest, reason=reason),
    )
    return version


@transaction.atomic
def share_tool(*, name: str, reason: str, by: Principal) -> Tool:
    """Let the other tenants of this hub install the tool."""
    return _share(name, True, Kind.TOOL_SHARED, reason=reason, by=by)


@transaction.atomic
def unshare_tool(*, name: str, reason: str, by: Principal) -> Tool:
    """No other tenant installs it any more. Who has it keeps it, until it is paused or deprecated."""
    return _share(name, False, Kind.TOOL_UNSHARED, reason=reason, by=by)


def _share(name: str, shared: bool, kind: Kind, *, reason: str, by: Principal) -> Tool:
    reason, tool = checked_reason(reason), locked_tool(name, by)
    if tool.shared == shared:
        raise Conflict(f"{tool.name} is {'shared already' if shared else 'not shared'}.")
    tool.shared = shared
    tool.save(update_fields=["shared"])
    evidence.record(kind=kind, subject=tool.urn, actor=by, tool=tool.name, data=StatedReason(reason=reason))
    return tool
