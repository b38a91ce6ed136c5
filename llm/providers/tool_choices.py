"""Tool choices: that a model has to propose a call, or no more than one, in the words of each wire."""

from __future__ import annotations

from typing import Any, Literal

from llm.requests import NamedTool
from unitools.dialects.tool_names import derive_dialect_name

# A call of any tool.
ANY: dict[str, Any] = {
    "openai": "required",
    "openai-responses": "required",
    "anthropic": {"type": "any"},
    "gemini": {"mode": "ANY"},
}


def write_tool_choice(choice: Literal["required"] | NamedTool, dialect: str) -> Any:
    if not isinstance(choice, NamedTool):
        return ANY[dialect]
    name = derive_dialect_name(dialect, choice.name)
    match dialect:
        case "anthropic":
            return {"type": "tool", "name": name}
        case "gemini":
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        case "openai":
            return {"type": "function", "function": {"name": name}}
    return {"type": "function", "name": name}


def write_single_call(choice: Any, dialect: str) -> dict[str, Any]:
    """The part of a body that has one call proposed at a time. ``choice``: what the body says of tools so far."""
    if dialect == "anthropic":
        return {"tool_choice": {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}}
    return {"parallel_tool_calls": False}
