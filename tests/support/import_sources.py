"""Import sources: a small document, and what a small server lists, to bring tools from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.files.uploadedfile import SimpleUploadedFile

from registry.imports import services as imports
from registry.imports import submissions
from unitools.mcp_http import MODERN
from unitools.mcp_listings import Listing

if TYPE_CHECKING:
    from kernel.principal import Principal
    from registry.imports.models import Import
    from registry.models import ToolVersion

GROUP, REMOTE_GROUP = "acme.imported", "acme.remote"
DRAFTED, REMOTE_TOOL = f"{GROUP}.getitem", f"{REMOTE_GROUP}.look"
URL = "https://mcp.example.com/mcp"


def write_document(word: str) -> bytes:
    operations = {
        name: {"operationId": name, "summary": f"{name} of {word}", "responses": {"200": {"description": "it"}}}
        for name in ("getItem", "getPrice")
    }
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": word, "version": "1"},
            "servers": [{"url": "https://shop.example.com"}],
            "paths": {f"/{name}": {"get": said} for name, said in operations.items()},
        }
    ).encode()


class DocumentUpload(SimpleUploadedFile):
    """A file that is the same as another one of its name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentUpload) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def build_upload(word: str) -> DocumentUpload:
    return DocumentUpload("document.json", write_document(word))


def list_server(description: str) -> Listing:
    entry = {"name": "look", "description": description, "inputSchema": {"type": "object", "properties": {}}}
    return Listing(MODERN, {"look": entry})


def bring_remote_tool(*, by: Principal) -> ToolVersion:
    """Its version waits for a review."""
    row = imports.import_remote_list(
        url=URL, credentials=[], group=REMOTE_GROUP, listing=list_server("Looks."), wanted=["look"], by=by
    )
    [made] = submissions.submit_import(import_id=row.pk, by=by)
    return made


ITEM = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "price": {"type": "number"}}}


def make_shop_document(**operations: Any) -> dict[str, Any]:
    """Of a shop, with two operations and what is given."""
    of_item = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shop API", "version": "1.0"},
        "servers": [{"url": "https://shop.example.com"}],
        "paths": {
            "/items/{id}": {
                "get": {
                    "operationId": "getItem",
                    "summary": "Gives an item",
                    "tags": ["items"],
                    "parameters": [of_item],
                    "responses": {"200": {"description": "it", "content": {"application/json": {"schema": ITEM}}}},
                }
            },
            "/search": {
                "post": {
                    "operationId": "searchItems",
                    "summary": "Looks for items",
                    "tags": ["search"],
                    "requestBody": {
                        "content": {
                            "application/json": {
                                "schema": {"type": "object", "properties": {"text": {"type": "string"}}}
                            }
                        }
                    },
                    "responses": {"200": {"description": "them"}},
                }
            },
        }
        | operations,
    }


def write_json(said: dict[str, Any]) -> bytes:
    return json.dumps(said).encode()


def list_tools(*names: str, description: str = "Looks.") -> Listing:
    schema = {"type": "object", "properties": {}}
    return Listing(MODERN, {each: {"name": each, "description": description, "inputSchema": schema} for each in names})


def import_list(listing: Listing, *, group: str, wanted: list[str], by: Principal) -> Import:
    return imports.import_remote_list(url=URL, credentials=[], group=group, listing=listing, wanted=wanted, by=by)


def write_operations(count: int, summary: str) -> bytes:
    of_one = {"summary": summary, "responses": {"200": {"description": "it"}}}
    return write_json(
        make_shop_document(**{f"/p{n}": {"get": of_one | {"operationId": f"op{n}"}} for n in range(count)})
    )
