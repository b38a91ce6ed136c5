"""Installations: how a tenant gets a tool of its own to call, and sets it up.

A tool belongs to who publishes it; an installation is what a tenant's agents find and call. Enabling a tool installs it at
home; other tenants install what its publisher shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.tools import ChangedInstallation
from kernel.database.rows import PreparedQuery
from kernel.database.tenancy import hub_wide
from kernel.problems import Conflict, SchemaInvalid, StateUnfit
from registry.installations import setup
from registry.installations.resolution import evidence_actor, is_usable, resolve_version
from registry.models import INSTALLATION_TRANSITIONS, Installation, InstallationState, Secret, Tool, ToolKind, ToolState
from registry.problems import NotInstalled, ToolIsModel, UnknownTool
from registry.secrets.services import open_secrets

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import ToolVersion

__all__ = [
    "Setup",
    "configure_installation",
    "install_at_home",
    "install_tool",
    "pause_installation",
    "remove_installation",
    "resolve_version",
    "resume_installation",
    "settings_for_run",
]
MAX_REASON = 500
INSTALLED = PreparedQuery(
    lambda tenant_id, name: Installation.objects.filter(tenant_id=tenant_id, name=name).exclude(
        state=InstallationState.REMOVED
    ),
    tenant_id=UUID,
    name=str,
)
FIELDS = ("pin", "config", "hosts", "paths", "secrets")


class Setup(TypedDict, total=False):
    """What a tenant may set for its installation. What is left out stays as it is."""

    pin: str
    config: dict[str, Any]
    hosts: list[str] | None
    paths: list[str] | None
    secrets: dict[str, str]


def _refuse(findings: list[dict[str, str]], problem: type[SchemaInvalid] = SchemaInvalid) -> None:
    if findings:
        first = findings[0]
        raise problem(
            first["message"] if len(findings) == 1 else f"{len(findings)} settings are not right: {first['message']}",
            details={"findings": findings},
        )


def checked_reason(reason: str) -> str:
    said = reason.strip()
    if not said:
        _refuse([{"pointer": "/reason", "message": "Write why; the reason is kept as evidence."}])
    if len(said) > MAX_REASON:
        _refuse([{"pointer": "/reason", "message": f"The reason has more than {MAX_REASON} characters."}])
    return said


def present_secrets(tenant_id: UUID) -> set[str]:
    return set(Secret.objects.filter(tenant_id=tenant_id).values_list("name", flat=True))


def _check_setup(values: Setup, version: ToolVersion, *, tenant_id: UUID) -> None:
    """What was given. What was set before and does not fit another version makes it uncallable, and is shown so."""
    wrong = [*setup.check_hosts(values.get("hosts")), *setup.check_paths(values.get("paths"))]
    unfit: list[dict[str, str]] = []
    if "config" in values:
        unfit += setup.check_config(values["config"], version.view)
    if "secrets" in values:
        unfit += setup.check_secrets(values["secrets"], version.view, present=present_secrets(tenant_id))
    _refuse([*wrong, *unfit], SchemaInvalid if wrong else StateUnfit)


def _chosen(tool: Tool, pin: str) -> ToolVersion:
    """The version that this pin gives; refuses a pin that gives none."""
    _refuse(list(setup.check_pin(pin)))
    version = resolve_version(tool, pin)
    if version is None or not is_usable(version):
        message = (
            f"No approved version of {tool.name} is within {pin}." if pin else f"{tool.name} has no version to use."
        )
        _refuse([{"pointer": "/pin", "message": message}], StateUnfit)
    assert version is not None
    return version


def _witness(installation: Installation, what: str, *, reason: str, by: Principal) -> None:
    """The fact about a change. What the configuration says stays out of it; its digest goes in."""
    version = installation.version
    evidence.record(
        kind=Kind.INSTALLATION_CHANGED,
        subject=installation.wire_id,
        actor=evidence_actor(installation, by),
        tool=installation.name,
        data=ChangedInstallation(
            what=what,
            reason=reason,
            state=installation.state,
            version=version.version if version else "",
            pin=installation.pin,
            config=installation.config_digest,
            hosts=len(installation.hosts) if installation.hosts is not None else None,
            paths=len(installation.paths) if installation.paths is not None else None,
            secrets=installation.secrets,
        ),
    )


def _is_taken(name: str, tenant_id: UUID, *, but: Tool) -> bool:
    taken = Installation.objects.filter(tenant_id=tenant_id, name=name).exclude(tool=but)
    return taken.exclude(state=InstallationState.REMOVED).exists()


def install_at_home(tool: Tool, *, reason: str, by: Principal, values: Setup | None = None) -> Installation:
    """The publisher's own tenant gets what is enabled; called with the tool locked, in the transaction that enables it."""
    if _is_taken(tool.name, tool.tenant_id, but=tool):
        raise Conflict(
            f"This tenant has installed {tool.name} of another publisher.",
            remedy="Remove that installation first: a name means one tool in a tenant.",
        )
    before = Installation.objects.filter(tenant_id=tool.tenant_id, name=tool.name).first()
    if before is not None and before.tool_id == tool.pk and before.state == InstallationState.ENABLED:
        return before
    given = values or Setup(pin="")
    return _write_installation(tool, given, tenant_id=tool.tenant_id, reason=reason, by=by, before=before)


