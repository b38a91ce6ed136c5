"""Provider names: which names of tools do providers of models take, as their APIs refuse the others?

Where each pattern is written: OpenAI's and Anthropic's answer with it when they refuse a request; Gemini's words are "must start with
a letter or an underscore; letters, digits, underscores, dots, dashes; at most 64". Bedrock has OpenAI's.
"""

from __future__ import annotations

import re

TAKEN = {
    "OpenAI": r"[a-zA-Z0-9_-]{1,64}",
    "Anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "Anthropic since 2025": r"[a-zA-Z0-9_-]{1,128}",
    "Gemini": r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}",
    "Kimi": r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}",
    "MCP": r"[A-Za-z0-9_.-]{1,128}",
}
# What clients put before a tool's name, with the name that a person gave the server.
PREFIXES = {
    "Claude Code, tool search": "mcp__toolhub__",
    "openai-agents": "mcp_toolhub__",
    "pydantic-ai, langchain-mcp-adapters, fastmcp": "toolhub_",
    "LiteLLM": "toolhub-",
    "MetaMCP": "toolhub__",
}
CURSOR = 60  # characters of the server's name and the tool's


def check_taken_by_all(name: str) -> None:
    refusing = [provider for provider, pattern in TAKEN.items() if not re.fullmatch(pattern, name)]
    assert not refusing, f"{name!r} is refused by {refusing}"


def check_taken_with_the_name_of_a_server(name: str) -> None:
    for prefix in PREFIXES.values():
        check_taken_by_all(prefix + name)
    assert len("toolhub" + name) <= CURSOR
