"""Client guides: what a person does in which MCP client so that it connects by the hub's address."""

from __future__ import annotations

import base64
import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.utils.translation import gettext

NAME = "toolhub"
PRIVATE = (
    ".localhost",
    ".local",
    ".internal",
    ".lan",
    ".corp",
    ".home",
    ".private",
    ".intranet",
    ".home.arpa",
    ".test",
)


def describe_clients(url: str) -> list[dict[str, Any]]:
    """``text``: what is pasted. ``link``: opens the program with the address filled in. ``remote``: its makers' servers ask the hub,
    so it must be public.
    """
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
            "link": link_vscode(url),
            "remote": False,
        },
        {
            "name": "Cursor",
            "text": settings,
            "steps": gettext("Put this into mcp.json."),
            "link": link_cursor(url),
            "remote": False,
        },
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


def link_vscode(url: str) -> str:
    return "vscode:mcp/install?" + quote(json.dumps({"name": NAME, "type": "http", "url": url}), safe="")


def link_cursor(url: str) -> str:
    config = base64.b64encode(json.dumps({"url": url}).encode()).decode()
    return "cursor://anysphere.cursor-deeplink/mcp/install?" + urlencode({"name": NAME, "config": config})


def is_public(url: str) -> bool:
    """Whether somebody else's server can ask: https, and no address or name of a private network, as far as its text says."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" and ip_address(host).is_global
    except ValueError:
        private = "." not in host or f".{host}".endswith(PRIVATE)
        return parts.scheme == "https" and not private
