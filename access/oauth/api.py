"""OAuth over HTTP: the endpoints at which programs register, get tokens and give them back.

Grants are authorization codes with PKCE and refresh tokens, for which a person has let the program act as an agent
(:mod:`access.connections`), assertions of an identity provider that speaks for the person (RFC 7523, ID-JAG), and client credentials,
which are the key of an agent (RFC 6749 §4.4). Answers have the forms of these documents, not the envelope's.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST
from oauth2_provider.oauth2_backends import get_oauthlib_core

from access.authentication.bearer import find_valid_key, note_use
from access.budgets.rate_limits import check_registration
from access.connections.assertions import connect_by_assertion
from access.connections.resources import find_resource, hub_resource
from access.oauth.clients import authenticate_entered_client
from access.oauth.cross_origin import open_to_pages
from access.oauth.identity_assertions import read_assertion
from access.oauth.metadata import JWT_BEARER
from access.oauth.registration import RegistrationRefused, register_client
from access.oauth.tokens import HUB_LIFETIME_S, make_token
from access.problems import AssertionRefused, IssuerUnavailable, RateLimited
from kernel.database.tenancy import act_for, hub_wide
from kernel.http.console import public
from kernel.http.parsers import read_json
from kernel.problems import Malformed, Unauthenticated

if TYPE_CHECKING:
    from access.models import ApiKey

MAX_SECRET = 200
MAX_REGISTRATION = 16 * 1024
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
CODE, REFRESH, CREDENTIALS = "authorization_code", "refresh_token", "client_credentials"


def _refusal(error: str, description: str, *, status: int = 400) -> JsonResponse:
    response = JsonResponse({"error": error, "error_description": description}, status=status, headers=NO_STORE)
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


def _holds_nul(request: HttpRequest) -> bool:
    """No program, token or code does, and the database refuses to look for one."""
    said = [*_client(request), *(each for name in request.POST for each in request.POST.getlist(name))]
    return any("\x00" in each for each in said)


def _is_of(key: ApiKey, client_id: str) -> bool:
    """A client calls itself by its agent, or by its key."""
    return client_id in (key.agent.wire_id, key.wire_id, key.lookup)


@open_to_pages
@csrf_exempt
@sensitive_post_parameters("client_secret", "code", "code_verifier", "refresh_token", "assertion")
@require_POST
@public
def issue_token(request: HttpRequest) -> HttpResponse:
    if _holds_nul(request):
        return _refusal("invalid_request", "What was sent holds a NUL character.")
    grant = request.POST.get("grant_type", "")
    if grant == CREDENTIALS:
        return _issue_for_key(request)
    if grant in (CODE, REFRESH):
        return _issue_for_connection(request)
    if grant == JWT_BEARER:
        return _issue_for_assertion(request)
    if not grant:
        return _refusal("invalid_request", "Send a form with a grant_type.")
    return _refusal("unsupported_grant_type", f"The grant types are {CODE}, {REFRESH}, {CREDENTIALS} and {JWT_BEARER}.")


def _issue_for_connection(request: HttpRequest) -> HttpResponse:
    with hub_wide():  # which tenant it is for, is what is asked
        _, headers, body, status = get_oauthlib_core().create_token_response(request)
    return HttpResponse(body, status=status, headers={**headers, "Content-Type": "application/json", **NO_STORE})


def _issue_for_assertion(request: HttpRequest) -> HttpResponse:
    """A token for a person for whom their identity provider speaks. The program is one of their tenant, and keeps a secret."""
    client_id, secret = _client(request)
    client = authenticate_entered_client(client_id, secret[:MAX_SECRET])
    if client is None:
        return _refusal(
            "invalid_client",
            "Assertions are taken from programs that somebody of the tenant has entered by hand and that show their secret.",
            status=401,
        )
    act_for(client.tenant_id)
    text = request.POST.get("assertion", "")
    if not text:
        return _refusal("invalid_request", "Send the assertion of the identity provider as assertion.")
    try:
        assertion = read_assertion(text, client=client)
        named = [each for each in request.POST.getlist("resource") if each]
        if named and find_resource(named) != assertion.resource:
            return _refusal("invalid_target", "The resource is not the one that the assertion is for.")
        connection, token, lasts = connect_by_assertion(
            assertion,
            client=client,
            asked=request.POST.get("scope", "").split(),
            address=request.META.get("REMOTE_ADDR", ""),
        )
    except AssertionRefused as problem:
        return _refusal(problem.oauth_error, f"{problem.detail} {problem.remedy}")
    except IssuerUnavailable as problem:
        response = _refusal("temporarily_unavailable", f"{problem.detail} {problem.remedy}", status=problem.status)
        response.headers["Retry-After"] = str(problem.retry_after)
        return response
    answer: dict[str, Any] = {
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": lasts,
        "scope": " ".join(connection.scopes),
    }
    return JsonResponse(answer, headers=NO_STORE)


def _issue_for_key(request: HttpRequest) -> HttpResponse:
    """A token of ten minutes for an API key. It ends when the key or the agent does, whatever its own time."""
    client_id, secret = _client(request)
    try:
        key = find_valid_key(secret[:MAX_SECRET], address=request.META.get("REMOTE_ADDR", ""))
    except Unauthenticated as problem:
        return _refusal("invalid_client", problem.detail, status=401)
    if not _is_of(key, client_id):
        return _refusal("invalid_client", "The client_id is the agent's id (agt_…).", status=401)
    named = [each for each in request.POST.getlist("resource") if each]
    resource = find_resource(named) if named else hub_resource()  # who has a key may do all that the key may
    if resource is None:
        return _refusal("invalid_target", "The hub has no such resource.")
    asked = request.POST.get("scope", "").split()
    # Clients ask for what the last refusal named: they get what of it the key carries.
    scopes = [scope for scope in key.scopes if scope in asked] if asked else key.scopes
    if not scopes:
        return _refusal("invalid_scope", "The key carries none of the scopes that were asked for.")
    note_use(key)
    answer: dict[str, Any] = {
        "access_token": make_token(key, scopes=scopes, resource=resource),
        "token_type": "Bearer",
        "expires_in": HUB_LIFETIME_S,
        "scope": " ".join(scopes),
    }
    return JsonResponse(answer, headers=NO_STORE)


@open_to_pages
@csrf_exempt
@sensitive_post_parameters("token", "client_secret")
@require_POST
@public
def revoke_token(request: HttpRequest) -> HttpResponse:
    """RFC 7009: a program gives its token back, and may act as the agent no more."""
    if _holds_nul(request):
        return _refusal("invalid_request", "What was sent holds a NUL character.")
    with hub_wide():  # whose token it is, is what is asked
        _, headers, body, status = get_oauthlib_core().create_revocation_response(request)
    return HttpResponse(body or "", status=status, headers={**headers, "Content-Type": "application/json", **NO_STORE})


@open_to_pages
@csrf_exempt
@require_POST
@public
def register(request: HttpRequest) -> HttpResponse:
    """RFC 7591. Where programs may not register by themselves, the address is not there and not in the metadata either."""
    if not settings.TOOLHUB_CLIENT_REGISTRATION:
        return _refusal("not_found", "Programs do not register themselves with this hub.", status=404)
    try:
        check_registration(request.META.get("REMOTE_ADDR", ""))
    except RateLimited as problem:
        response = _refusal("temporarily_unavailable", problem.detail, status=429)
        response.headers["Retry-After"] = str(problem.retry_after)
        return response
    if len(request.body) > MAX_REGISTRATION:
        return _refusal("invalid_client_metadata", "This is too long.", status=413)
    try:
        metadata = read_json(request.body)
        with hub_wide():  # programs belong to no tenant
            answer = register_client(metadata)
    except Malformed as problem:
        return _refusal("invalid_client_metadata", problem.detail)
    except RegistrationRefused as refused:
        return _refusal(refused.error, refused.description, status=refused.status)
    return HttpResponse(json.dumps(answer), status=201, headers={"Content-Type": "application/json", **NO_STORE})
