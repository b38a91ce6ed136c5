"""MCP errors: what a model, or the client that it works in, is told of a problem.

The words are those of every other door. What only a program that speaks HTTP could make use of is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

if TYPE_CHECKING:
    from kernel.problems import Problem

OF_ENVELOPES = "on_consent"  # which a client writes around a call, and no model


def _is_request(value: Any) -> bool:
    return isinstance(value, dict) and {"method", "path"} <= value.keys()


def _without_requests(value: Any) -> Any:
    """Also in a problem that another one is the reason of."""
    if isinstance(value, dict):
        return {
            name: _without_requests(each)
            for name, each in value.items()
            if name != OF_ENVELOPES and not _is_request(each)
        }
    return [_without_requests(each) for each in value] if isinstance(value, list | tuple) else value


def error_json(problem: Problem) -> dict[str, Any]:
    """The ``error`` member of an envelope, for a model."""
    error = problem.to_error()
    return error | {"details": _without_requests(error["details"])}


def error_of(problem: Problem) -> MCPError:
    code = INTERNAL_ERROR if problem.status >= 500 else INVALID_REQUEST
    return MCPError(code, problem.detail, data=error_json(problem))
