"""Version compiler: what is known of a version before anybody calls it.

A version never changes, so what its manifest means is worked out once a process and kept by its id: schemas compiled, the
capabilities it asks for in normal form, the values that policies and grants ask about.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from registry.models import ToolVersion
from unitools.capabilities import Capabilities
from unitools.checks import compile_schema
from unitools.expressions import Subject, build_subject
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from uuid import UUID

    import jsonschema_rs


MAX_VERSIONS = 2048


@dataclass(frozen=True, slots=True)
class CompiledVersion:
    """``subject``: how expressions see the tool. ``asks``: its capabilities, secrets and limits in normal form."""

    id: UUID
    manifest: Manifest
    input_validator: jsonschema_rs.Validator
    output_validator: jsonschema_rs.Validator
    subject: Subject
    asks: Capabilities
    attributes: dict[str, Any]  # what policies may ask about the tool itself
    max_bytes_in: int
    max_depth: int  # of the arguments
    isolation: str  # the weakest that it accepts; empty: any
    idle_ms: int  # the longest silence of a run; 0: any
    needs_consent: bool
    required_secrets: tuple[str, ...]


_compiled: OrderedDict[UUID, CompiledVersion] = OrderedDict()
_lock = Lock()


def compiled_version(version_id: UUID) -> CompiledVersion:
    """Of any version that exists; ``ToolVersion.DoesNotExist`` otherwise."""
    found = _compiled.get(version_id)
    if found is None:
        found = _compile(
            version_id, Manifest(ToolVersion.objects.values_list("manifest", flat=True).get(pk=version_id))
        )
        with _lock:
            while len(_compiled) >= MAX_VERSIONS:
                _compiled.popitem(last=False)
            _compiled[version_id] = found
    return found


def _compile(version_id: UUID, manifest: Manifest) -> CompiledVersion:
    return CompiledVersion(
        id=version_id,
        manifest=manifest,
        input_validator=compile_schema(manifest.input_schema),
        output_validator=compile_schema(manifest.output_schema),
        subject=build_subject(manifest),
        asks=Capabilities.of_manifest(manifest),
        attributes={
            "tool": manifest.id,
            "group": manifest.id.partition(".")[0],
            "tool_major": manifest.major,
            "tags": sorted(manifest.tags),
            "side_effect": manifest.side_effect,
            "safety_class": manifest.safety_class,
            "domains": sorted(manifest.domains),
        },
        max_bytes_in=manifest.limit("max_bytes_in"),
        max_depth=manifest.limit("depth"),
        isolation=manifest.isolation,
        idle_ms=manifest.limit("idle_ms"),
        needs_consent=manifest.needs_consent,
        required_secrets=tuple(secret["name"] for secret in manifest.secrets if secret["required"]),
    )