def _write_installation(
    tool: Tool, values: Setup, *, tenant_id: UUID, reason: str, by: Principal, before: Installation | None
) -> Installation:
    """One row a name and tenant: a removed one comes back, and keeps its settings if it is of the same tool."""
    same = before is not None and before.tool_id == tool.pk
    kept = before if same and before is not None else Installation()
    row = before or Installation(tenant_id=tenant_id, name=tool.name)
    row.tool, row.state, row.reason, row.changed_by = tool, InstallationState.ENABLED, reason, by.id
    row.pin = values.get("pin", kept.pin)
    row.config = values.get("config", kept.config)
    row.hosts = values.get("hosts", kept.hosts)
    row.paths = values.get("paths", kept.paths)
    row.secrets = values.get("secrets", kept.secrets)
    row.version = resolve_version(tool, row.pin)
    row.config_digest = setup.compute_config_digest(row.config, row.version.view) if row.version else ""
    if before is None:
        Installation.objects.bulk_create([row])
    else:
        row.save(
            update_fields=[*FIELDS, "tool", "version", "config_digest", "state", "reason", "changed_by", "changed_at"]
        )
    _witness(row, "installed", reason=reason, by=by)
    return row


def find_publishable(name: str, *, publisher: str, by: Principal) -> Tool:
    """The tool of this name that this tenant may install: its own, or one that is shared."""
    rows = Tool.objects.of_kind(ToolKind.TOOL).select_related("current", "tenant").filter(name=name)
    if publisher:
        rows = rows.filter(tenant__slug=publisher)
    allowed = [row for row in rows if row.tenant_id == by.tenant_id or row.shared]
    own = [row for row in allowed if row.tenant_id == by.tenant_id]
    found = own or allowed
    if not found:
        raise UnknownTool(
            f"There is no tool {name[:128]} that this tenant may install.",
            remedy="Look in the shared catalogue for the tools that this tenant may install.",
        )
    if len(found) > 1:
        slugs = sorted(row.tenant.slug for row in found)
        _refuse(
            [{"pointer": "/publisher", "message": f"More than one publisher shares it; name one: {', '.join(slugs)}."}]
        )
    return found[0]


@transaction.atomic
def install_tool(
    *, name: str, reason: str, by: Principal, publisher: str = "", values: Setup | None = None
) -> Installation:
    """Give this tenant its own instance of a tool that it publishes, or that somebody shares."""
    reason = checked_reason(reason)
    with hub_wide():  # a tenant does not see the others' names, and locks no row of theirs
        found = find_publishable(name, publisher=publisher, by=by)
        tool = Tool.objects.select_for_update(of=("self",)).select_related("current").get(pk=found.pk)
    if tool.state in (ToolState.REGISTERED, ToolState.DEPRECATED):
        raise Conflict(
            f"{tool.name} is {tool.state}; it cannot be installed.",
            remedy="Its publisher must enable it first."
            if tool.state == ToolState.REGISTERED
            else f"Install its successor {tool.successor}."
            if tool.successor
            else "Look for another tool.",
        )
    before = Installation.objects.select_for_update().filter(tenant_id=by.tenant_id, name=tool.name).first()
    if before is not None and before.state != InstallationState.REMOVED:
        raise Conflict(f"{tool.name} is installed already.", remedy="Change its settings, or remove it first.")
    given = Setup(pin="", config={}, hosts=None, paths=None, secrets={})
    given.update(values or {})
    version = _chosen(tool, given["pin"])
    _check_setup(values or Setup(), version, tenant_id=by.tenant_id)
    return _write_installation(tool, given, tenant_id=by.tenant_id, reason=reason, by=by, before=before)


