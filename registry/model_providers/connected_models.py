"""Connected models: which models of its providers a tenant uses, under which names.

A connected model is a tool of the kind ``model``: grants, consents, policies, budgets, kill switches and evidence hold for it as they
stand. Its versions need no review: nobody's code runs here, and the person who connects it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.models import ConnectedModel, RemovedModel
from evidence.leaves.tools import EnabledTool, PausedTool
from kernel.canonical import compute_digest
from kernel.problems import Conflict
from registry.installations.resolution import move_installation
from registry.installations.services import Setup, change_setup, change_state, checked_reason, install_at_home
from registry.model_providers.fallbacks import check_fallbacks
from registry.model_providers.manifests import GROUP, KEY, USUAL, ModelTerms, build_manifest, check_terms, read_terms
from registry.model_providers.rows import check_segment, find_provider
from registry.models import (
    Installation,
    InstallationState,
    ModelProviderState,
    Tool,
    ToolKind,
    ToolState,
    ToolVersion,
    VersionState,
)
from registry.problems import UnknownModel
from registry.tools.lifecycle import move_tool
from registry.versions.services import listed_fields
from unitools.changes import compare_manifests
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import InstallationQuerySet, ModelProvider


@transaction.atomic
def connect_model(*, provider: str, alias: str, model: str, reason: str, by: Principal, **terms: Any) -> Tool:
    """Let a name mean a model of a provider: a tool ``model.<provider>.<alias>`` that can be granted and called at once.

    ``terms``: the rest of :class:`ModelTerms`.
    """
    reason = checked_reason(reason)
    check_segment(alias, at="/alias")
    row = find_provider(provider, tenant_id=by.tenant_id, locked=True)
    said = ModelTerms(**{**USUAL, "model": model, **terms})  # type: ignore[typeddict-item]
    check_terms(said)
    check_fallbacks(f"{GROUP}.{row.name}.{alias}", said, tenant_id=by.tenant_id)
    tool, created = Tool.objects.select_for_update().get_or_create(
        tenant_id=by.tenant_id,
        name=f"{GROUP}.{row.name}.{alias}",
        defaults={"kind": ToolKind.MODEL, "state_changed_by": by.id},
    )
    if not created:
        _check_is_free(tool)
    _write_version(tool, row, said, kind=Kind.MODEL_CONNECTED, reason=reason, by=by)
    secrets = {KEY: row.secret} if row.secret else {}
    values = Setup(pin="", config={}, hosts=None, paths=None, secrets=secrets)
    install_at_home(tool, reason=reason, by=by, values=values)
    return tool


def _check_is_free(tool: Tool) -> None:
    """A model that was removed may be connected again, under its name."""
    there = Installation.objects.filter(tenant_id=tool.tenant_id, name=tool.name)
    if tool.kind != ToolKind.MODEL or there.exclude(state=InstallationState.REMOVED).exists():
        raise Conflict(f"{tool.name} is there already.", remedy="Change it, or choose another alias.")


def find_models(provider: ModelProvider) -> InstallationQuerySet:
    """The installations of a provider's models, by name."""
    rows = Installation.objects.filter(tenant_id=provider.tenant_id).of_kind(ToolKind.MODEL)
    named = rows.filter(name__startswith=f"{GROUP}.{provider.name}.").exclude(state=InstallationState.REMOVED)
    return named.select_related("tool", "version").order_by("name")


def _lock_model(provider: ModelProvider, alias: str) -> Installation:
    """Its tool is locked before it, as everywhere."""
    name = f"{GROUP}.{provider.name}.{alias}"
    tool = Tool.objects.select_for_update(of=("self",)).filter(tenant_id=provider.tenant_id, name=name).first()
    row = find_models(provider).select_for_update(of=("self",)).filter(name=name).first()
    if tool is None or row is None:
        raise UnknownModel(f"The provider {provider.name} has no model {alias[:40]} here.")
    row.tool = tool
    return row


@transaction.atomic
def change_model(*, provider: str, alias: str, reason: str, by: Principal, **terms: Any) -> Tool:
    """Let a name mean another model, or the same one otherwise: a new version, which counts with the next call. What is left out of
    ``terms`` stays as it is; a call that runs keeps what it began with.
    """
    reason, row = checked_reason(reason), find_provider(provider, tenant_id=by.tenant_id, locked=True)
    return _rewrite(_lock_model(row, alias), row, terms, reason=reason, by=by)


