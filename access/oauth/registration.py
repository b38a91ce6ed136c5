"""Registration: how a program that has no document of its own makes itself known (RFC 7591).

It gets an id, and nothing that opens anything: no right follows from being known, and what has registered cannot change or remove
itself (no RFC 7592). Narrow on purpose: authorization codes and refresh tokens only, and redirect URIs of kinds that can be checked.
"""

from __future__ import annotations

from typing import Any

from access.oauth.clients import (
    REGISTERED,
    clean_name,
    create_client,
    make_room_for_client,
    remove_unused_clients,
)
from access.oauth.redirect_uris import RedirectRefused, check_redirect_uris

GRANTS = ("authorization_code", "refresh_token")
METHODS = ("none", "client_secret_post", "client_secret_basic")


class RegistrationRefused(Exception):
    """In the words of RFC 7591 §3.2.2."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        self.error, self.description, self.status = error, description, status
        super().__init__(error)


def _refuse(error: str, description: str) -> RegistrationRefused:
    return RegistrationRefused(error, description)


def _texts(metadata: dict[str, Any], name: str, usual: list[str]) -> list[str]:
    value = metadata.get(name, usual)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _refuse("invalid_client_metadata", f"{name} is a list of texts.")
    return value


def register_client(metadata: Any) -> dict[str, Any]:
    """A new client; what is answered to it. What it asks for beyond what there is, it is told that it has not got."""
    if not isinstance(metadata, dict):
        raise _refuse("invalid_client_metadata", "Send a JSON object.")
    try:
        redirects = check_redirect_uris(metadata.get("redirect_uris"))
    except RedirectRefused as refused:
        raise _refuse("invalid_redirect_uri", str(refused)) from refused
    grants = _texts(metadata, "grant_types", ["authorization_code"])
    if "authorization_code" not in grants or "client_credentials" in grants:
        raise _refuse("invalid_client_metadata", "Programs that register use the grant authorization_code.")
    if "code" not in _texts(metadata, "response_types", ["code"]):
        raise _refuse("invalid_client_metadata", "The response type is code.")
    method = metadata.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in METHODS:
        raise _refuse("invalid_client_metadata", f"token_endpoint_auth_method is one of {', '.join(METHODS)}.")
    remove_unused_clients()
    if not make_room_for_client():
        raise RegistrationRefused(
            "temporarily_unavailable", "Too many programs have registered that nobody has let in yet.", 503
        )
    made, secret = create_client(
        name=clean_name(metadata.get("client_name")),
        redirect_uris=redirects,
        confidential=method != "none",
        source=REGISTERED,
    )
    return {
        "client_id": made.client_id,
        "client_id_issued_at": int(made.created.timestamp()),
        **({"client_secret": secret, "client_secret_expires_at": 0} if secret else {}),
        **({"client_name": made.name} if made.name else {}),
        "redirect_uris": redirects,
        "grant_types": [each for each in GRANTS if each in {*grants, "refresh_token"}],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    }
