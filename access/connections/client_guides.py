"""Client guides: what a person does in which MCP client so that it connects by the hub's address."""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext

NAME = "toolhub"


def describe_clients(url: str) -> list[dict[str, Any]]:
    """``text``: what is pasted. ``remote``: its makers' servers ask the hub, so it must be public."""
    settings = json.dumps({"mcpServers": {NAME: {"url": url}}})
    return [
        {
            "name": "Claude Code",
            "text": f"claude mcp add --transport http {NAME} {url}",
            "steps": gettext("Run this, then type /mcp and choose Authenticate."),
            "remote": False,
        },
        {
            "name": "VS Code",
            "text": url,
            "steps": gettext("Run “MCP: Add Server”, choose HTTP and paste this."),
            "remote": False,
        },
        {"name": "Cursor", "text": settings, "steps": gettext("Put this into mcp.json."), "remote": False},
        {
            "name": "Gemini CLI",
            "text": f"gemini mcp add --transport http {NAME} {url}",
            "steps": gettext("Run this, then type /mcp auth."),
            "remote": False,
        },
        {
            "name": "MCP Inspector",
            "text": url,
            "steps": gettext("Choose Streamable HTTP, paste this and connect."),
            "remote": False,
        },
        {
            "name": "Claude, ChatGPT",
            "text": url,
            "steps": gettext("Add a custom connector in the settings and paste this."),
            "remote": True,
        },
    ]


def is_public(url: str) -> bool:
    """Whether somebody else's server can ask: https, and no address or name of a private network, as far as its text says."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" and ip_address(host).is_global
    except ValueError:
        private = "." not in host or host.rpartition(".")[2] in ("localhost", "local", "internal", "lan")
        return parts.scheme == "https" and not private
