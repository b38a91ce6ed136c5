"""Known documents: what widely used programs say of themselves at the addresses that are their ids (CIMD), as it was in autumn 2026.

The hub asks the address first, and takes these where it gets no answer and has had none before: a hub may have no way to the internet,
and claude.ai answers servers with a challenge for browsers (403). What a maker changes afterwards, such a hub learns with its
next release; who gets an answer is the same in any case, the maker's own host or a program on the person's computer.
"""

from __future__ import annotations

from typing import Any

_CODES = {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
_CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata"
_CLAUDE_CODE = "https://claude.ai/oauth/claude-code-client-metadata"
_CHATGPT = "https://chatgpt.com/oauth/client.json"
_VS_CODE = "https://vscode.dev/oauth/client-metadata.json"

KNOWN_DOCUMENTS: dict[str, dict[str, Any]] = {
    _CLAUDE: _CODES
    | {
        "client_id": _CLAUDE,
        "client_name": "Claude",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "token_endpoint_auth_method": "none",
    },
    _CLAUDE_CODE: _CODES
    | {
        "client_id": _CLAUDE_CODE,
        "client_name": "Claude Code",
        "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    },
    _CHATGPT: _CODES
    | {
        "client_id": _CHATGPT,
        "client_name": "ChatGPT",
        "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    },
    _VS_CODE: _CODES
    | {
        "client_id": _VS_CODE,
        "client_name": "Visual Studio Code",
        "redirect_uris": ["http://127.0.0.1:33418/", "https://vscode.dev/redirect"],
        "token_endpoint_auth_method": "none",
    },
}
