"""Manifest fields: does something act on every field of a manifest? A field that nothing reads would be a promise that nobody
keeps.
"""

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
    "id": ("registry/versions/services.py", "name=manifest.id"),
    "name": ("unitools/checks/consistency.py", "manifest.name"),
    "version": ("registry/versions/bump.py", "version"),
    "display_name": ("registry/tools/api.py", "manifest.display_name"),
    "description": ("registry/discovery/tool_specs.py", "manifest.description"),
    "call_sentence": ("invocations/approvals/consent_review.py", "manifest.call_sentence"),
    "examples": ("registry/discovery/search.py", "manifest.examples"),
    "localizations": ("registry/discovery/search.py", "manifest.localizations"),
    "tags": ("registry/versions/services.py", "manifest.tags"),
    "input_schema": ("registry/versions/compiler.py", "manifest.input_schema"),
    "output_schema": ("registry/versions/compiler.py", "manifest.output_schema"),
    "output_repair": ("invocations/end/outcomes.py", "output_repair"),
    "scopes…": ("invocations/decide/rules.py", "manifest.scopes"),
    "capabilities…": ("unitools/capabilities/algebra.py", "of_manifest"),
    "config_schema": ("registry/installations/setup.py", "config_schema"),
    "secrets…": ("registry/installations/setup.py", "secrets"),
    "data_classes": ("access/consents/api.py", "data_classes"),
    "side_effect": ("registry/versions/compiler.py", "manifest.side_effect"),
    "safety_class": ("registry/reviews/services.py", "safety_class"),
    "consent.required": ("unitools/manifest.py", "def needs_consent"),
    "consent.validity_seconds": ("registry/widest_consents.py", "consent_validity_s"),
    "consent.scope": ("registry/widest_consents.py", "consent_scope"),
    "timeout_ms": ("invocations/decide/profiles.py", "timeout_ms"),
    "limits.max_bytes_in": ("invocations/decide/input_validation.py", "max_bytes_in"),
    "limits.max_bytes_out": ("invocations/decide/profiles.py", "max_bytes_out"),
    "limits.files": ("invocations/decide/profiles.py", '"files"'),
    "limits.artifacts": ("invocations/decide/profiles.py", '"artifacts"'),
    "limits.artifact_bytes": ("invocations/decide/profiles.py", '"artifact_bytes"'),
    "limits.depth": ("invocations/decide/input_validation.py", "max_depth"),
    "limits.concurrency": ("unitools/manifest.py", "def max_concurrency"),
    "limits.memory_bytes": ("invocations/decide/profiles.py", '"memory_bytes"'),
    "limits.idle_ms": ("registry/versions/compiler.py", '"idle_ms"'),
    "state.kind": ("unitools/manifest.py", "def state"),
    "state.scope": ("invocations/tool_files/services.py", '"scope"'),
    "state.max_files": ("invocations/tool_files/services.py", '"max_files"'),
    "state.max_bytes": ("invocations/tool_files/services.py", '"max_bytes"'),
    "concurrency": ("unitools/manifest.py", "def is_serial"),
    "idempotency": ("unitools/manifest.py", "def idempotency"),
    "idempotency_keep_seconds": ("unitools/manifest.py", "def idempotency_keep_s"),
    "determinism…": ("unitools/manifest.py", "def determinism"),
    "dry_run": ("unitools/manifest.py", "def honours_dry_run"),
    "provider_compat.models": ("registry/tools/callability.py", "manifest.models"),
    "provider_compat.platform": ("registry/versions/manifest_checks.py", "manifest.platform"),
    "deprecations.pointer": ("unitools/deprecations.py", '"pointer"'),
    "deprecations.since": ("registry/tools/deprecation.py", "since"),
    "deprecations.advice": ("registry/tools/deprecation.py", "advice"),
    "deprecations.sunset": ("unitools/deprecations.py", '"sunset"'),
    "deprecations.successor": ("registry/tools/deprecation.py", "successor"),
    "implementation.module": ("unitools/packages.py", "manifest.module"),
    "implementation.entry": ("unitools/entries.py", "manifest.entry"),
    "implementation.program": ("unitools/packages.py", "manifest.program"),
    "implementation.package": ("unitools/packages.py", "manifest.package"),
    "implementation.kind": ("unitools/manifest.schema.json", '"const": "openapi"'),
    "implementation.server.script": ("sandbox/mcp_server.py", '"script"'),
    "implementation.server.module": ("sandbox/mcp_server.py", '"module"'),
    "implementation.server.arguments": ("sandbox/mcp_server.py", '"arguments"'),
    "implementation.server.environment.name": ("sandbox/server_environment.py", '"name"'),
    "implementation.server.environment.value": ("sandbox/server_environment.py", '"value"'),
    "implementation.server.environment.config": ("sandbox/server_environment.py", '"config"'),
    "implementation.server.environment.secret": ("sandbox/server_environment.py", '"secret"'),
    "implementation.server.listing": ("unitools/packages.py", "manifest.package"),
    "implementation.remote.url": ("sandbox/remote_call.py", '"url"'),
    "implementation.remote.account…": ("invocations/decide/call_accounts.py", "manifest.account"),
    "implementation.remote.credentials…": ("unitools/manifest.py", "def gate_credentials"),
    "implementation.remote.listing": ("sandbox/remote_call.py", '"listing"'),
    "implementation.operation.server": ("unitools/checks/operations.py", '"server"'),
    "implementation.operation.method": ("unitools/openapi/requests.py", '"method"'),
    "implementation.operation.path": ("unitools/openapi/requests.py", '"path"'),
    "implementation.operation.arguments.argument": ("unitools/openapi/requests.py", '"argument"'),
    "implementation.operation.arguments.in": ("unitools/openapi/requests.py", '"in"'),
    "implementation.operation.arguments.name": ("unitools/openapi/requests.py", '"name"'),
    "implementation.operation.arguments.style": ("unitools/openapi/requests.py", '"style"'),
    "implementation.operation.arguments.explode": ("unitools/openapi/requests.py", '"explode"'),
    "implementation.operation.arguments.as_json": ("unitools/openapi/requests.py", '"as_json"'),
    "implementation.operation.arguments.file": ("unitools/openapi/request_bodies.py", 'said.get("file")'),
    "implementation.operation.arguments.media_types": ("unitools/openapi/request_bodies.py", 'said.get("media_types"'),
    "implementation.operation.arguments.header": ("unitools/openapi/request_bodies.py", 'said["header"]'),
    "implementation.operation.body.media_type": ("unitools/openapi/request_bodies.py", '"media_type"'),
    "implementation.operation.body.file": ("unitools/openapi/request_bodies.py", 'body.get("file")'),
    "implementation.operation.body.media_types": ("unitools/openapi/request_bodies.py", 'body.get("media_types")'),
    "implementation.operation.body.argument": ("unitools/openapi/requests.py", '"argument"'),
    "implementation.operation.body.required": ("unitools/openapi/request_bodies.py", 'body.get("required"'),
    "implementation.operation.account.scopes": ("unitools/manifest.py", "def account"),
    "implementation.operation.account.openid_url": ("access/server_accounts/discovery.py", '"openid_url"'),
    "implementation.operation.account.authorization_url": (
        "access/server_accounts/discovery.py",
        '"authorization_url"',
    ),
    "implementation.operation.account.token_url": ("access/server_accounts/discovery.py", '"token_url"'),
    "implementation.operation.credentials…": ("unitools/checks/operations.py", '"credentials"'),
    "implementation.operation.accept": ("unitools/openapi/requests.py", '"accept"'),
    "implementation.operation.idempotency_header": ("unitools/openapi/requests.py", '"idempotency_header"'),
    "implementation.operation.strict": ("unitools/manifest.py", "def operation"),
    "implementation.image": ("registry/versions/services.py", "manifest.image"),
    "origin.package": ("unitools/checks/origins.py", '"package"'),
    "origin.version": ("unitools/checks/origins.py", '"version"'),
    "origin.tool": ("unitools/manifest.py", "def server_request"),
    "origin.result": ("unitools/manifest.py", "def server_request"),
    "origin.entry_digest": ("unitools/packages.py", '"entry_digest"'),
    "origin.listing_digest": ("unitools/packages.py", '"listing_digest"'),
    "origin.protocol": ("unitools/packages.py", '"protocol"'),
    "origin.url": ("unitools/checks/remotes.py", '"url"'),
    "origin.document…": ("unitools/changes/origin_changes.py", '"document"'),
    "origin.operation": ("unitools/changes/origin_changes.py", '"operation"'),
    "origin.operation_digest": ("unitools/changes/origin_changes.py", '"operation_digest"'),
    "origin.object…": ("unitools/checks/origins.py", '"object"'),
    "origin.object_digest": ("invocations/run/object_probe.py", '"object_digest"'),
    "model…": ("unitools/manifest.py", "def model"),
    "requires_sandbox": ("registry/tools/lifecycle.py", "requires_sandbox"),
    "isolation": ("registry/versions/compiler.py", "manifest.isolation"),
    "isolate_by": ("unitools/manifest.py", "def isolated_by_agent"),
    "dependencies": ("unitools/checks/dependencies.py", "dependencies"),
    "dependency_constraints": ("registry/dependencies/builder.py", "dependency_constraints"),
    "dependency_lock": ("unitools/checks/dependencies.py", "dependency_lock"),
    "quotes": ("unitools/checks/outputs.py", "quotes"),
    "ttl_seconds": ("invocations/end/outcomes.py", "ttl_seconds"),
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
