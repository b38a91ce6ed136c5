"""A shop: a service of which one operation is a tool of a hub, and what the End of its call says."""

from __future__ import annotations

import json
from typing import Any

from evidence.kinds import Kind
from evidence.models import Fact
from tests.egress.world import HOST
from unitools.openapi.files import FILE_ANSWER, FILE_ID

TOOL = "service.shop.get_item"
TOKEN = "t0ken-of-the-tenant-4711"
PDF = b"%PDF-1.7\n" + bytes(range(256))
NOTES = b"a,b\r\n1,2\r\n"
DIGEST = "sha256:" + "0" * 64
ITEM = {"item": "a b"}


def document_of(port: int, method: str = "GET", **operation: Any) -> dict[str, Any]:
    return {
        "id": TOOL,
        "version": "1.0.0",
        "display_name": "Get an item",
        "description": "Gives an item of the shop by its id.",
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["item"],
            "properties": {"item": {"type": "string"}},
        },
        "output_schema": {
            "type": "object",
            "required": ["status", "body"],
            "properties": {
                "status": {"type": "integer"},
                "body": {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}},
            },
        },
        # What changes something by the network asks for no consent by itself, so that the tests have none to give.
        "side_effect": "Read" if method == "GET" else "Network",
        "secrets": [{"name": "TOKEN", "description": "Of the shop.", "hosts": [HOST]}],
        "capabilities": {"net": [{"host": HOST, "port": port, "methods": [method]}]},
        "implementation": {
            "kind": "openapi",
            "operation": {
                "server": f"https://{HOST}:{port}/v1",
                "method": method,
                "path": "/items/{item}",
                "arguments": [{"argument": "item", "in": "path", "name": "item"}],
                "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
            }
            | operation,
        },
        "origin": {
            "document": {"title": "Shop", "version": "3", "openapi": "3.1.0", "digest": DIGEST},
            "operation": "getItem",
            "operation_digest": DIGEST,
        },
    }


def sending(port: int, **operation: Any) -> dict[str, Any]:
    """``POST /items/{item}`` as a form with files, which answers JSON or a file."""
    document = document_of(port, "POST", body={"media_type": "multipart/form-data"}, **operation)
    said = document["implementation"]["operation"]
    said["accept"] = ["application/json", "application/pdf", "text/csv"]
    said["arguments"] += [
        {"argument": "sheets", "in": "body", "name": "sheets", "file": True},
        {"argument": "about", "in": "body", "name": "about"},
    ]
    of_file = {"type": "string", "pattern": FILE_ID}
    document["input_schema"]["properties"] |= {
        "sheets": {"type": "array", "items": of_file, "maxItems": 30},
        "about": {"type": "object"},
    }
    document["output_schema"]["properties"]["body"] = {
        "anyOf": [document["output_schema"]["properties"]["body"], FILE_ANSWER, {"type": "string"}]
    }
    document["limits"] = {"artifacts": 1, "artifact_bytes": 1024 * 1024}
    return document


def end_of(row: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data
