"""Manifests of the sample tools (tests/tools/sample), made small and changed as a test needs."""

from __future__ import annotations

from typing import Any


def manifest(name: str = "echo", /, **changes: Any) -> dict[str, Any]:
    """A valid manifest of ``sample.tools.<name>``, version 1.0.0. ``changes`` replace top-level fields; None removes one."""
    document: dict[str, Any] = {
        "id": f"sample.tools.{name}",
        "version": "1.0.0",
        "display_name": name.replace("_", " ").capitalize(),
        "description": f"The sample tool {name}.",
        "tags": ["sample"],
        "input_schema": {
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 200}},
            "additionalProperties": True,
        },
        "output_schema": {"type": "object"},
        "side_effect": "None",
        "implementation": {"module": "sample.tools", "entry": name},
        "timeout_ms": 5000,
    }
    document |= changes
    return {field: value for field, value in document.items() if value is not None}
