"""Client documents: what a program says of itself at the address that is its id (CIMD), fetched as all foreign addresses are.

Only for somebody who is signed in and was sent here by the program, and so many an hour: whoever shows an id at another endpoint has
no code and no token for it, unless its document is kept already. The name is resolved once and connected to as it was found, private
addresses are refused unless the operator names their network for this (TOOLHUB_CLIENT_DOCUMENT_NETWORKS; what is allowed for others
counts for nothing here), redirects are not followed.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from oauth2_provider.cimd import CIMDError
from oauth2_provider.models import Application

from access.budgets.rate_limits import check_document_fetch
from access.oauth.clients import clean_name, remove_unused_clients
from access.oauth.known_documents import KNOWN_DOCUMENTS
from access.oauth.redirect_uris import RedirectRefused, check_redirect_uris
from kernel.database.connections import release_connection
from kernel.database.tenancy import hub_wide
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DOCUMENT = 16 * 1024
FRESH_S = 60 * 60  # read again afterwards, when the program asks for something
GRANT_TYPES = ("authorization_code", "refresh_token")
_fetched_for: ContextVar[str] = ContextVar("toolhub_document_fetched_for", default="")


@contextmanager
def fetching_for(person: str) -> Iterator[None]:
    """Within it, the document of a program that is not known yet is fetched. Elsewhere it stays unknown."""
    token = _fetched_for.set(person)
    try:
        yield
    finally:
        _fetched_for.reset(token)


class FetchPermission:
    """Named in the settings of django-oauth-toolkit, which asks before each fetch."""

    def has_permission(self, request: Any, client_id: str) -> bool:
        del request, client_id
        person = _fetched_for.get()
        if not person:
            return False
        check_document_fetch(person)
        return True


class DocumentFetcher:
    """Named in the settings of django-oauth-toolkit, which keeps what it gives."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """The document and for how many seconds it is good; ``CIMDError`` for whatever is none."""
        _check_client_id(client_id)
        release_connection()
        refusal = None
        try:
            document = _ask(client_id)
        except CIMDError as error:
            refusal, document = error, KNOWN_DOCUMENTS.get(client_id)
        with hub_wide():  # programs belong to no tenant, and somebody of another may have let one in
            # What the address has answered before stays: it is no older than what a release knows.
            if refusal and (document is None or Application.objects.filter(client_id=client_id).exists()):
                raise refusal
            read = read_document(document, client_id)
            remove_unused_clients()
        return read, FRESH_S


def _ask(client_id: str) -> Any:
    try:
        answer = send_request(
            client_id,
            headers={"Accept": "application/json"},
            statuses=(200,),
            most_bytes=MAX_DOCUMENT,
            networks=list(settings.TOOLHUB_CLIENT_DOCUMENT_NETWORKS),  # strangers name it
        )
    except (AddressRefused, OutboundFailed) as error:
        raise CIMDError(str(error)) from error
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
        raise CIMDError("The document is not JSON.")
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise CIMDError("The document is not JSON.") from error


def _check_client_id(client_id: str) -> None:
    """An https address with a path that can be read in one way only; :func:`send_request` looks at the rest. People read its host, so
    a name in other letters is given as it is asked for (``xn--…``).
    """
    if not client_id.isascii() or not client_id.isprintable() or " " in client_id:
        raise CIMDError("A client's id is written in visible ASCII characters.")
    parts = urlsplit(client_id)
    odd = parts.scheme != "https" or "@" in parts.netloc or "#" in client_id or not parts.path.strip("/")
    if odd or {".", ".."} & set(unquote(parts.path).split("/")):
        raise CIMDError("A client's id is an https:// address with a path.")


def read_document(document: Any, client_id: str) -> dict[str, Any]:
    """What the hub takes of it. Grants that it has not are left out, as the program leaves them out that reads our metadata."""
    if not isinstance(document, dict) or document.get("client_id") != client_id:
        raise CIMDError("The document is not this client's.")
    try:
        redirects = check_redirect_uris(document.get("redirect_uris"))
    except RedirectRefused as refused:
        raise CIMDError(str(refused)) from refused
    grants = document.get("grant_types", ["authorization_code"])
    if not isinstance(grants, list) or "authorization_code" not in grants:
        raise CIMDError("The client does not use authorization codes.")
    kept = {name: document[name] for name in ("client_secret", "client_secret_expires_at") if name in document}
    return {
        **kept,  # which a document must not have: it is refused for it
        "client_id": client_id,
        "client_name": clean_name(document.get("client_name")),
        "redirect_uris": redirects,
        "grant_types": [each for each in GRANT_TYPES if each in grants],
        "token_endpoint_auth_method": _choose_method(document),
    }


def _choose_method(document: dict[str, Any]) -> Any:
    """How the program shows at the token endpoint who it is. One that prefers a signature and can do without (ChatGPT) is public here,
    as it reads in our metadata.
    """
    supported = document.get("token_endpoint_auth_methods_supported")
    if isinstance(supported, list) and "none" in supported:
        return "none"
    return document.get("token_endpoint_auth_method", "none")
