"""Client documents: what a program says of itself at the address that is its id (CIMD), fetched as all foreign addresses are.

The name is resolved once and connected to as it was found, private addresses are refused, redirects are not followed.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

from oauth2_provider.cimd import CIMDError

from access.oauth.clients import clean_name
from access.oauth.redirect_uris import RedirectRefused, check_redirect_uris
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request

MAX_DOCUMENT = 16 * 1024
FRESH_S = 60 * 60  # read again afterwards, when the program asks for something
GRANT_TYPES = ("authorization_code", "refresh_token")


class DocumentFetcher:
    """Named in the settings of django-oauth-toolkit, which keeps what it gives."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """The document and for how many seconds it is good; ``CIMDError`` for whatever is none."""
        _check_client_id(client_id)
        try:
            answer = send_request(
                client_id, headers={"Accept": "application/json"}, statuses=(200,), most_bytes=MAX_DOCUMENT
            )
        except (AddressRefused, OutboundFailed) as error:
            raise CIMDError(str(error)) from error
        media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json" and not (media.startswith("application/") and media.endswith("+json")):
            raise CIMDError("The document is not JSON.")
        try:
            document = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise CIMDError("The document is not JSON.") from error
        return read_document(document, client_id), FRESH_S


def _check_client_id(client_id: str) -> None:
    """An https address with a path that can be read in one way only; :func:`send_request` looks at the rest."""
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
        "token_endpoint_auth_method": document.get("token_endpoint_auth_method", "none"),
    }
