"""Tried tools: which version of a tool is tried in a tenant, and why it cannot be run where it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext

from registry.models import Installation, InstallationState, Tool, ToolKind, ToolVersion, VersionState
from registry.problems import UnknownTool

if TYPE_CHECKING:
    from kernel.principal import Principal
    from unitools.manifest import Manifest


@dataclass(frozen=True, slots=True)
class TriedTool:
    """``why_not``: why no call gets this version here; empty where calls get it. ``is_own``: the tenant publishes it."""

    name: str
    version: ToolVersion
    why_not: str
    is_own: bool

    @property
    def manifest(self) -> Manifest:
        return self.version.view


def find_tried_tool(name: str, *, version: str, by: Principal) -> TriedTool:
    """``version``: its number; empty: the one that calls get, or the newest of a tool of the tenant's own."""
    own, called = _find_own(name, by), _find_called(name, by)
    chosen = called if version in ("", called.version if called is not None else "") else None
    if chosen is None and own is not None:
        versions = own.versions.select_related("tool").order_by("-pk")
        chosen = (versions.filter(version=version) if version else versions).first()
    if chosen is None:
        raise UnknownTool(
            f"There is no tool {name[:128]} here, or not in this version.",
            remedy="Choose a tool of the catalogue, or one that is installed.",
        )
    return _describe(name, chosen, own=own, called=called)


def describe_tried_tool(name: str, version: ToolVersion, *, by: Principal) -> TriedTool:
    """Of a try that was made: its version, whatever calls get by now."""
    return _describe(name, version, own=_find_own(name, by), called=_find_called(name, by))


def _find_own(name: str, by: Principal) -> Tool | None:
    return Tool.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(name=name).first()


def _find_called(name: str, by: Principal) -> ToolVersion | None:
    rows = Installation.objects.visible_to(by).of_kind(ToolKind.TOOL).filter(name=name)
    installed = rows.exclude(state=InstallationState.REMOVED).select_related("version__tool").first()
    return installed.version if installed is not None else None


def _describe(name: str, chosen: ToolVersion, *, own: Tool | None, called: ToolVersion | None) -> TriedTool:
    is_own = own is not None and chosen.tool_id == own.pk
    return TriedTool(name, chosen, "" if chosen == called else _explain(chosen, called), is_own)


def _explain(chosen: ToolVersion, called: ToolVersion | None) -> str:
    gets = (
        gettext("Calls get version %(version)s here.") % {"version": called.version}
        if called is not None
        else gettext("Calls get no version of it here: it is not installed.")
    )
    if chosen.yanked_at is not None:
        return gets + " " + gettext("This version was yanked, and is not run any more.")
    if chosen.review_state != VersionState.APPROVED:
        return (
            gets
            + " "
            + gettext("This version is not approved, and is not run as a call. Its reviewer may try it in its review.")
        )
    return gets + " " + gettext("This version is approved: enable it, or stage it for this tenant, and try it then.")
