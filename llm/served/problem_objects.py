"""Problem objects: a problem as OpenAI's error object has it, which most programs read. The hub's own word for it stands in the
header X-Hub-Reason, and beside the error in `hub`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel.problems import PlatformCode, Retryable

if TYPE_CHECKING:
    from kernel.problems import Problem

# What programs branch on. A reason that is not here is its own code.
CODES = {
    "AUTH.UNAUTHENTICATED": "invalid_api_key",
    "LLM.CONTEXT_OVERFLOW": "context_length_exceeded",
    "LLM.SAFETY_BLOCK": "content_filter",
    "LLM.UNSUPPORTED": "unsupported_parameter",
    "MODEL.UNKNOWN": "model_not_found",
    "PROVIDER.QUOTA_EXHAUSTED": "insufficient_quota",
    "PROVIDER.RATE_LIMITED": "rate_limit_exceeded",
    "QUOTA.BUDGET_EXCEEDED": "insufficient_quota",
    "QUOTA.RATE_LIMITED": "rate_limit_exceeded",
    "TOOL.UNKNOWN": "model_not_found",
}
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# The hub's words for parts of a request, in the words of the formats that it serves.
WORDS = {
    "segments": "content",
    "proposals": "tool_calls",
    "call_id": "tool_call_id",
    "items": "input",
    "candidates": "documents",
}


def find_status(problem: Problem) -> int:
    """The hub tells a body that it cannot read (400) from one that it may not follow (422); those formats have 400 for both."""
    return 400 if problem.status == 422 or problem.reason == "LLM.CONTEXT_OVERFLOW" else problem.status


def write_error(problem: Problem) -> dict[str, Any]:
    """The error object: message, type, code and param."""
    status = find_status(problem)
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = CODES.get(problem.reason, problem.reason)
    if code == "insufficient_quota":
        kind = code
    said = problem.detail if problem.remedy in problem.detail else f"{problem.detail} {problem.remedy}"
    return {"message": said, "type": kind, "code": code, "param": find_param(problem)}


def write_beside(problem: Problem) -> dict[str, Any]:
    """What the hub says beside an error object, which has no place for it: its own word, and what the problem names, such as the
    address at which a person may agree.
    """
    return {"reason": problem.reason} | ({"details": problem.details} if problem.details else {})


def write_problem_object(problem: Problem) -> dict[str, Any]:
    """All that a body of OpenAI's has to say of a problem."""
    return {"error": write_error(problem), "hub": write_beside(problem)}


def find_param(problem: Problem) -> str | None:
    """The first place that the problem names, as `messages[0].content`."""
    findings = problem.details.get("findings")
    if not isinstance(findings, list) or not findings or not isinstance(findings[0], dict):
        return None
    parts = str(findings[0].get("pointer", "")).split("/")[1:]
    named = (WORDS.get(part, part).replace("~1", "/").replace("~0", "~") for part in parts)
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(named)) or None


def build_headers(problem: Problem) -> dict[str, str]:
    """The hub's reason, and whether SDKs should send the same request again by themselves: only where waiting helps."""
    helps = problem.retryable is Retryable.YES and problem.code is not PlatformCode.INVALID_ARGUMENT
    return {"X-Hub-Reason": problem.reason, "X-Should-Retry": "true" if helps else "false"}
