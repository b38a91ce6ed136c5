"""OAuth over REST: how a program gets a token for its API key, and finds out that it can.

Client credentials of RFC 6749 §4.4, and the two metadata documents by which clients find them (RFC 8414, RFC 9728). Answers have
the forms of these documents, not the envelope's.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from access.authentication.bearer import find_valid_key, note_use
from access.oauth.tokens import HUB_LIFETIME_S, make_token
from access.roles import SCOPES
from kernel.http.console import public
from kernel.problems import Unauthenticated

if TYPE_CHECKING:
    from access.models import ApiKey

TOKEN_PATH = "/api/v1/oauth/token"  # noqa: S105  an address
MAX_SECRET = 200


def _refusal(error: str, description: str, *, status: int = 400) -> JsonResponse:
    response = JsonResponse({"error": error, "error_description": description}, status=status)
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="toolhub"'
    return response


def _client(request: HttpRequest) -> tuple[str, str]:
    """``(client_id, client_secret)`` from HTTP Basic or from the form; empty where there is none."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return request.POST.get("client_id", ""), request.POST.get("client_secret", "")
    try:
        name, _, secret = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return "", ""
    return unquote_plus(name), unquote_plus(secret)


def _is_of(key: ApiKey, client_id: str) -> bool:
    """A client calls itself by its agent, or by its key."""
    return client_id in (key.agent.wire_id, key.wire_id, key.lookup)


@csrf_exempt
@sensitive_post_parameters("client_secret")
@require_POST
@public
def issue_token(request: HttpRequest) -> JsonResponse:
    """A token of ten minutes for an API key. It ends when the key or the agent does, whatever its own time."""
    if request.POST.get("grant_type") != "client_credentials":
        return _refusal("unsupported_grant_type", "The grant type is client_credentials.")
    client_id, secret = _client(request)
    try:
        key = find_valid_key(secret[:MAX_SECRET], address=request.META.get("REMOTE_ADDR", ""))
    except Unauthenticated as problem:
        return _refusal("invalid_client", problem.detail, status=401)
    if not _is_of(key, client_id):
        return _refusal("invalid_client", "The client_id is the agent's id (agt_…).", status=401)
    asked = request.POST.get("scope", "").split()
    if set(asked) - set(key.scopes):
        return _refusal("invalid_scope", "The key does not carry every scope that was asked for.")
    scopes = asked or key.scopes
    note_use(key)
    answer: dict[str, Any] = {
        "access_token": make_token(key, scopes=scopes),
        "token_type": "Bearer",
        "expires_in": HUB_LIFETIME_S,
        "scope": " ".join(scopes),
    }
    response = JsonResponse(answer)
    response.headers["Cache-Control"] = "no-store"
    return response


@require_GET
@public
def protected_resource(request: HttpRequest, path: str = "") -> JsonResponse:
    """RFC 9728: where tokens for this hub come from, and what they may carry. ``path``: of a part that says so for itself."""
    del request
    return JsonResponse(
        {
            "resource": settings.TOOLHUB_PUBLIC_URL + path,
            "resource_name": "toolhub",
            "authorization_servers": [settings.TOOLHUB_PUBLIC_URL],
            "bearer_methods_supported": ["header"],
            "scopes_supported": list(SCOPES),
            "resource_documentation": f"{settings.TOOLHUB_PUBLIC_URL}/docs/api",
        }
    )


@require_GET
@public
def authorization_server(request: HttpRequest) -> JsonResponse:
    """RFC 8414: what the hub's own token endpoint can do."""
    del request
    return JsonResponse(
        {
            "issuer": settings.TOOLHUB_PUBLIC_URL,
            "token_endpoint": settings.TOOLHUB_PUBLIC_URL + TOKEN_PATH,
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": [],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "scopes_supported": list(SCOPES),
        }
    )
