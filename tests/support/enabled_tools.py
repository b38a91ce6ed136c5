"""Enabled tools: the rows of a tool that was submitted, reviewed and enabled, without the way that leads there.

A third of what most tests of calls took was to get a tool ready. That way, with its rules and its facts, has tests of its own, and
whoever needs its facts takes ``enable_by_review`` of the cast.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from django.db import transaction

from kernel.canonical import canonicalize, compute_digest
from kernel.database.rows import insert_row
from registry.installations.setup import compute_config_digest
from registry.models import Decision, Installation, Review, Tool, ToolState, ToolVersion, VersionState
from registry.versions.services import examine_manifest, listed_fields
from tests.support.savepoints import without_savepoints
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel.principal import Principal

REASON = "for a test"


@dataclass(frozen=True, slots=True)
class Examined:
    warnings: list[dict[str, Any]]
    build: str
    manifest_digest: str
    listed: dict[str, str]
    config_digest: str


@cache
def _examine(raw: bytes) -> Examined | None:
    """None: it has errors, or dependencies that somebody would have to build. The sample tools stay as they are while tests run."""
    document = json.loads(raw)
    findings, build = examine_manifest(document)
    if any(each.severity == "error" for each in findings) or Manifest(document).dependencies:
        return None
    manifest = Manifest(document)
    return Examined(
        [each.to_json() for each in findings],
        build,
        compute_digest(document),
        listed_fields(manifest),
        compute_config_digest({}, manifest),
    )


@without_savepoints()
def write_enabled_tool(
    document: dict[str, Any], *, developer: Principal, reviewers: Sequence[Principal], operator: Principal
) -> Tool | None:
    """The tool; None where it has to come by the whole way, because it is there already or its manifest is not plain."""
    examined = _examine(canonicalize(document))
    tenant_id = operator.tenant_id
    if examined is None or Tool.objects.filter(tenant_id=tenant_id, name=document["id"]).exists():
        return None
    needed = reviewers[: 2 if examined.listed["safety_class"] == "High" else 1]
    tool = Tool(
        tenant_id=tenant_id,
        name=document["id"],
        state=ToolState.ENABLED,
        state_reason=REASON,
        state_changed_by=operator.id,
    )
    version = ToolVersion(
        tool=tool,
        version=document["version"],
        manifest=document,
        manifest_digest=examined.manifest_digest,
        build_digest=examined.build,
        warnings=examined.warnings,
        review_state=VersionState.APPROVED,
        submitted_by=developer.id,
        **examined.listed,
    )
    tool.current = version
    installed = Installation(
        tenant_id=tenant_id,
        tool=tool,
        name=tool.name,
        version=version,
        config_digest=examined.config_digest,
        reason=REASON,
        changed_by=operator.id,
    )
    with transaction.atomic():  # the tool and its version name each other
        for row in (tool, version):
            insert_row(row)
        for reviewer in needed:
            insert_row(Review(version=version, decision=Decision.APPROVE, acknowledged=[], decided_by=reviewer.id))
        insert_row(installed)
    return tool
