"""Metadata: the documents by which a client that knows only an address of the hub finds out how it gets in (RFC 9728, RFC 8414).

What is nowhere said is JSON, too: clients guess addresses, and show people as an error whatever they find there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET

from access.connections.resources import tenant_mcp_resource
from access.issuers.services import find_mcp_issuers
from access.oauth import authorization_requests
from access.oauth.cross_origin import open_to_pages
from access.roles import AGENT_SCOPES, SCOPES
from kernel.http.console import public

if TYPE_CHECKING:
    from django.http import HttpResponse

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ID_JAG = "urn:ietf:params:oauth:grant-profile:id-jag"  # the one kind of assertion that is taken
TOKEN, REGISTER, REVOKE = "/oauth/token", "/oauth/register", "/oauth/revoke"
CACHED = {"Cache-Control": "public, max-age=300"}


@open_to_pages
@require_GET
@public
def protected_resource(request: HttpRequest, path: str = "") -> HttpResponse:
    """RFC 9728: where tokens for this hub come from, and what they may carry. ``path``: of a part that says so for itself. A client
    that is told nothing else asks for all that stands here, so it is what an agent needs.
    """
    del request
    said = {
        "resource": settings.TOOLHUB_PUBLIC_URL + path,
        "resource_name": "toolhub",
        "authorization_servers": [settings.TOOLHUB_PUBLIC_URL],
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(AGENT_SCOPES if path else SCOPES),
        "resource_documentation": f"{settings.TOOLHUB_PUBLIC_URL}/docs/api",
    }
    return JsonResponse(said, headers=CACHED)


@open_to_pages
@require_GET
@public
def tenant_mcp_resource_metadata(request: HttpRequest, tenant: str) -> HttpResponse:
    """RFC 9728, of a tenant's own MCP address: its identity providers give the tokens, with scopes and lifetimes of theirs, so no
    scopes stand here.
    """
    found = find_mcp_issuers(tenant)
    if found is None:
        return nothing_there(request)
    said = {
        "resource": tenant_mcp_resource(tenant),
        "resource_name": f"toolhub: {tenant}",
        "authorization_servers": found[1],
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{settings.TOOLHUB_PUBLIC_URL}/docs/api",
    }
    return JsonResponse(said, headers=CACHED)


def describe_server() -> dict[str, Any]:
    """What the hub can do as an authorization server, and no more: clients choose by it what they ask for."""
    hub = settings.TOOLHUB_PUBLIC_URL
    said: dict[str, Any] = {
        "issuer": hub,
        "authorization_endpoint": hub + authorization_requests.PATH,
        "token_endpoint": hub + TOKEN,
        "revocation_endpoint": hub + REVOKE,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials", JWT_BEARER],
        "authorization_grant_profiles_supported": [ID_JAG],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "scopes_supported": list(SCOPES),
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.TOOLHUB_CLIENT_DOCUMENTS,
        "service_documentation": f"{hub}/docs/api",
    }
    if settings.TOOLHUB_CLIENT_REGISTRATION:
        said["registration_endpoint"] = hub + REGISTER
    return said


@open_to_pages
@require_GET
@public
def authorization_server(request: HttpRequest) -> HttpResponse:
    """RFC 8414; also where clients look that know OpenID Connect only."""
    del request
    return JsonResponse(describe_server(), headers=CACHED)


@open_to_pages
@csrf_exempt
@public
def nothing_there(request: HttpRequest, /, **rest: str) -> HttpResponse:
    """For addresses that clients guess."""
    del rest
    said = {"error": "not_found", "error_description": f"There is nothing at {request.path} of this hub."}
    return JsonResponse(said, status=404, headers={"Cache-Control": "no-store"})
