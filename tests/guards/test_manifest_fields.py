"""Does something act on every field of a manifest? A field that nothing reads would be a promise that nobody keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# Field -> the file that acts on it, and what it reads there. "…" at the end: with everything below.
ACTS = {
    "manifest_version": ("unitools/manifest.schema.json", '"const": 1'),
    "id": ("registry/services.py", "name=manifest.id"),
    "name": ("unitools/checks/running.py", "manifest.name"),
    "version": ("registry/gate.py", "version"),
    "display_name": ("registry/api.py", "manifest.display_name"),
    "description": ("registry/showing_to_models.py", "manifest.description"),
    "tags": ("registry/services.py", "manifest.tags"),
    "input_schema": ("registry/compiled.py", "manifest.input_schema"),
    "output_schema": ("registry/compiled.py", "manifest.output_schema"),
    "output_repair": ("invocations/outcomes.py", "output_repair"),
    "scopes…": ("registry/compiled.py", "manifest.scopes"),
    "capabilities…": ("unitools/capabilities/algebra.py", "of_manifest"),
    "config_schema": ("registry/setup.py", "config_schema"),
    "secrets…": ("registry/setup.py", "secrets"),
    "data_classes": ("registry/consents_api.py", "data_classes"),
    "side_effect": ("registry/compiled.py", "manifest.side_effect"),
    "safety_class": ("registry/reviews.py", "safety_class"),
    "consent.required": ("unitools/manifest.py", "def needs_consent"),
    "consent.validity_seconds": ("registry/consents_api.py", "consent_validity_s"),
    "consent.scope": ("registry/consents_api.py", "consent_scope"),
    "timeout_ms": ("invocations/profiles.py", "timeout_ms"),
    "limits.max_bytes_in": ("invocations/inputs.py", "max_bytes_in"),
    "limits.max_bytes_out": ("invocations/profiles.py", "max_bytes_out"),
    "limits.files": ("invocations/profiles.py", '"files"'),
    "limits.artifacts": ("invocations/profiles.py", '"artifacts"'),
    "limits.artifact_bytes": ("invocations/profiles.py", '"artifact_bytes"'),
    "limits.depth": ("invocations/inputs.py", "max_depth"),
    "limits.concurrency": ("unitools/manifest.py", "def max_concurrency"),
    "limits.memory_bytes": ("invocations/profiles.py", '"memory_bytes"'),
    "limits.idle_ms": ("registry/compiled.py", '"idle_ms"'),
    "concurrency": ("unitools/manifest.py", "def is_serial"),
    "idempotency": ("unitools/manifest.py", "def idempotency"),
    "idempotency_keep_seconds": ("unitools/manifest.py", "def idempotency_keep_s"),
    "determinism…": ("unitools/manifest.py", "def determinism"),
    "dry_run": ("unitools/manifest.py", "def honours_dry_run"),
    "provider_compat.models": ("registry/callability.py", "manifest.models"),
    "provider_compat.platform": ("registry/checks.py", "manifest.platform"),
    "deprecations.pointer": ("unitools/deprecations.py", '"pointer"'),
    "deprecations.since": ("registry/deprecation.py", "since"),
    "deprecations.advice": ("registry/deprecation.py", "advice"),
    "deprecations.sunset": ("unitools/deprecations.py", '"sunset"'),
    "deprecations.successor": ("registry/deprecation.py", "successor"),
    "implementation.module": ("unitools/packages.py", "manifest.module"),
    "implementation.entry": ("unitools/entries.py", "manifest.entry"),
    "implementation.program": ("unitools/packages.py", "manifest.program"),
    "implementation.package": ("unitools/packages.py", "manifest.package"),
    "implementation.image": ("registry/services.py", "manifest.image"),
    "requires_sandbox": ("registry/lifecycle.py", "requires_sandbox"),
    "isolation": ("registry/compiled.py", "manifest.isolation"),
    "isolate_by": ("unitools/manifest.py", "def isolated_by_agent"),
    "dependencies": ("unitools/checks/dependencies.py", "dependencies"),
    "dependency_lock": ("unitools/checks/dependencies.py", "dependency_lock"),
    "quotes": ("unitools/checks/answers.py", "quotes"),
    "ttl_seconds": ("invocations/outcomes.py", "ttl_seconds"),
    "async": ("unitools/manifest.py", "def is_async"),
}


def fields(schema: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, each in schema["properties"].items():
        path, inner = f"{above}{name}", each.get("items") or each
        if isinstance(inner, dict) and "properties" in inner and f"{path}…" not in ACTS:
            yield from fields(inner, f"{path}.")
        else:
            yield f"{path}…" if f"{path}…" in ACTS else path


@pytest.mark.req("TOOLS-2", "TOOLS-6")
def test_something_acts_on_every_field_of_a_manifest() -> None:
    assert set(fields(manifest_schema())) == set(ACTS)


def test_what_acts_on_a_field_reads_it() -> None:
    assert {field: file for field, (file, said) in ACTS.items() if said not in (ROOT / file).read_text()} == {}


def test_what_only_reads_a_field_is_asked_for_it() -> None:
    """A property of ``Manifest`` that nobody asks for would act on nothing."""
    asked = {said.removeprefix("def ") for file, said in ACTS.values() if file == "unitools/manifest.py"}
    sources = [
        path.read_text()
        for folder in ("access", "invocations", "registry", "sandbox", "unitools")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "manifest.py" and "migrations" not in path.parts
    ]

    assert {name for name in asked if not any(f".{name}" in source for source in sources)} == set()
