"""Registrations: what Cursor, VS Code, Claude and ChatGPT send to a hub's /oauth/register, and where we know it from.

None of these programs can be run here. VS Code's is built as its source builds it, byte for byte. Of the others ``source`` says which
fields somebody has seen on the wire or their makers have stated; the rest is as in the documents of the same makers' programs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.e2e.wire import request

CODES = {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
VS_CODE_GRANTS = ("authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code")
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass(frozen=True, slots=True)
class Registration:
    """``body``: what is sent. ``scope``: what the program asks for at the authorization endpoint afterwards, if anything."""

    program: str
    source: str
    body: dict[str, Any]
    scope: str = ""

    def write(self) -> str:
        """As JSON.stringify does."""
        return json.dumps(self.body, separators=(",", ":"))

    def __str__(self) -> str:
        return self.program


CURSOR = Registration(
    "Cursor",
    "The three addresses in one request: Cursor's staff (forum.cursor.com, thread 165019), quoted in github.com/erp-mafia/accounted "
    "pull 2225. The method: github.com/different-ai/openwork pull 3059. Grants and name are not stated.",
    {
        "redirect_uris": [
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "https://www.cursor.com/agents/mcp/oauth/callback",
            "http://localhost:8787/callback",
        ],
        "token_endpoint_auth_method": "none",
        **CODES,
        "client_name": "Cursor",
    },
)
CLAUDE = Registration(
    "Claude",
    "From logs of servers: addresses and client_secret_post in github.com/anthropics/claude-code issue 5826 (November 2025), the "
    "method again in github.com/anthropics/claude-ai-mcp issue 1043 (September 2026), the scope in its issue 124 (March 2026).",
    {
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "token_endpoint_auth_method": "client_secret_post",
        **CODES,
        "client_name": "Claude",
    },
    scope="claudeai",
)
CLAUDE_BEFORE = Registration(
    "Claude in 2025",
    "The whole body, from the log of a server: github.com/modelcontextprotocol/modelcontextprotocol issue 653 (June 2025).",
    {
        "client_name": "claudeai",
        **CODES,
        "token_endpoint_auth_method": "none",
        "scope": "claudeai",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
    },
    scope="claudeai",
)
CHATGPT = Registration(
    "ChatGPT",
    "The addresses: OpenAI's page on authentication of plugins (developers.openai.com), the second with an id for each connector, and "
    "the one seen in community.openai.com thread 1366784. Method and grants as in its document (access/oauth/known_documents.py).",
    {
        "client_name": "ChatGPT",
        "redirect_uris": [
            "https://chatgpt.com/connector_platform_oauth_redirect",
            "https://chatgpt.com/connector/oauth/vG3-MLZWUV83",
        ],
        **CODES,
        "token_endpoint_auth_method": "none",
    },
)
SEEN = [CURSOR, CLAUDE, CLAUDE_BEFORE, CHATGPT]


def build_vs_code(url: str) -> Registration:
    """As ``fetchDynamicRegistration`` builds it from the hub's metadata and the scopes of its challenge."""
    challenge = request("POST", url, LIST, ACCEPT).headers["www-authenticate"]
    found = re.search(r'scope="([^"]+)"', challenge)
    assert found, challenge
    metadata = request("GET", url.removesuffix("/mcp") + "/.well-known/oauth-authorization-server").json()
    return Registration(
        "VS Code",
        "src/vs/base/common/oauth.ts of github.com/microsoft/vscode at 05f882b02c51633f2e1e8252722f8c3b626d74a9; the name is that of "
        "the product (product.json of its releases).",
        {
            "client_name": "Visual Studio Code",
            "client_uri": "https://code.visualstudio.com",
            "grant_types": [each for each in metadata["grant_types_supported"] if each in VS_CODE_GRANTS],
            "response_types": ["code"],
            "redirect_uris": [
                "https://insiders.vscode.dev/redirect",
                "https://vscode.dev/redirect",
                "http://127.0.0.1/",
                "http://127.0.0.1:33418/",
            ],
            "scope": found[1],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        },
        scope=found[1],
    )
