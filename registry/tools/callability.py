"""Callability: whether anybody of the tenant may call a tool at all, whoever it is.

Kill switches, the publisher's state of the tool, the tenant's own instance of it, its version and its settings: in this order,
since the first that is in the way explains most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from access.halts.services import halt_problem
from registry.installations.setup import missing_setup, not_configured
from registry.models import Installation, InstallationState, Tool, ToolKind, ToolState
from registry.problems import (
    ModelUnsupported,
    NotInstalled,
    ToolIsModel,
    ToolNotEnabled,
    ToolPaused,
    ToolRetired,
    UnknownTool,
    VersionYanked,
)
from registry.versions.compiler import CompiledVersion, compiled_version
from unitools.deprecations import find_tool_deprecation

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.problems import Problem
    from registry.decision_context import DecisionContext
    from registry.decision_rows import InstalledTool
    from registry.models import ToolVersion
    from unitools.manifest import Manifest


def why_not_installed(name: str, *, tenant_id: UUID) -> Problem:
    """A tool of the tenant's own that was never enabled, one that it could install, or none at all."""
    own = Tool.objects.filter(tenant_id=tenant_id, name=name).first()
    if own is not None and own.kind == ToolKind.MODEL:
        return _describe_model(own)
    if own is not None and own.state == ToolState.REGISTERED:
        return ToolNotEnabled(
            f"{name} has not been enabled yet.", remedy="Ask an operator to have it reviewed and enabled."
        )
    if own is not None or Tool.objects.filter(name=name, shared=True).exists():
        return NotInstalled(
            f"{name} is not installed here.", remedy="Ask an operator to install it from the shared catalogue."
        )
    return UnknownTool(
        f"There is no tool {name[:128]} here.",
        remedy="List the tools again and use an id from there.",
    )


def _describe_model(own: Tool) -> Problem:
    if Installation.objects.filter(tool=own).exclude(state=InstallationState.REMOVED).exists():
        return ToolIsModel(f"{own.name} is a model.", remedy="List the models, and ask it as a model.")
    return NotInstalled(f"The model {own.name} was removed.", remedy="Use another model, or have it connected again.")


def check_known(decision_context: DecisionContext) -> None:
    """Raise :class:`UnknownTool` for a name that means nothing to the tenant: there is no call to witness then."""
    if decision_context.installed is None:
        problem = why_not_installed(decision_context.tool, tenant_id=decision_context.tenant_id)
        if isinstance(problem, UnknownTool):
            raise problem


def _check_states(decision_context: DecisionContext, installed: InstalledTool) -> None:
    if installed.tool_state == ToolState.PAUSED:
        raise ToolPaused(
            f"{decision_context.tool} is paused since {installed.tool_changed_at:%Y-%m-%d %H:%M} UTC: {installed.tool_reason}",
            details={"since": installed.tool_changed_at.isoformat(), "paused_by": "publisher"},
            remedy="Wait until an operator has enabled it again, or use another tool.",
        )
    if installed.tool_state == ToolState.REGISTERED:
        raise why_not_installed(decision_context.tool, tenant_id=decision_context.tenant_id)
    if (
        installed.tool_state == ToolState.DEPRECATED
        and installed.sunset_on
        and installed.sunset_on < decision_context.at.date()
    ):
        raise ToolRetired(
            f"{decision_context.tool} was withdrawn on {installed.sunset_on}.",
            details={"sunset_on": installed.sunset_on.isoformat(), "successor": installed.successor or None},
            remedy=f"Use {installed.successor} instead." if installed.successor else "Use another tool.",
        )
    if installed.state == InstallationState.PAUSED:
        raise ToolPaused(
            f"{decision_context.tool} is paused in this tenant since {installed.changed_at:%Y-%m-%d %H:%M} UTC: {installed.reason}",
            details={"since": installed.changed_at.isoformat(), "paused_by": "tenant"},
            remedy="Wait until an operator has resumed it, or use another tool.",
        )


def _yanked(tool: str, version: str, reason: str) -> VersionYanked:
    return VersionYanked(
        f"{tool} {version} was withdrawn by its publisher: {reason}",
        details={"version": version},
        remedy="Ask an operator to move the installation to another version.",
    )


def check_not_yanked(version: ToolVersion) -> None:
    """For a call that keeps the version it was accepted with."""
    if version.yanked_at is not None:
        raise _yanked(version.tool.name, version.version, version.yank_reason)


def check_offered(decision_context: DecisionContext) -> UUID:
    """The version that a call would get now; raises what is in the way of everybody, but for settings that are missing."""
    halted = halt_problem(decision_context.halts)
    if halted is not None:
        raise halted
    installed = decision_context.installed
    if installed is None:
        raise why_not_installed(decision_context.tool, tenant_id=decision_context.tenant_id)
    _check_states(decision_context, installed)
    if installed.version_id is None:
        raise ToolNotEnabled(
            f"{decision_context.tool} has no version that this tenant's installation may get.",
            remedy="Ask an operator to change the pin of the installation, or to have a version enabled.",
        )
    if installed.yanked:
        raise _yanked(decision_context.tool, installed.version, installed.yank_reason)
    return installed.version_id


def check_set_up(decision_context: DecisionContext, manifest: Manifest) -> None:
    """Raise what is in the way in the version itself: settings that it needs and lacks, or an end that it announced."""
    assert decision_context.installed is not None
    unready = not_configured(
        decision_context.tool,
        missing_setup(
            manifest,
            config_digest=decision_context.installed.config_digest,
            secrets=decision_context.installed.secrets,
            present=decision_context.secrets,
        ),
    )
    if unready is not None:
        raise unready
    _check_not_gone(decision_context.tool, manifest, decision_context)


def _check_not_gone(tool: str, manifest: Manifest, decision_context: DecisionContext) -> None:
    """A version whose manifest announced the end of the whole tool."""
    if said := find_tool_deprecation(manifest, today=decision_context.at.date()):
        successor = said.get("successor")
        raise ToolRetired(
            f"{tool} {manifest.version} is gone since {said['sunset']}: {said['advice']}",
            details={"sunset_on": said["sunset"], "successor": successor},
            remedy=f"Use {successor} instead." if successor else said["advice"],
        )


def check_model(manifest: Manifest, model: str) -> None:
    """``model``: as the caller names it; of who names none nothing is asked."""
    if model and manifest.models and not any(is_same_model(model, each) for each in manifest.models):
        raise ModelUnsupported(
            f"{manifest.id} is not meant for the model {model}. It is for {', '.join(manifest.models)}.",
            details={"models": manifest.models},
            remedy=f"Call it with one of these models, or use another tool with {model}.",
        )


def is_same_model(one: str, other: str) -> bool:
    """`openai:gpt-4o` is `gpt-4o`, and `ollama:llama3:8b` is `llama3:8b`; two providers' models of one name are two."""
    one, other = one.lower(), other.lower()
    return one == other or one.partition(":")[2] == other or other.partition(":")[2] == one


def check_callable(decision_context: DecisionContext) -> CompiledVersion:
    """The version that a call gets now; raises what is in the way of everybody."""
    compiled = compiled_version(check_offered(decision_context))
    check_set_up(decision_context, compiled.manifest)
    return compiled
