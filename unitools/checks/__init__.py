"""Checks: whether a manifest can be registered in a hub, and if not, what exactly must change.

Every finding names a JSON pointer, the rule, a sentence and a fix. Errors refuse the manifest; warnings go along to the
reviewer. Each module here answers one question; a rule is declared where it is checked, and :data:`RULES` lists them all. The hub
asks these same rules, and a few that depend on it (:mod:`registry.versions.manifest_checks`). Pure: nothing here reads a
database or a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.checks import (
    consistency,
    dependencies,
    outputs,
    prompt_injection,
    requested_capabilities,
    schemas,
    side_effects,
    texts,
)
from unitools.checks.call_sentences import check_call_sentence
from unitools.checks.document import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    check_bounds,
    check_document,
)
from unitools.checks.findings import RULES, ManifestFinding, ManifestRule
from unitools.checks.kept_files import check_state
from unitools.checks.models import check_is_no_model
from unitools.checks.operations import check_operation
from unitools.checks.origins import check_origin, find_entry_differences
from unitools.checks.programs import check_program
from unitools.checks.remotes import check_remote
from unitools.checks.schema_walk import MAX_EXPANSIONS, count_expansions
from unitools.checks.schemas import compile_schema, describe_violation
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Check = Callable[[Manifest], Iterator[ManifestFinding]]

CHECKS: tuple[Check, ...] = (
    schemas.check_schemas,
    schemas.check_input,
    schemas.check_config,
    check_call_sentence,
    side_effects.check_effect,
    side_effects.check_effect_is_the_gravest,
    side_effects.check_safety,
    side_effects.check_consent,
    side_effects.check_repeating,
    requested_capabilities.check_capabilities,
    requested_capabilities.check_least,
    requested_capabilities.check_dangerous,
    requested_capabilities.check_scopes,
    consistency.check_version,
    consistency.check_name,
    consistency.check_limits,
    consistency.check_isolation,
    consistency.check_secrets,
    dependencies.check_dependencies,
    consistency.check_compatibility,
    consistency.check_deprecations,
    check_program,
    check_origin,
    check_operation,
    check_remote,
    consistency.check_files,
    check_state,
    outputs.check_freshness,
    outputs.check_data_classes,
    outputs.check_repair,
    texts.check_characters,
    prompt_injection.check_prompt_injection,
    texts.check_credentials,
)


def check_manifest(document: Any, *, also: Sequence[Check] = ()) -> list[ManifestFinding]:
    """All findings, errors first. When the size or the shape is wrong the others cannot run. ``also``: those of the hub itself."""
    found = list(check_bounds(document)) or list(check_is_no_model(document)) or list(check_document(document))
    if not found:
        manifest = Manifest(document)
        found = [finding for check in (*CHECKS, *also) for finding in check(manifest)]
    return sorted(found, key=lambda finding: (finding.severity, finding.pointer))


__all__ = [
    "CHECKS",
    "MAX_EXPANSIONS",
    "MAX_SCHEMA_BYTES",
    "MAX_SCHEMA_DEPTH",
    "MAX_SCHEMA_NODES",
    "RULES",
    "ManifestFinding",
    "ManifestRule",
    "check_manifest",
    "compile_schema",
    "count_expansions",
    "describe_violation",
    "find_entry_differences",
]
