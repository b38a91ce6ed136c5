"""Can this manifest be registered, and if not, what exactly must change?

Every finding names a JSON pointer, the rule, a sentence and a fix. Errors refuse the manifest; warnings go along to the
reviewer. Each module here answers one question; a rule is declared where it is checked, and :data:`RULES` lists them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.checks import answers, asks, dependencies, effects, running, schemas, steering, texts
from registry.checks.document import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_SCHEMA_NODES,
    check_bounds,
    check_document,
)
from registry.checks.findings import RULES, Finding, Rule
from registry.checks.positions import MAX_EXPANSIONS, expansions
from registry.checks.programs import check_program
from registry.checks.schemas import compile_schema, message_of
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKS: tuple[Callable[[Manifest], Iterator[Finding]], ...] = (
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


def findings_of(document: Any) -> list[Finding]:
    """All findings, errors first. When the size or the shape is wrong the other checks cannot run."""
    found = list(check_bounds(document))
    if not found:
        found = list(check_document(document))
    if not found:
        manifest = Manifest(document)
        found = [finding for check in CHECKS for finding in check(manifest)]
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
