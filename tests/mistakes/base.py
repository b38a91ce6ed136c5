"""Base: what is an example of a rule about manifests, and which pieces are the examples made of?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Changes = dict[str, Any]
OBJECT: dict[str, Any] = {"type": "object"}
PLAIN: dict[str, Any] = {"host": "api.example.org", "scheme": "http", "methods": ["GET"]}
READ = {"side_effect": "Read"}
NET: Changes = {"side_effect": "Network", "capabilities": {"net": [{"host": "api.example.org"}]}}
WRITE: Changes = {"side_effect": "Write", "idempotency": "keyed", "safety_class": "Medium"}
PROGRAM: Changes = {"implementation": {"program": ["/usr/bin/node", "main.js"], "package": "sample", "image": "node"}}
BROWSER: Changes = {"side_effect": "Browser", "capabilities": {"browser": True, "net": [{"host": "api.example.org"}]}}
KEY = {"name": "API_KEY", "description": "The key of the service."}


@dataclass(frozen=True, slots=True)
class Mistake:
    """``wrong`` and ``right`` are changes to the sample manifest (``tests/support/manifests.py``): broken, and mended."""

    what: str
    wrong: Changes
    pointer: str
    right: Changes = field(default_factory=dict)


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """Each definition refers twice to the next."""
    definitions: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}


def taking(**properties: Any) -> dict[str, Any]:
    return {"input_schema": {"type": "object", "properties": properties}}


def giving(schema: Any) -> dict[str, Any]:
    return {"output_schema": schema}


def files(path: str, *actions: str, **more: Any) -> dict[str, Any]:
    return {"side_effect": "Filesystem", "capabilities": {"fs": [{"path": path, "actions": list(actions), **more}]}}


def said(text: str) -> dict[str, Any]:
    return {"description": text}
