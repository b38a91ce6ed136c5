"""Ways of a request: by the door or by direct routes, as the web server takes those that make calls, or as all others.

Over MCP there are two: a plain exchange, where a request is one, and the SDK's transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test.client import ClientHandler

from invocations.mcp import endpoint
from kernel.http.deferred_responses import Handler
from kernel.http.direct_routes import prefer_direct_routes
from kernel.singleton import Once
from toolhub.call_door import CallDoor

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

WAYS = ("door", "direct", "whole")
# All answer alike, byte for byte (test_direct_routes.py), so `make test` tries what callers get, and `make test-all` each.
WAYS_IN = (WAYS[0], *(pytest.param(each, marks=pytest.mark.long) for each in WAYS[1:]))
MCP_WAYS_IN = (WAYS[0], WAYS_IN[-1])
HEADERS = {"CONTENT_TYPE": "content-type", "CONTENT_LENGTH": "content-length"}
get_handler = Once(lambda: Handler(1))  # of no use: who asks is answered in their own thread
_load_whole, _respond_by_routes = ClientHandler.load_middleware, ClientHandler.get_response


def _load_with_direct_routes(handler: ClientHandler, is_async: bool = False) -> None:
    _load_whole(handler, is_async)
    chain: Any = prefer_direct_routes(handler._middleware_chain)  # type: ignore[attr-defined]
    handler._middleware_chain = chain  # type: ignore[attr-defined]


def _respond_by_door(handler: ClientHandler, request: HttpRequest) -> HttpResponseBase:
    scope = build_scope(request)
    door = CallDoor(get_handler())  # with the settings of this moment
    if (found := door.find_call(scope)) is None:
        return _respond_by_routes(handler, request)
    return door.answer(scope, found, request.read())


def build_scope(request: HttpRequest) -> dict[str, Any]:
    """As a web server gives it, of a test client's request."""
    said = {
        HEADERS.get(name) or name.removeprefix("HTTP_").replace("_", "-").lower(): str(text)
        for name, text in request.META.items()
        if text and (name.startswith("HTTP_") or name in HEADERS)
    }
    return {
        "type": "http",
        "method": str(request.method),
        "scheme": request.scheme,
        "path": request.path,
        "query_string": request.META.get("QUERY_STRING", "").encode(),
        "client": (request.META["REMOTE_ADDR"], 1),
        "headers": [
            (name.encode(), text.encode("latin-1", "replace")) for name, text in ({"host": "testserver"} | said).items()
        ],
    }


def take_ways_of_web_server() -> None:
    """Every test client of this process."""
    ClientHandler.load_middleware = _load_with_direct_routes  # type: ignore[assignment, method-assign]
    ClientHandler.get_response = _respond_by_door  # type: ignore[assignment, method-assign]


def take_direct_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test client of this test, past the door."""
    monkeypatch.setattr(ClientHandler, "get_response", _respond_by_routes)


def take_whole_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test client of this test that has not asked yet."""
    take_direct_routes(monkeypatch)
    monkeypatch.setattr(ClientHandler, "load_middleware", _load_whole)


def take_sdk_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message over MCP of this test."""
    monkeypatch.setattr(endpoint, "find_plain_holder", lambda *_: None)


def take_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The door needs nothing: it is taken where a request is for it."""
    if name != WAYS[0]:
        take_sdk_transport(monkeypatch)
    if name == "direct":
        take_direct_routes(monkeypatch)
    elif name == "whole":
        take_whole_way(monkeypatch)
