"""Clients: who the hub is at an authorization server elsewhere.

What somebody of the tenant has entered counts first; else the hub is its own document at the address that is its id (CIMD), where the
server takes such; else it registers itself there (RFC 7591), once a tenant and server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from access.models import AccountServer
from access.server_accounts.answers import ServerSilent, ask, read_object
from access.server_accounts.problems import AccountClientMissing, AccountServerUnfit
from kernel.http.console import public

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from access.server_accounts.discovery import AuthorizationTerms

DOCUMENT, CALLBACK = "/oauth/hub-client.json", "/server-accounts/callback"
MAX_ID, MAX_SECRET = 500, 4096
MAX_TIME = 2**36  # a time later than that is none that ends


def callback_url(key: str = "") -> str:
    """``key``: of a server (``AccountServer.callback_key``); empty: of all where the hub is its document."""
    return f"{settings.TOOLHUB_PUBLIC_URL}{CALLBACK}{f'/{key}' if key else ''}"


def choose_callback(server: AccountServer, kind: str) -> str:
    """The key of the redirect URI. A document has one for all servers, so it is used only where an answer names who gives it; else
    each server has its own, so that none gives the hub an answer of another (RFC 9700, 4.4)."""
    return "" if kind == AccountServer.HubClientKind.DOCUMENT else server.callback_key


def document_url() -> str:
    return f"{settings.TOOLHUB_PUBLIC_URL}{DOCUMENT}"


def describe_hub(redirect_uri: str) -> dict[str, Any]:
    """What the hub says of itself as a client."""
    return {
        "client_name": "toolhub",
        "client_uri": str(settings.TOOLHUB_PUBLIC_URL),
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }


@require_GET
@public
def hub_client(request: HttpRequest) -> HttpResponse:
    """The document that is the hub's id at authorization servers elsewhere."""
    del request
    said = {"client_id": document_url()} | describe_hub(callback_url())
    return JsonResponse(said, headers={"Cache-Control": "public, max-age=300"})


def takes_document(terms: AuthorizationTerms) -> bool:
    """A document can be an id only where others can read it: https, as its specification says. And only where answers name the issuer,
    since all answers to it come to one address."""
    return terms.takes_documents and terms.says_issuer and document_url().startswith("https://")


@dataclass(frozen=True, slots=True)
class AccountClient:
    """Who the hub is at a server. ``secret``: only of a new one."""

    id: str
    kind: str
    secret: str = field(default="", repr=False)
    ends_at: datetime | None = None


def is_registered(server: AccountServer, terms: AuthorizationTerms) -> bool:
    """Whether a registration there is good still."""
    lasts = server.client_ends_at is None or server.client_ends_at > timezone.now()
    return server.client_kind == AccountServer.HubClientKind.REGISTERED and server.issuer == terms.issuer and lasts


def choose_client(server: AccountServer, terms: AuthorizationTerms) -> AccountClient:
    """Who the hub is there; what is known already stays while the issuer does. No transaction is open.

    :class:`AccountClientMissing` where somebody has to enter one first.
    """
    kinds = AccountServer.HubClientKind
    if server.client_kind == kinds.ENTERED:
        check_issuer_of_entered(server, terms)
        return AccountClient(server.client_id, kinds.ENTERED)
    if takes_document(terms):
        return AccountClient(document_url(), kinds.DOCUMENT)
    if is_registered(server, terms):
        return AccountClient(server.client_id, kinds.REGISTERED)
    if not terms.registration_endpoint:
        raise AccountClientMissing(
            f"{server.host} takes neither the hub's document as its client nor registrations, and nobody has entered a client.",
            details={"server": server.resource, "redirect_uri": callback_url(server.callback_key)},
        )
    return _register(terms, redirect_uri=callback_url(server.callback_key))


def check_issuer_of_entered(server: AccountServer, terms: AuthorizationTerms) -> None:
    """What is entered belongs to the authorization server that it was first used at, and is shown to no other."""
    if server.issuer not in ("", terms.issuer):
        raise AccountServerUnfit(
            f"{server.host} names another authorization server than the one that the entered client belongs to.",
            details={"server": server.resource, "entered_for": server.issuer, "named": terms.issuer},
            remedy="Operators: if that is right, enter the client of the other one under Account servers.",
        )


def _register(terms: AuthorizationTerms, *, redirect_uri: str) -> AccountClient:
    wanted = describe_hub(redirect_uri)
    if "none" not in terms.auth_methods:
        wanted["token_endpoint_auth_method"] = next(
            (each for each in ("client_secret_basic", "client_secret_post") if each in terms.auth_methods), "none"
        )
    body, headers = json.dumps(wanted).encode(), {"Content-Type": "application/json"}
    try:
        answer = ask(terms.registration_endpoint, method="POST", body=body, headers=headers)
    except ServerSilent as error:
        raise AccountServerUnfit(str(error)) from error
    said = read_object(answer) if answer.status in (200, 201) else None
    client, secret = (said or {}).get("client_id"), (said or {}).get("client_secret") or ""
    if not isinstance(client, str) or not 0 < len(client) <= MAX_ID or not client.isprintable():
        raise AccountClientMissing(f"The authorization server did not register the hub: it answered {answer.status}.")
    if not isinstance(secret, str) or len(secret) > MAX_SECRET:
        raise AccountClientMissing("The authorization server gave the hub a secret that cannot be kept.")
    ends = (said or {}).get("client_secret_expires_at")
    is_time = secret and isinstance(ends, int) and not isinstance(ends, bool) and 0 < ends < MAX_TIME
    ends_at = datetime.fromtimestamp(ends, tz=UTC) if is_time else None  # type: ignore[arg-type]
    return AccountClient(client, AccountServer.HubClientKind.REGISTERED, secret, ends_at)
