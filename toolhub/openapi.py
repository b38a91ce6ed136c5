"""OpenAPI: the problems that the document says each operation may answer with, and its address.

A hook of drf-spectacular. There is one answer for each status that problems have, with an example of every problem of that
status; an operation refers to those that can come of what it takes and does.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.views import SpectacularJSONAPIView

from kernel.http.api_versions import HEADER_API_VERSION
from kernel.http.endpoints import Endpoint
from kernel.http.exception_handlers import PROBLEM_JSON, SERVED_PREFIXES
from kernel.problems import PlatformCode, Problem, Retryable, collect_problem_classes
from toolhub.embedded_schemas import describe_hub_part, embed_schemas
from toolhub.problem_catalogue import build_example

# 412: for any If-Match; 422: for any query parameter that is not declared.
ANYTIME = {400, 406, 408, 412, 414, 422, 431, 500, 503}
SIGNED_IN = {401, 403, 429}  # too many requests without a valid key
WITH_BODY = {413, 415, 429}
WITH_QUERY = {404}  # what is asked for may belong to something that is not there
WITH_PATH = {404}
CHANGES = {404, 409}
# What runs a tool answers with whatever can become of a run.
RUNS_TOOLS = {"invoke", "propose", "dispatch", "chat", "embed", "rerank"}
ASKS_OTHERS = {"import_remote", "connect_server_account"}  # servers, which may not answer as they should
GONE = {"read_invocation", "read_artifact"}  # what they lead to may be gone
PAGED_TWICE = {"list_tools"}  # a cursor may be of the other of its lists
COUNTED = RUNS_TOOLS - {"dispatch"}  # whose answers say what is left of the budgets of calls
HEADERS = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "How to get credentials."}},
    429: {
        "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."},
        "RateLimit": {"$ref": "#/components/headers/RateLimit"},
        "RateLimit-Policy": {"$ref": "#/components/headers/RateLimitPolicy"},
    },
    503: {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}},
}


COMMON_HEADERS = {
    "ApiVersion": {
        "schema": {"type": "string", "format": "date"},
        "description": "The version of the API that has answered.",
    },
    "ETag": {
        "schema": {"type": "string"},
        "description": "Of what was read; send it as `If-None-Match`, or `If-Match`.",
    },
    "RateLimit": {
        "schema": {"type": "string"},
        "description": 'What is left of each limit: `"bud_…";r=99;t=3600` (draft-ietf-httpapi-ratelimit-headers).',
    },
    "RateLimitPolicy": {
        "schema": {"type": "string"},
        "description": 'The limits of requests that hold: `"bud_…";q=100;w=86400`, by the id of the budget.',
    },
}
IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "schema": {"type": "string"},
    "description": "The ETag of an answer: 304 while it holds.",
}


class DocumentView(Endpoint, SpectacularJSONAPIView):
    """The document itself."""

    authentication_classes = []
    permission_classes = []


def _by_status() -> dict[int, list[type[Problem]]]:
    found: dict[int, list[type[Problem]]] = {}
    for cls in collect_problem_classes():
        found.setdefault(cls.status, []).append(cls)
    return dict(sorted(found.items()))


def _schemas() -> dict[str, Any]:
    text = {"type": "string"}
    error = {
        "type": "object",
        "required": ["code", "reason", "message", "details", "retryable", "remedy"],
        "properties": {
            "code": text | {"enum": [str(code) for code in PlatformCode], "description": "The closed set of SPEC-6."},
            "reason": text
            | {"enum": [cls.reason for cls in collect_problem_classes()], "description": "What programs branch on."},
            "message": text,
            "details": {"type": "object", "additionalProperties": True, "description": "Pointers and diagnostics."},
            "retryable": text | {"enum": [str(each) for each in Retryable]},
            "retry_after_s": {"type": "integer"},
            "remedy": text | {"description": "The smallest change that would help."},
            "error_type": text | {"description": "The older tool service's word, where it had one."},
        },
    }
    problem = {
        "type": "object",
        "description": "An RFC 9457 document and a SPEC-4 envelope at once.",
        "required": ["type", "title", "status", "detail", "ok", "data", "warnings", "error", "ttl_seconds", "evidence"],
        "properties": {
            "type": text | {"format": "uri", "description": "The documentation of the problem."},
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "instance": text,
            "ok": {"type": "boolean", "enum": [False]},
            "data": {"nullable": True},
            "warnings": {"type": "array", "items": text},
            "error": {"$ref": "#/components/schemas/Error"},
            "ttl_seconds": {"type": "integer", "nullable": True},
            "evidence": {"type": "object", "additionalProperties": True},
            "call": {"type": "object", "additionalProperties": True, "description": "The call that it is about."},
        },
    }
    return {"Error": error, "Problem": problem}


def _answer(status: int, classes: list[type[Problem]]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": " ".join(cls.title() for cls in classes),
        "content": {
            PROBLEM_JSON: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {cls.reason: {"$ref": f"#/components/examples/{cls.reason}"} for cls in classes},
            }
        },
    }
    return answer | ({"headers": HEADERS[status]} if status in HEADERS else {})


def list_statuses(method: str, path: str, operation: dict[str, Any], all_of: set[int]) -> set[int]:
    """Those that can come of what the operation takes and does."""
    if operation.get("operationId") in RUNS_TOOLS:
        return all_of - {405}
    found = set(ANYTIME)
    if any(operation.get("security", [])):
        found |= SIGNED_IN
    if "requestBody" in operation:
        found |= WITH_BODY
    if any(each.get("in") == "query" for each in operation.get("parameters", [])):
        found |= WITH_QUERY
    if "{" in path:
        found |= WITH_PATH
    if method != "get":
        found |= CHANGES
    if operation.get("operationId") in ASKS_OTHERS:
        found |= {502}
    if operation.get("operationId") in GONE:
        found |= {410}
    if operation.get("operationId") in PAGED_TWICE:
        found |= {409}
    return found


def _refer(*names: str) -> dict[str, Any]:
    written = {"ApiVersion": HEADER_API_VERSION, "RateLimitPolicy": "RateLimit-Policy"}
    return {written.get(name, name): {"$ref": f"#/components/headers/{name}"} for name in names}


def _describe_manners(method: str, operation: dict[str, Any]) -> None:
    """Headers that any endpoint may be sent, and that all answers of a kind have."""
    answers = operation["responses"]
    whole = answers.get("200", {})
    tagged = method == "get" and "application/json" in whole.get("content", {})
    if tagged:
        operation.setdefault("parameters", []).append({"$ref": "#/components/parameters/IfNoneMatch"})
        answers["304"] = {"description": "What the caller has still holds."}
    for status, answer in answers.items():
        if status.startswith("2"):
            counted = ("RateLimit", "RateLimitPolicy") if operation["operationId"] in COUNTED else ()
            answer["headers"] = answer.get("headers", {}) | _refer(
                "ApiVersion", *(("ETag",) if tagged else ()), *counted
            )


def document_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """The hook."""
    by_status = _by_status()
    components = result.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(_schemas() | embed_schemas())
    schemas["ServedHub"] = describe_hub_part(schemas)
    components["examples"] = {
        cls.reason: {"summary": cls.title(), "description": f"{cls.cause} {cls.cure}", "value": build_example(cls)}
        for cls in collect_problem_classes()
    }
    components["headers"] = COMMON_HEADERS
    components["parameters"] = {"IfNoneMatch": IF_NONE_MATCH}
    components["responses"] = {f"Problem{status}": _answer(status, each) for status, each in by_status.items()}
    components["responses"]["ServedProblem"] = {
        "description": "A problem in the shape of the format that is served here. `X-Hub-Reason` has the hub's own word.",
        "content": {"application/json": {"schema": {"type": "object", "required": ["error"]}}},
    }
    for path, item in result["paths"].items():
        for method, operation in item.items():
            if path.startswith(SERVED_PREFIXES):
                for status in sorted({*by_status, 400, 529} - {405, 412, 422}):
                    operation["responses"].setdefault(str(status), {"$ref": "#/components/responses/ServedProblem"})
                continue
            _describe_manners(method, operation)
            for status in sorted(list_statuses(method, path, operation, set(by_status))):
                operation["responses"].setdefault(str(status), {"$ref": f"#/components/responses/Problem{status}"})
    return result
