"""Interface: what can be asked of the REST API, and with which scope."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.urls import get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from toolhub.management.reference.markdown import format_code, format_page, format_table

if TYPE_CHECKING:
    from collections.abc import Iterator


@lru_cache(maxsize=1)
def _document() -> dict[str, Any]:
    with GENERATOR_STATS.silence():
        document = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return json.loads(json.dumps(document))  # type: ignore[no-any-return] # lazy texts become plain ones


def openapi_document() -> str:
    return json.dumps(_document(), indent=2, ensure_ascii=False) + "\n"


def _credentials() -> dict[tuple[str, str], str]:
    """(method, path) to the scope that its view names, and the permission where people ask by their session."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    generator._initialise_endpoints()  # type: ignore[no-untyped-call]
    found = {}
    for path, _, method, view in generator._get_paths_and_endpoints():  # type: ignore[no-untyped-call]
        scope, permission = (
            said.get(method) if isinstance(said := getattr(view, name, ""), dict) else said
            for name in ("required_scope", "required_permission")
        )
        words = [f"Scope: {format_code(scope) or 'none'}"] if scope is not None else ["For people only"]
        found[method, path] = ". ".join(
            [*words, *([f"Permission of people: {format_code(permission)}"] if permission else [])]
        )
    return found


def _body(operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    if not name:
        return "Body: a JSON document." if content else ""
    if forms := schemas[name].get("oneOf"):
        tables = (_fields(schemas[each["$ref"].rpartition("/")[2]], schemas) for each in forms)
        return "\n\n".join(("Body: one of these forms.", *tables))
    return _fields(schemas[name], schemas)


def _fields(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    rows = []
    for field, node in schema["properties"].items():
        needed = "yes" if field in schema.get("required", []) else ""
        inner = (node.get("$ref") or next(iter(node.get("allOf", [{}]))).get("$ref", "")).rpartition("/")[2]
        kind = ", ".join(schemas[inner].get("properties", {})) if inner else node.get("type", "JSON")
        rows.append(
            (
                format_code(field),
                f"object: {kind}" if inner else kind,
                needed,
                format_code(node.get("default")),
                node.get("description", ""),
            )
        )
    return format_table(("field", "type", "required", "default", "meaning"), rows)


def _open_endpoints(documented: set[str]) -> Iterator[tuple[str, str]]:
    """Endpoints outside the OpenAPI document: plain views that ask for no key."""
    for pattern in get_resolver().url_patterns:
        inner = getattr(pattern, "url_patterns", None)
        for each in inner if inner is not None and str(pattern.pattern) == "api/v1/" else []:
            path = "/api/v1/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(each.pattern))
            if path not in documented:
                yield path, (each.callback.__doc__ or "").strip().partition("\n")[0]


def api_page() -> str:
    document, credentials = _document(), _credentials()
    schemas = document["components"]["schemas"]
    parts = []
    for path, item in sorted(document["paths"].items()):
        for method, operation in item.items():
            asked = [each for each in operation.get("parameters", []) if each.get("in", "path") != "path"]
            parts.append(f"### {method.upper()} {path}")
            credential = credentials.get((method.upper(), path), "Scope: none")
            parts.append(
                f"{operation.get('description', '').strip()}\n\n{credential}. "
                f"Answers: {', '.join(sorted(operation['responses']))}. Operation: {format_code(operation['operationId'])}."
            )
            if asked:
                rows = [(format_code(each["name"]), each["in"], each.get("description", "")) for each in asked]
                parts.append(format_table(("parameter", "in", "meaning"), rows))
            if body := _body(operation, schemas):
                parts.append(body)
    plain = {"/api/v1/errors": "The problem catalogue.", "/api/v1/openapi.json": "The OpenAPI document."}
    endpoints = [
        (format_code("GET " + path), plain.get(path, text))
        for path, text in sorted(_open_endpoints(set(document["paths"])))
    ]
    endpoints += [
        ("`GET /healthz`", "200 while the process lives."),
        ("`GET /readyz`", "200 when calls can be accepted; 503 names the part that cannot."),
    ]
    return format_page(
        "REST API",
        "the OpenAPI document and the views",
        "The document itself is [openapi.json](openapi.json); a running hub serves it at `/api/v1/openapi.json` and shows it at "
        "`/docs/api`. Agents send `Authorization: Bearer hub_…`; where people may ask, they do with the session of the console, and "
        "with `X-CSRFToken` for what changes something. Every answer is an envelope: `ok`, `data`, `warnings`, "
        "`error`, `ttl_seconds`, `evidence`, and `call` where a call was made. An answer with a problem has the problem's HTTP "
        "status, the media type `application/problem+json`, and is an RFC 9457 document at once (see [problems](problems.md)).",
        "## With an API key, or as a person",
        *parts,
        "## Without a key",
        format_table(("endpoint", "answers"), endpoints),
    )
