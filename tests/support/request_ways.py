"""Ways of a request: by direct routes, as the web server takes those that make calls, or by the request middleware of browsers."""

from __future__ import annotations

from typing import Any

import pytest
from django.test.client import ClientHandler

from kernel.http.direct_routes import prefer_direct_routes

# Both answer alike, byte for byte (test_direct_routes.py), so `make test` tries what callers get, and `make test-all` both.
WAYS_IN = ["direct", pytest.param("whole", marks=pytest.mark.long)]
_load_whole = ClientHandler.load_middleware


def _load_with_direct_routes(handler: ClientHandler, is_async: bool = False) -> None:
    _load_whole(handler, is_async)
    chain: Any = prefer_direct_routes(handler._middleware_chain)  # type: ignore[attr-defined]
    handler._middleware_chain = chain  # type: ignore[attr-defined]


def take_direct_routes() -> None:
    """Every test client of this process."""
    ClientHandler.load_middleware = _load_with_direct_routes  # type: ignore[assignment, method-assign]


def take_whole_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test client of this test that has not asked yet."""
    monkeypatch.setattr(ClientHandler, "load_middleware", _load_whole)
