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
from evidence.leaves.models import ConnectedModel
from kernel.canonical import compute_digest
from kernel.problems import Conflict
from registry.installations.services import Setup, checked_reason, install_at_home
from registry.model_providers.manifests import GROUP, KEY, USUAL, ModelTerms, build_manifest, check_terms
from registry.model_providers.services import check_segment, find_provider
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
from registry.versions.services import listed_fields
from unitools.changes import compare_manifests
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.models import ModelProvider

__all__ = ["connect_model"]


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
