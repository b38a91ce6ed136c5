"""Changes: what changed between two manifests of a tool, and whether their version numbers say so.

::

    base = predecessor([each.version for each in existing], document["version"])      # unitools.semver; None: nothing to compare
    changes = changes_between(base_manifest, document)
    wrong = offending(base, document["version"], changes)                             # refuse when there are any, naming each
    ToolVersion(base=…, changes=[change.to_json() for change in changes], …)          # for the review page

Both manifests should have passed the registry's checks, but whatever is compared, nothing is overlooked: each field that differs
gives at least one :class:`ManifestChange`, and what cannot be judged counts as breaking. A reviewer acknowledges changes by ``id``;
which must be is said by :func:`find_acknowledgement_reason`.

The schemas are compared by :mod:`unitools.compatibility` (``input_schema`` and ``config_schema`` as inputs, ``output_schema`` as
output), everything else by :mod:`unitools.changes.fields`; :data:`KINDS` says what each kind of change needs.

Rules for the numbers (TOOLS-9): a breaking change needs a new MAJOR, one that callers must be told of a new MINOR, texts and
code a new PATCH. While MAJOR is 0 a new MINOR may break, as SemVer 2.0.0 has it; a PATCH may not, there either. From a prerelease to
another version of the same triple everything is allowed that the triple allows: 2.0.0-rc.1 may break what 1.9.0 promised.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from unitools.changes.acknowledgements import find_acknowledgement_reason, find_worst_risk, is_breaking
from unitools.changes.fields import FIELDS, compare_consent_need
from unitools.changes.kinds import BUMPS, KINDS, RISKS, ChangeKind, ManifestChange, make_change
from unitools.compatibility import SCHEMA_KINDS, Direction, SchemaChange, SchemaEffect, compare_schemas
from unitools.manifest import manifest_schema
from unitools.semver import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "BUMPS",
    "KINDS",
    "RISKS",
    "ManifestChange",
    "compare_manifests",
    "compute_given_bump",
    "compute_needed_bump",
    "find_acknowledgement_reason",
    "find_offending_changes",
    "find_worst_risk",
    "is_breaking",
]

SCHEMAS: dict[str, tuple[str, str, Direction]] = {
    "input_schema": ("input", "Input", "input"),
    "output_schema": ("output", "Output", "output"),
    "config_schema": ("config_schema", "Configuration", "input"),
}
NOTHING_TO_SET = {"type": "object", "additionalProperties": False}
CONSENT_BY_EFFECT = ("Write", "Process")
CONSEQUENCE: dict[tuple[str, SchemaEffect], str] = {
    ("input", SchemaEffect.WIDENED): "What was accepted still is.",
    ("input", SchemaEffect.NARROWED): "What was accepted can be refused now.",
    ("input", SchemaEffect.UNCLEAR): "It cannot be shown that what was accepted still is.",
    ("output", SchemaEffect.WIDENED): "Callers can get what they were never told of.",
    ("output", SchemaEffect.NARROWED): "What is returned keeps to what was promised.",
    ("output", SchemaEffect.UNCLEAR): "It cannot be shown that what is returned keeps to what was promised.",
}


def compare_manifests(old: dict[str, Any], new: dict[str, Any]) -> list[ManifestChange]:
    """Every difference but the version's, the gravest first."""
    found: dict[str, ManifestChange] = {}
    for change in _changes(old, new):
        known = found.get(change.id)
        if known is None or _rank(change) < _rank(known):
            found[change.id] = change
    return sorted(found.values(), key=_rank)


def compute_needed_bump(changes: Iterable[ManifestChange]) -> str:
    """``none``, ``patch``, ``minor`` or ``major``."""
    return max((change.bump for change in changes), key=BUMPS.index, default="none")


