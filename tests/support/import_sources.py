"""Import sources: a small document, and what a small server lists, to bring tools from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.files.uploadedfile import SimpleUploadedFile

from registry.imports import services as imports
from registry.imports import submissions
from unitools.mcp_http import MODERN
from unitools.mcp_listings import Listing

if TYPE_CHECKING:
    from kernel.principal import Principal
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
