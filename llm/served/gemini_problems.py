"""Gemini problems: a problem as Google's APIs write errors, read by their status. The hub's own word stands beside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from llm.served.problem_objects import find_status, write_beside, write_error

if TYPE_CHECKING:
    from kernel.problems import Problem

STATUSES = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
TYPES = "type.googleapis.com/google.rpc."
DOMAIN = "toolhub"
# Where a format of Google's has what the hub's chat calls so.
PLACES = {
    "messages": "contents",
    "tool_choice": "toolConfig.functionCallingConfig",
    "max_tokens": "generationConfig.maxOutputTokens",
    "stop": "generationConfig.stopSequences",
    "temperature": "generationConfig.temperature",
    "top_p": "generationConfig.topP",
    "top_k": "generationConfig.topK",
    "seed": "generationConfig.seed",
    "presence_penalty": "generationConfig.presencePenalty",
    "frequency_penalty": "generationConfig.frequencyPenalty",
    "reasoning_effort": "generationConfig.thinkingConfig.thinkingLevel",
    "reasoning_tokens": "generationConfig.thinkingConfig.thinkingBudget",
    "response_format": "generationConfig.responseSchema",
    "items": "requests",
}


def write_google_problem(problem: Problem) -> tuple[int, dict[str, Any]]:
    """(Status, body)."""
    status = find_status(problem)
    usual = "INTERNAL" if status >= 500 else "INVALID_ARGUMENT"
    error = {
        "code": status,
        "message": write_error(problem)["message"],
        "status": STATUSES.get(status, usual),
        "details": list_details(problem),
    }
    return status, {"error": error, "hub": write_beside(problem)}


def list_details(problem: Problem) -> list[dict[str, Any]]:
    """What programs read of an error that is more than a sentence: its reason, the places of mistakes, how long to wait."""
    details: list[dict[str, Any]] = [
        {"@type": f"{TYPES}ErrorInfo", "reason": problem.reason.replace(".", "_"), "domain": DOMAIN, "metadata": {}}
    ]
    findings = problem.details.get("findings")
    if isinstance(findings, list):
        wrong = [
            {"field": find_field(str(each.get("pointer", ""))), "description": str(each.get("message", ""))}
            for each in findings
            if isinstance(each, dict)
        ]
        details.append({"@type": f"{TYPES}BadRequest", "fieldViolations": wrong})
    if problem.retry_after is not None:
        details.append({"@type": f"{TYPES}RetryInfo", "retryDelay": f"{problem.retry_after}s"})
    return details


def find_field(pointer: str) -> str:
    """A place in a body, as Google writes one: ``contents[0].parts[1].text``.

    A place that the hub's chat has found is told as the field: contents and the hub's messages are not the same in number.
    """
    first, *rest = [each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:]] or [""]
    if first in PLACES:
        return PLACES[first]
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join([first, *rest]))
