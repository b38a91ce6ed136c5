"""Can this manifest be registered in a hub, and if not, what exactly must change?

Every finding names a JSON pointer, the rule, a sentence and a fix. Errors refuse the manifest; warnings go along to the
reviewer. Each module here answers one question; a rule is declared where it is checked, and :data:`RULES` lists them all. The hub
asks these same rules, and a few that depend on it (:mod:`registry.checks`). Pure: nothing here reads a database or a setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.checks import answers, asks, dependencies, effects, running, schemas, steering, texts
from unitools.checks.document import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    check_bounds,
    check_document,
)
from unitools.checks.findings import RULES, Finding, Rule
from unitools.checks.positions import MAX_EXPANSIONS, expansions
from unitools.checks.programs import check_program
from unitools.checks.schemas import compile_schema, message_of
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Check = Callable[[Manifest], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    schemas.check_schemas,
    schemas.check_input,
    schemas.check_config,
    effects.check_effect,
    effects.check_effect_is_the_gravest,
    effects.check_safety,
    effects.check_consent,
    effects.check_repeating,
    asks.check_capabilities,
    asks.check_least,
    asks.check_dangerous,
    asks.check_scopes,
    running.check_version,
    running.check_name,
    running.check_limits,
    running.check_isolation,
    running.check_secrets,
    dependencies.check_dependencies,
    running.check_compatibility,
    running.check_deprecations,
    check_program,
    running.check_files,
    answers.check_freshness,
    answers.check_data_classes,
    answers.check_repair,
    texts.check_characters,
    steering.check_steering,
    texts.check_credentials,
)


def findings_of(document: Any, *, also: Sequence[Check] = ()) -> list[Finding]:
    """All findings, errors first. When the size or the shape is wrong the others cannot run. ``also``: those of the hub itself."""
    found = list(check_bounds(document))
    if not found:
        found = list(check_document(document))
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
    "Finding",
    "Rule",
    "compile_schema",
    "expansions",
    "findings_of",
    "message_of",
]
