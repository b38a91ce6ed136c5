"""A shop: a service of which one operation is a tool of a hub, and what the End of its call says."""

from __future__ import annotations

import json
from typing import Any

from evidence.kinds import Kind
from evidence.models import Fact
from tests.egress.world import HOST

TOOL = "service.shop.get_item"
TOKEN = "t0ken-of-the-tenant-4711"
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


def end_of(row: Any) -> dict[str, Any]:
    leaf = Fact.objects.get(invocation_id=row.pk, kind=Kind.INVOCATION_ENDED).leaf
    data: dict[str, Any] = json.loads(bytes(leaf))["data"]
    return data
