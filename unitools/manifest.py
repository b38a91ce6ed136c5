"""What does a manifest say, as typed values?

The document itself is described by ``manifest.schema.json``, a JSON Schema 2020-12 that is published. :class:`Manifest` is
a view of a document that is valid against it, with the defaults filled in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

SCHEMA_PATH = Path(__file__).with_name("manifest.schema.json")


@lru_cache(maxsize=1)
def manifest_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(SCHEMA_PATH.read_text())
    return schema


@dataclass(frozen=True, slots=True)
class Manifest:
    """A valid manifest document. ``document`` is what was submitted; nothing is added to it."""

    document: dict[str, Any]

    def _get(self, name: str) -> Any:
        return self.document.get(name, manifest_schema()["properties"][name].get("default"))

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def version(self) -> str:
        return str(self.document["version"])

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def display_name(self) -> str:
        return str(self.document["display_name"])

    @property
    def description(self) -> str:
        return str(self.document["description"])

    @property
    def tags(self) -> list[str]:
        return list(self._get("tags"))

    @property
    def input_schema(self) -> dict[str, Any]:
        return dict(self.document["input_schema"])

    @property
    def output_schema(self) -> dict[str, Any]:
        return dict(self.document["output_schema"])

    @property
    def capabilities(self) -> dict[str, Any]:
        return dict(self._get("capabilities"))

    @property
    def side_effect(self) -> str:
        return str(self.document["side_effect"])

    @property
    def safety_class(self) -> str:
        return str(self._get("safety_class"))

    @property
    def timeout_ms(self) -> int:
        return int(self._get("timeout_ms"))

    @property
    def is_async(self) -> bool:
        return bool(self._get("async"))

    @property
    def idempotency(self) -> str:
        return str(self._get("idempotency"))

    @property
    def ttl_seconds(self) -> int | None:
        value = self.document.get("ttl_seconds")
        return None if value is None else int(value)

    @property
    def module(self) -> str:
        return str(self.document["implementation"]["module"])

    @property
    def entry(self) -> str:
        default = manifest_schema()["properties"]["implementation"]["properties"]["entry"]["default"]
        return str(self.document["implementation"].get("entry", default))

    @property
    def dependencies(self) -> list[str]:
        return list(self._get("dependencies"))

    def limit(self, name: str) -> int:
        """A limit in its unit (bytes, count, levels), or its default."""
        default = manifest_schema()["properties"]["limits"]["properties"][name].get("default")
        return int(self._get("limits").get(name, default))

    @property
    def consent_validity_s(self) -> int:
        default = manifest_schema()["properties"]["consent"]["properties"]["validity_seconds"]["default"]
        return int(self._get("consent").get("validity_seconds", default))

    @property
    def needs_consent(self) -> bool:
        """TOOLS-19: High, Write and Process need one whatever the manifest says."""
        return (
            bool(self._get("consent").get("required", False))
            or self.safety_class == "High"
            or self.side_effect in ("Write", "Process")
        )
