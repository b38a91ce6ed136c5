"""Account security: who gives a person's tokens for a service, by the security schemes of its document.

An operation may be asked as the person whom a call is for, by their own account at the service, where its document names a provider of
OpenID Connect or the flow of OAuth 2.0 in which a person agrees.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.manifest import manifest_schema
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.security import list_schemes

if TYPE_CHECKING:
    from unitools.openapi.documents import OpenApiDocument

MAX_SCOPES = 50
NAME = "account"  # of the token, where secrets are named
CREDENTIAL = {"secret": NAME, "in": "header", "name": "Authorization", "scheme": "bearer"}
_REMEDY = (
    "Name the scheme by account=NAME, correct it in the document, or bring the operation with a secret of the tenant."
)


class AccountChoice(NamedTuple):
    """``scheme``: by its name in the document; empty: the first of the operation that a person agrees to."""

    scheme: str = ""


def read_account(document: OpenApiDocument, said: Any, choice: AccountChoice, pointer: str) -> dict[str, Any] | None:
    """``implementation.operation.account`` of a manifest; None: the operation asks for nobody. Raises :class:`DocumentUnfit`."""
    ways = [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []
    if not any(ways):
        return None
    schemes, why = list_schemes(document), "It names no scheme in which a person agrees"
    for way in ways:
        if len(way) != 1 or (choice.scheme and choice.scheme not in way):
            continue
        [(name, scopes)] = way.items()
        found = _read_scheme(schemes.get(name, {}))
        if isinstance(found, dict):
            return found | {"scopes": _read_scopes(scopes, pointer)}
        why = found
    raise DocumentUnfit(pointer, f"The service cannot be asked as a person. {why}.", _REMEDY)


def _read_scheme(said: dict[str, Any]) -> dict[str, str] | str:
    """Where tokens come from; a sentence where they come from nowhere that the hub asks."""
    kind = said.get("type")
    if kind == "openIdConnect":
        return _keep({"openid_url": said.get("openIdConnectUrl")})
    flows = said.get("flows")
    flow = (
        flows.get("authorizationCode")
        if isinstance(flows, dict)
        else said
        if said.get("flow") == "accessCode"
        else None
    )
    if kind != "oauth2" or not isinstance(flow, dict):
        return "Its scheme is not OpenID Connect and has no authorization code flow of OAuth 2.0"
    return _keep({"authorization_url": flow.get("authorizationUrl"), "token_url": flow.get("tokenUrl")})


def _keep(found: dict[str, Any]) -> dict[str, str] | str:
    parts = manifest_schema()["properties"]["implementation"]["properties"]["operation"]["properties"]["account"]
    for name, value in found.items():
        if not isinstance(value, str) or len(value) > 400 or not re.search(parts["properties"][name]["pattern"], value):
            return f"Its {name.replace('_', ' ')} is no https address of a host by its name"
    return found


def _read_scopes(said: Any, pointer: str) -> list[str]:
    scopes = (
        list(dict.fromkeys(said)) if isinstance(said, list) and all(isinstance(each, str) for each in said) else None
    )
    if (
        scopes is None
        or len(scopes) > MAX_SCOPES
        or not all(re.fullmatch(r"[!#-\[\]-~]{1,200}", each) for each in scopes)
    ):
        raise DocumentUnfit(
            pointer, "The scopes of the operation are none that can be asked for.", "Correct the document."
        )
    return scopes
