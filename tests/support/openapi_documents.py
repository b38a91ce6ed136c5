"""OpenAPI documents of a small service, made as a test needs."""

from __future__ import annotations

import json
from typing import Any

from unitools.brought_operations import make_manifest
from unitools.openapi.documents import DocumentDiagnostic, OpenApiDocument, read_document
from unitools.openapi.operations import Choices

SERVER = "https://api.example.org/v1"
OK = {"200": {"description": "Good.", "content": {"application/json": {"schema": {"type": "object"}}}}}
BYTES = {"type": "string", "format": "binary"}
MULTIPART = "multipart/form-data"


def service(paths: dict[str, Any], *, openapi: str = "3.0.3", **more: Any) -> dict[str, Any]:
    return {
        "openapi": openapi,
        "info": {"title": "Shop API", "version": "7"},
        "servers": [{"url": SERVER}],
        "paths": paths,
    } | more


def read(said: dict[str, Any]) -> OpenApiDocument:
    return read_document(json.dumps(said).encode())


def of_schemas(
    schemas: dict[str, Any], *, openapi: str = "3.0.3", body: Any = None, answer: Any = None
) -> dict[str, Any]:
    """``POST /items`` that takes and answers these; as references to ``#/components/schemas`` or written out."""
    operation: dict[str, Any] = {"operationId": "make", "responses": OK}
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    if answer is not None:
        operation["responses"] = {"200": {"description": "", "content": {"application/json": {"schema": answer}}}}
    return service({"/items": {"post": operation}}, openapi=openapi, components={"schemas": schemas})


def of_parameters(
    *parameters: dict[str, Any], path: str = "/items", method: str = "get", **more: Any
) -> dict[str, Any]:
    return service({path: {method: {"operationId": "look", "parameters": list(parameters), "responses": OK} | more}})


def make(said: dict[str, Any], name: str = "", **choices: Any) -> tuple[dict[str, Any], list[DocumentDiagnostic]]:
    """The manifest of an operation (the only one, where none is named), and the diagnostics."""
    document = read(said)
    entry = document.operations[name] if name else next(iter(document.operations.values()))
    return make_manifest(document, entry, "service.shop.look", Choices(**choices))


def parameter(name: str = "page", place: str = "query", **more: Any) -> dict[str, Any]:
    return (
        {"name": name, "in": place, "schema": {"type": "string"}}
        | ({"required": True} if place == "path" else {})
        | more
    )


def body_of(said: dict[str, Any], *, openapi: str = "3.0.3", **schemas: Any) -> dict[str, Any]:
    """The property ``v`` of a body, as the input schema has it, with the definitions."""
    made, _ = make(of_schemas(schemas, openapi=openapi, body={"type": "object", "properties": {"v": said}}))
    return dict(made["input_schema"]["properties"]["v"])


def notes_of(said: dict[str, Any], **choices: Any) -> str:
    return " ".join(each.message for each in make(said, **choices)[1])


def sending(content: dict[str, Any], *, openapi: str = "3.0.3", required: bool = True) -> dict[str, Any]:
    body = {"required": required, "content": content}
    return of_parameters(method="post", requestBody=body) | {"openapi": openapi}


def form(properties: dict[str, Any], encoding: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties} | more
    return {MULTIPART: {"schema": schema} | ({"encoding": encoding} if encoding else {})}


def operation_of(made: dict[str, Any]) -> dict[str, Any]:
    return dict(made["implementation"]["operation"])
