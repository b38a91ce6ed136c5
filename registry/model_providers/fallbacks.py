"""Fallbacks: which models of a tenant may stand in for another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.problems import SchemaInvalid, StateUnfit
from registry.model_providers.manifests import GROUP, MAX_FALLBACKS
from registry.models import Installation, InstallationState, ToolKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from registry.model_providers.manifests import ModelTerms
    from unitools.manifest import ModelPart


def check_fallbacks(name: str, terms: ModelTerms, *, tenant_id: UUID) -> None:
    """Raise :class:`SchemaInvalid` for what cannot stand in for the model of this name, with its place."""
    wanted = terms["fallbacks"]
    if len(wanted) > MAX_FALLBACKS or len(set(wanted)) < len(wanted):
        raise SchemaInvalid.at("/fallbacks", f"At most {MAX_FALLBACKS} models, each once.")
    parts = _find_parts(wanted, tenant_id=tenant_id)
    for place, each in enumerate(wanted):
        part = parts.get(each)
        if part is None:
            raise StateUnfit.at(f"/fallbacks/{place}", f"There is no model {each[:128]} in this tenant.")
        if part.operation != terms["operation"]:
            raise StateUnfit.at(f"/fallbacks/{place}", f"{each} is for `{part.operation}`.")
        if each == name or _leads_to(name, part.fallbacks, tenant_id=tenant_id):
            raise StateUnfit.at(f"/fallbacks/{place}", f"{each} would fall back on {name} itself.")


def _find_parts(names: Iterable[str], *, tenant_id: UUID) -> dict[str, ModelPart]:
    """What the manifests of connected models say, by their ids."""
    asked = [each for each in names if each.startswith(f"{GROUP}.")]
    rows = Installation.objects.filter(tenant_id=tenant_id, name__in=asked).of_kind(ToolKind.MODEL)
    rows = rows.exclude(state=InstallationState.REMOVED).select_related("version")
    found = {row.name: row.version.view.model for row in rows if row.version is not None}
    return {name: part for name, part in found.items() if part is not None}


def _leads_to(name: str, names: Iterable[str], *, tenant_id: UUID) -> bool:
    """Whether a chain of fallbacks that begins with these comes to a model."""
    seen: set[str] = set()
    following = set(names)
    while following:
        if name in following:
            return True
        seen |= following
        parts = _find_parts(following, tenant_id=tenant_id)
        following = {each for part in parts.values() for each in part.fallbacks} - seen
    return False
