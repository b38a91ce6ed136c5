"""Degraded requests: what remains of a request to a model where policies let it have less than it asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from llm.requests import ChatRequest, NamedTool

if TYPE_CHECKING:
    from access.policies.verdict import Degradation
    from invocations.model_calls.model_requests import ModelRequest


def degrade_request(request: ModelRequest, degradation: Degradation | None) -> ModelRequest:
    """The request with the tools that remain. What a model is not shown it cannot propose."""
    if degradation is None or not degradation.tools or not isinstance(request, ChatRequest):
        return request
    reading = tuple(tool for tool in request.tools if tool.annotations.read_only)
    tools = reading if degradation.tools == "read_only" else ()
    # It cannot be made to propose a call of what it is not shown.
    is_there = tools and (
        not isinstance(choice := request.tool_choice, NamedTool) or choice.name in {tool.name for tool in tools}
    )
    return replace(request, tools=tools, tool_choice=request.tool_choice if is_there else None)


def describe_degradation(degradation: Degradation) -> list[str]:
    """For the caller, who asked for more."""
    rules, said = ", ".join(degradation.rules), []
    if degradation.answered_by:
        said.append(f"Policy lets {degradation.answered_by} answer this call, says {rules}.")
    if degradation.tools:
        which = "no tools" if degradation.tools == "none" else "only tools that read"
        said.append(f"Policy lets the model be shown {which}, says {rules}.")
    return said