def locked_installation(name: str, *, by: Principal) -> Installation:
    """By the tool's name, which is what people and agents know; removed ones are not there.

    The tool and the version are read once it is locked: its publisher may have moved it meanwhile.
    """
    row = (
        Installation.objects.visible_to(by)
        .select_for_update(of=("self",))
        .prefetch_related("tool__current", "version")
        .filter(name=name)
        .exclude(state=InstallationState.REMOVED)
        .first()
    )
    if row is None:
        raise NotInstalled(
            f"{name[:128]} is not installed here.", remedy="Install it first, from the shared catalogue."
        )
    return row


@transaction.atomic
def configure_installation(*, name: str, values: Setup, reason: str, by: Principal) -> Installation:
    """Change the settings of this tenant's instance; they count with the next call. Nothing is changed when one is not right."""
    reason, row = checked_reason(reason), locked_installation(name, by=by)
    _check_is_tool(row)
    return change_setup(row, values, reason=reason, by=by)


def _check_is_tool(row: Installation) -> None:
    """Of a model everything but a pause follows from what its provider's settings say."""
    if row.tool.kind == ToolKind.MODEL:
        raise ToolIsModel(f"{row.name} is a model.", remedy="Change or remove it among the models of its provider.")


def change_setup(row: Installation, values: Setup, *, reason: str, by: Principal) -> Installation:
    """Called with the installation locked."""
    now = Setup(pin=row.pin, config=row.config, hosts=row.hosts, paths=row.paths, secrets=row.secrets)
    now.update(values)
    version = _chosen(row.tool, now["pin"]) if now["pin"] != row.pin or row.version is None else row.version
    _check_setup(values, version, tenant_id=by.tenant_id)
    row.pin, row.config, row.hosts, row.paths = now["pin"], now["config"], now["hosts"], now["paths"]
    row.secrets, row.version, row.config_digest = (
        now["secrets"],
        version,
        setup.compute_config_digest(now["config"], version.view),
    )
    row.reason, row.changed_by = reason, by.id
    row.save(update_fields=[*FIELDS, "version", "config_digest", "reason", "changed_by", "changed_at"])
    _witness(row, "configured", reason=reason, by=by)
    return row


def settings_for_run(
    *, tenant_id: UUID, name: str, version: ToolVersion, found: list[Installation] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The configuration and the opened secrets of one run of this version; for the worker, right before it. ``found``: the
    installation, if there is one, where it was asked for already.
    """
    row = next(iter(INSTALLED.all(tenant_id=tenant_id, name=name) if found is None else found), None)
    if row is None:
        raise NotInstalled(f"{name} was removed while the call waited.", remedy="Ask an operator to install it again.")
    manifest = version.view
    opened = open_secrets(row, manifest)
    lacking = setup.missing_setup(
        manifest,
        config_digest=setup.compute_config_digest(row.config, manifest),
        secrets=row.secrets,
        present=[row.secrets[each] for each in opened],
    )
    problem = setup.not_configured(name, lacking)
    if problem is not None:
        raise problem
    return row.config, opened


def check_canchange_state(installation: Installation, to: InstallationState) -> None:
    if to not in INSTALLATION_TRANSITIONS[installation.state]:
        allowed = sorted(INSTALLATION_TRANSITIONS[installation.state])
        raise Conflict(
            f"The installation of {installation.name} is {installation.state}; it cannot become {to}.",
            details={"state": installation.state, "allowed": allowed},
            remedy=f"From {installation.state} it can become: {', '.join(allowed)}.",
        )


def change_state(name: str, to: InstallationState, what: str, *, reason: str, by: Principal) -> Installation:
    """Also of a model; whose provider is asked for it sees to that. ``what``: as the fact calls it."""
    reason = checked_reason(reason)
    row = locked_installation(name, by=by)
    check_canchange_state(row, to)
    row.state, row.reason, row.changed_by = to, reason, by.id
    row.save(update_fields=["state", "reason", "changed_by", "changed_at"])
    _witness(row, what, reason=reason, by=by)
    return row


@transaction.atomic
def pause_installation(*, name: str, reason: str, by: Principal) -> Installation:
    """Stop this tenant's calls of the tool at once; other tenants go on."""
    return change_state(name, InstallationState.PAUSED, "paused", reason=reason, by=by)


@transaction.atomic
def resume_installation(*, name: str, reason: str, by: Principal) -> Installation:
    return change_state(name, InstallationState.ENABLED, "resumed", reason=reason, by=by)


@transaction.atomic
def remove_installation(*, name: str, reason: str, by: Principal) -> Installation:
    """The tenant's agents find the tool no more. The row stays, with its settings, for evidence and for coming back."""
    _check_is_tool(locked_installation(name, by=by))
    return change_state(name, InstallationState.REMOVED, "removed", reason=reason, by=by)
