"""Remotes: mistakes in what lets a server somewhere else answer."""

from __future__ import annotations

from typing import Any

from tests.mistakes.base import KEY, Changes, Mistake
from tests.mistakes.origins import DIGEST

HOST = "mcp.example.org"
URL = f"https://{HOST}/mcp"
READ_FROM = {
    "url": URL,
    "tool": "Echo-Text",
    "result": "content",
    "entry_digest": DIGEST,
    "listing_digest": DIGEST,
    "protocol": "2026-07-28",
}
BEARER = {"secret": "API_KEY", "in": "header", "name": "Authorization", "scheme": "bearer"}
NET = {"host": HOST, "methods": ["POST"]}
AT = "/implementation/remote"


def served(*net: dict[str, Any], origin: dict[str, Any] | None = None, **changes: Any) -> Changes:
    """A manifest whose calls a server somewhere else answers. ``changes``: of ``implementation.remote``."""
    return {
        "implementation": {"kind": "mcp_remote", "remote": {"url": URL, "listing": "mcp_example"} | changes},
        "origin": READ_FROM | (origin or {}),
        "side_effect": "Write",
        "safety_class": "Medium",
        "capabilities": {"net": list(net) or [NET]},
    }


def sent(*credentials: dict[str, str]) -> Changes:
    return served(credentials=list(credentials)) | {"secrets": [KEY]}


MARKED = {"type": "string", "x-mcp-header": "Text"}


def marked(argument: dict[str, Any]) -> Changes:
    """One whose server wants to hear an argument in a header too."""
    return served() | {"input_schema": {"type": "object", "properties": {"text": argument}}}


def account(**changes: Any) -> Changes:
    """A manifest whose server is asked as the person whom a call is for."""
    return served(account={}, **changes)


REMOTES: dict[str, list[Mistake]] = {
    "remote.outside_sandbox": [
        Mistake("a plain process", served() | {"requires_sandbox": False}, "/requires_sandbox", served()),
        Mistake("packages", served() | {"dependencies": ["idna==3.10"]}, "/dependencies", served()),
        Mistake(
            "another image",
            served() | {"implementation": served()["implementation"] | {"image": "node"}},
            "/implementation/image",
            served(),
        ),
    ],
    "remote.url": [
        Mistake("an address", served(url="https://10.0.0.1/mcp", origin={"url": "https://10.0.0.1/mcp"}), f"{AT}/url"),
        Mistake(
            "out of itself",
            served(url=f"https://{HOST}/a/../mcp", origin={"url": f"https://{HOST}/a/../mcp"}),
            f"{AT}/url",
        ),
    ],
    "remote.host_missing": [
        Mistake("another host", served({"host": "other.example.org", "methods": ["POST"]}), "/capabilities/net"),
        Mistake("another method", served({"host": HOST, "methods": ["GET"]}), "/capabilities/net", served()),
        Mistake(
            "a session that is not ended",
            served(origin={"protocol": "2025-11-25"}),
            "/capabilities/net",
            served({"host": HOST, "methods": ["DELETE", "POST"]}, origin={"protocol": "2025-11-25"}),
        ),
    ],
    "remote.beyond": [
        Mistake(
            "another host beside it",
            served(NET, {"host": "other.example.org", "methods": ["POST"]}),
            "/capabilities/net/1/host",
            served(),
        ),
        Mistake(
            "files",
            served() | {"capabilities": {"net": [NET], "fs": [{"path": "/data/x", "actions": ["read"]}]}},
            "/capabilities/fs",
        ),
    ],
    "remote.credentials": [
        Mistake("nobody's secret", served(credentials=[BEARER]), f"{AT}/credentials/0/secret", sent(BEARER)),
        Mistake("a secret for nobody", served() | {"secrets": [KEY]}, "/secrets/0/name", sent(BEARER)),
        Mistake("twice", sent(BEARER, BEARER), f"{AT}/credentials/1/name", sent(BEARER)),
        Mistake("the protocol's", sent(BEARER | {"name": "Mcp-Session-Id"}), f"{AT}/credentials/0/name"),
        Mistake("the gate's", sent(BEARER | {"name": "Host"}), f"{AT}/credentials/0/name"),
    ],
    "remote.mixed_credentials": [
        Mistake("both", sent(BEARER) | account(credentials=[BEARER]), f"{AT}/credentials", account()),
        Mistake("a secret beside it", account() | {"secrets": [KEY]}, "/secrets", account()),
    ],
    "remote.other_origin": [
        Mistake("read from elsewhere", served(origin={"url": "https://mcp.example.com/mcp"}), f"{AT}/url", served())
    ],
    "remote.argument_headers": [
        Mistake(
            "a list in a header", marked({"type": "array", "x-mcp-header": "Text"}), "/input_schema", marked(MARKED)
        ),
        Mistake("no name of a header", marked(MARKED | {"x-mcp-header": "a b"}), "/input_schema", marked(MARKED)),
        Mistake("in each of a list", marked({"type": "array", "items": MARKED}), "/input_schema", marked(MARKED)),
    ],
    "remote.keyed": [Mistake("keyed", served() | {"idempotency": "keyed"}, "/idempotency", served())],
}
