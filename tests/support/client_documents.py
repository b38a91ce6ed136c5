"""Client documents: what a program's own host says of it, without a network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.cache import cache

from access.budgets.rate_limits import make_memory_store
from kernel.http.outbound import OutboundResponse

if TYPE_CHECKING:
    import pytest

DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"


def serve_document(monkeypatch: pytest.MonkeyPatch, document: Any, *, raises: Exception | None = None) -> list[str]:
    """Every address answers with the document; those that were asked."""
    asked: list[str] = []
    cache.clear()  # of what could not be read a moment ago
    make_memory_store.cache_clear()  # what a person of another test had fetched, who may have had the same id

    def answer(url: str, **_: Any) -> OutboundResponse:
        asked.append(url)
        if raises is not None:
            raise raises
        return OutboundResponse(200, json.dumps(document).encode(), {"content-type": "application/json"})

    monkeypatch.setattr("access.oauth.client_documents.send_request", answer)
    return asked


def claude_document(**more: Any) -> dict[str, Any]:
    usual = {
        "client_id": DOCUMENT,
        "client_name": "Claude Code",
        "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return usual | more