def _rewrite(row: Installation, provider: ModelProvider, terms: dict[str, Any], *, reason: str, by: Principal) -> Tool:
    """Called with tool and installation locked."""
    tool = row.tool
    assert tool.current is not None
    said = ModelTerms(**{**read_terms(tool.current.view), **terms})  # type: ignore[typeddict-item]
    check_terms(said)
    if "fallbacks" in terms or "operation" in terms:
        check_fallbacks(tool.name, said, tenant_id=tool.tenant_id)
    _write_version(tool, provider, said, kind=Kind.MODEL_CHANGED, reason=reason, by=by)
    assert tool.current is not None
    move_installation(row, tool.current, why=reason, by=by)
    secrets = {KEY: provider.secret} if provider.secret else {}
    if row.secrets != secrets:
        change_setup(row, Setup(secrets=secrets), reason=reason, by=by)
    return tool


def rewrite_models(provider: ModelProvider, *, reason: str, by: Principal) -> None:
    """Each model of a provider gets the version that fits the provider as it is now; called with the provider locked."""
    for each in find_models(provider):
        _rewrite(_lock_model(provider, each.name.rpartition(".")[2]), provider, {}, reason=reason, by=by)


@transaction.atomic
def remove_model(*, provider: str, alias: str, reason: str, by: Principal) -> None:
    """Let a name mean no model any more. Calls, facts and versions stay, and it may be connected again."""
    reason, row = checked_reason(reason), find_provider(provider, tenant_id=by.tenant_id, locked=True)
    take_away(_lock_model(row, alias), reason=reason, by=by)


def take_away(row: Installation, *, reason: str, by: Principal) -> None:
    """Called with the model locked."""
    change_state(row.name, InstallationState.REMOVED, "removed", reason=reason, by=by)
    evidence.record(
        kind=Kind.MODEL_REMOVED, subject=row.tool.urn, actor=by, tool=row.name, data=RemovedModel(reason=reason)
    )


def move_models(provider: ModelProvider, to: ToolState, *, reason: str, by: Principal) -> list[str]:
    """Stop or let through the calls of all models of a provider, whatever their own installations say; their names."""
    names = []
    for each in find_models(provider):
        tool = _lock_model(provider, each.name.rpartition(".")[2]).tool
        names.append(tool.name)
        if to == ToolState.PAUSED:
            move_tool(tool, to, Kind.TOOL_PAUSED, cls=PausedTool, reason=reason, by=by)
        else:
            assert tool.current is not None
            said = {"version": tool.current.version, "id": tool.current.wire_id}
            move_tool(tool, to, Kind.TOOL_ENABLED, cls=EnabledTool, reason=reason, by=by, **said)
    return names


def _write_version(
    tool: Tool, provider: ModelProvider, terms: ModelTerms, *, kind: Kind, reason: str, by: Principal
) -> None:
    """The next version of a model, which calls get from now on; called with the tool locked."""
    before = tool.current
    alias = tool.name.rpartition(".")[2]
    document = build_manifest(provider, alias, terms, version=f"1.0.{tool.versions.count()}")
    manifest = Manifest(document)
    changes = compare_manifests(before.manifest, document) if before else []
    version = ToolVersion.objects.create(
        tool=tool,
        version=manifest.version,
        manifest=document,
        manifest_digest=compute_digest(document),
        base=before,
        changes=[change.to_json() for change in changes],
        review_state=VersionState.APPROVED,
        submitted_by=by.id,
        **listed_fields(manifest),
    )
    tool.current = version
    tool.state = ToolState.ENABLED if provider.state == ModelProviderState.ENABLED else ToolState.PAUSED
    tool.state_reason, tool.state_changed_at, tool.state_changed_by = reason, timezone.now(), by.id
    tool.save(update_fields=["current", "state", "state_reason", "state_changed_at", "state_changed_by"])
    evidence.record(
        kind=kind,
        subject=tool.urn,
        actor=by,
        tool=tool.name,
        data=ConnectedModel(
            version=version.version,
            id=version.wire_id,
            provider=provider.name,
            model=terms["model"],
            operation=terms["operation"],
            manifest_digest=version.manifest_digest,
            reason=reason,
        ),
    )