def compute_given_bump(old_version: str, new_version: str) -> str:
    """The gravest change that the numbers allow; ``none`` when the version is not newer."""
    old, new = Version.parse(old_version), Version.parse(new_version)
    if new <= old:
        return "none"
    if new.major > old.major:
        return "major"
    if new.minor > old.minor:
        raised = "minor"
    elif new.patch > old.patch:
        raised = "patch"
    else:  # from a prerelease
        raised = "patch" if new.patch else "minor" if new.minor else "major"
    return "major" if raised == "minor" and new.major == 0 else raised


def find_offending_changes(
    old_version: str, new_version: str, changes: Iterable[ManifestChange]
) -> list[ManifestChange]:
    """The changes that the version numbers do not allow; for a version that is not newer, that as well.

    ``ValueError`` with a sentence when one is no version.
    """
    given = compute_given_bump(old_version, new_version)
    wrong = [change for change in changes if BUMPS.index(change.bump) > BUMPS.index(given)]
    if given == "none":
        wrong.insert(0, make_change("version.not_increased", "/version", old_version, new_version))
    return wrong


def _rank(change: ManifestChange) -> tuple[int, int, str, str]:
    return -BUMPS.index(change.bump), -RISKS.index(change.risk), change.pointer, change.kind


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[ManifestChange]:
    need = list(compare_consent_need(was=_needs_consent(old), is_now=_needs_consent(new)))
    yield from need
    for name in dict.fromkeys((*new, *old)):
        if name == "version" or (name in old and name in new and _written(old[name]) == _written(new[name])):
            continue
        changes = list(_schema(name, old, new) if name in SCHEMAS else _field(name, old, new))
        if not changes and not (name == "consent" and need):
            changes = [make_change("field.rewritten", f"/{name}", old.get(name), new.get(name))]
        yield from changes


def _field(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[ManifestChange]:
    before, after = (side.get(name, _default(name)) for side in (old, new))
    field = FIELDS.get(name)
    if field is None or not (field.has_form(before) and field.has_form(after)):
        yield make_change("field.changed", f"/{name}", old.get(name), new.get(name))
    elif before != after:
        yield from field.judge(_whole(name, before), _whole(name, after))


def _default(name: str) -> Any:
    return manifest_schema()["properties"].get(name, {}).get("default")


def _whole(name: str, value: Any) -> Any:
    """An object of the manifest with its defaults filled in."""
    if not isinstance(value, dict):
        return value
    parts = manifest_schema()["properties"].get(name, {}).get("properties", {})
    return {word: part["default"] for word, part in parts.items() if "default" in part} | value


def _needs_consent(manifest: dict[str, Any]) -> bool:
    consent = manifest.get("consent")
    return (
        (bool(consent.get("required")) if isinstance(consent, dict) else False)
        or manifest.get("safety_class") == "High"
        or manifest.get("side_effect") in CONSENT_BY_EFFECT
    )


# Schemas.


def _schema(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[ManifestChange]:
    prefix, label, direction = SCHEMAS[name]
    missing: Any = NOTHING_TO_SET if name == "config_schema" else None
    for change in compare_schemas(old.get(name, missing), new.get(name, missing)):
        known = ChangeKind(change.bump(direction), _risk(change, name), _sentence(change, label, direction))
        yield make_change(
            f"{prefix}.{change.kind}", f"/{name}{change.pointer}", change.before, change.after, known=known
        )


def _risk(change: SchemaChange, name: str) -> str:
    """Models read the input schema. What cannot be compared needs a person's eye."""
    if change.kind == "cannot_be_compared":
        return "high"
    if change.effect in (SchemaEffect.TEXT, SchemaEffect.NOTE):
        return "medium" if name == "input_schema" else "low"
    return "medium" if change.bump(SCHEMAS[name][2]) == "major" else "low"


def _sentence(change: SchemaChange, label: str, direction: Direction) -> str:
    text = SCHEMA_KINDS[change.kind].format(before=change.before, after=change.after)
    place = f" at {change.pointer}" if change.pointer else ""
    consequence = CONSEQUENCE.get((direction, change.effect), "")
    return f"{label}{place}: {text}. {consequence}".strip()
