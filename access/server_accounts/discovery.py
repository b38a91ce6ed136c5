"""Discovery: which authorization server gives tokens for a server elsewhere, and how it is asked (RFC 9728, RFC 8414).

A service that a document describes says nothing of that itself: there it is the manifest that was reviewed.

All that is read here was written by others. Each document must name the one that was asked for, so that none speaks for another, and
what is asked afterwards goes the hub's guarded way.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from access.server_accounts.answers import ServerSilent, ask, check_address, read_host, read_object
from access.server_accounts.problems import AccountServerUnfit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
OPENID_DOCUMENT = "/.well-known/openid-configuration"
MAX_TEXT = 400
MAX_SCOPES = 50
_PARAMETER = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCOPE = re.compile(r"[!#-\[\]-~]{1,200}")
# Of a server of MCP, which answers 401 where it asks for a token.
_QUESTION = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()


@dataclass(frozen=True, slots=True)
class AuthorizationTerms:
    """What is known of who gives tokens. ``resource``: what they are for (RFC 8707), as the server itself names it; empty: it says
    nothing of itself."""

    resource: str
    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str = ""
    revocation_endpoint: str = ""
    says_issuer: bool = False  # in its answers (RFC 9207)
    knows_issuer: bool = True  # by its own name, which an answer may say; else by the address that gives tokens
    takes_documents: bool = False  # as ids of clients (CIMD)
    auth_methods: list[str] = field(default_factory=lambda: ["client_secret_basic"])  # at its token endpoint
    scopes: list[str] = field(default_factory=list)  # that the server asks for

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> AuthorizationTerms:
        return cls(**said)


def find_terms(resource: str, stated: Sequence[dict[str, str]]) -> AuthorizationTerms:
    """``stated``: what installed tools state of who gives tokens for it; nothing where they leave that to the server.
    :class:`AccountServerUnfit`, which says what is missing."""
    if len(stated) > 1:
        raise AccountServerUnfit(f"Installed tools name different authorization servers for {read_host(resource)}.")
    if not stated or not stated[0]:
        return discover_terms(resource)
    said = stated[0]
    return _read_openid(said["openid_url"]) if "openid_url" in said else _read_stated(said)


def _read_stated(said: dict[str, str]) -> AuthorizationTerms:
    """Whoever gives the tokens is known by the address where it does."""
    issuer = said["token_url"]
    return AuthorizationTerms(
        resource="",
        issuer=issuer,
        authorization_endpoint=_endpoint(said, "authorization_url", issuer),
        token_endpoint=_endpoint(said, "token_url", issuer),
        knows_issuer=False,
    )


def _read_openid(url: str) -> AuthorizationTerms:
    try:
        answer = ask(url)
    except ServerSilent as error:
        raise AccountServerUnfit(str(error)) from error
    said = read_object(answer) if answer.status == 200 else None
    issuer = str((said or {}).get("issuer"))
    if said is None or issuer.removesuffix("/") != url.removesuffix(OPENID_DOCUMENT) or len(issuer) > MAX_TEXT:
        raise AccountServerUnfit(f"{read_host(url)} has no document of OpenID Connect that names it as its issuer.")
    methods = _texts(said.get("code_challenge_methods_supported"))
    if methods and "S256" not in methods:
        raise AccountServerUnfit(f"{read_host(url)} does not take PKCE with S256.")
    return _read_server(said, issuer, resource="", scopes=[])


def discover_terms(resource: str) -> AuthorizationTerms:
    """:class:`AccountServerUnfit`, which says what is missing."""
    challenge = _read_challenge(resource)
    document, scopes = _find_resource_document(resource, challenge), challenge.get("scope", "").split()
    servers = _texts(document.get("authorization_servers"))
    if not servers:
        raise AccountServerUnfit(f"{read_host(resource)} names no authorization server.")
    issuer = servers[0]
    said = _find_server_document(issuer)
    if "S256" not in _texts(said.get("code_challenge_methods_supported")):
        raise AccountServerUnfit(f"{read_host(issuer)} does not say that it takes PKCE with S256.")
    return _read_server(
        said,
        issuer,
        resource=str(document["resource"]),
        scopes=keep_scopes(scopes or _texts(document.get("scopes_supported"))),
    )


def _read_server(said: dict[str, Any], issuer: str, *, resource: str, scopes: list[str]) -> AuthorizationTerms:
    methods = _texts(said.get("token_endpoint_auth_methods_supported"))
    return AuthorizationTerms(
        resource=resource,
        issuer=issuer,
        authorization_endpoint=_endpoint(said, "authorization_endpoint", issuer),
        token_endpoint=_endpoint(said, "token_endpoint", issuer),
        registration_endpoint=_endpoint(said, "registration_endpoint", issuer, needed=False),
        revocation_endpoint=_endpoint(said, "revocation_endpoint", issuer, needed=False),
        says_issuer=said.get("authorization_response_iss_parameter_supported") is True,
        takes_documents=said.get("client_id_metadata_document_supported") is True,
        auth_methods=methods or ["client_secret_basic"],
        scopes=scopes,
    )


def find_challenge(header: str) -> dict[str, str]:
    """The parameters of a Bearer challenge (RFC 9728, RFC 6750); none where there is no such challenge."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != "bearer":
        return {}
    return {name.lower(): (quoted or plain).replace('\\"', '"') for name, quoted, plain in _PARAMETER.findall(rest)}


def _read_challenge(resource: str) -> dict[str, str]:
    """What the server says to whoever comes without a token."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        answer = ask(resource, method="POST", body=_QUESTION, headers=headers)
    except ServerSilent as error:
        raise AccountServerUnfit(str(error)) from error
    return find_challenge(answer.headers.get("www-authenticate", "")) if answer.status == 401 else {}


def _find_resource_document(resource: str, challenge: dict[str, str]) -> dict[str, Any]:
    parts = urlsplit(resource)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    named = challenge.get("resource_metadata", "")
    # Who asks for a token at this very address may say that it is for all of its host; a document that was guessed may not.
    known = {resource.removesuffix("/"), origin} if named else {resource.removesuffix("/")}
    guesses = [named] if named else dict.fromkeys([f"{origin}{RESOURCE_METADATA}{path}", origin + RESOURCE_METADATA])
    for said in _documents(guesses):
        if str(said.get("resource")).removesuffix("/") in known:  # RFC 9728, 3.3
            return said
    raise AccountServerUnfit(
        f"{parts.hostname} does not say who gives tokens for it: no document of the protected resource (RFC 9728) names it."
    )


def _find_server_document(issuer: str) -> dict[str, Any]:
    try:
        parts = urlsplit(issuer)
    except ValueError as error:
        raise AccountServerUnfit(f"{issuer[:100]} is no address of an authorization server.") from error
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    if path:
        known.append(f"{origin}{path}/.well-known/openid-configuration")
    for said in _documents(known):
        if said.get("issuer") == issuer:  # letter by letter: another's document speaks for nobody else
            return said
    raise AccountServerUnfit(
        f"{parts.hostname} has no metadata of an authorization server that name it as their issuer."
    )


def _documents(urls: Any) -> Iterator[dict[str, Any]]:
    silent = None
    for url in urls:
        try:
            answer = ask(url)
        except ServerSilent as error:
            silent = error
            continue
        found = read_object(answer) if answer.status == 200 else None
        if found is not None:
            yield found
    if silent is not None:
        raise AccountServerUnfit(str(silent)) from silent


def _endpoint(said: dict[str, Any], name: str, issuer: str, *, needed: bool = True) -> str:
    found = said.get(name)
    if found is None and not needed:
        return ""
    if not isinstance(found, str) or len(found) > MAX_TEXT or not found.isprintable():
        raise AccountServerUnfit(f"{read_host(issuer)} names no {name}.")
    try:
        check_address(found)
    except ServerSilent as error:
        raise AccountServerUnfit(f"The {name} of {read_host(issuer)} is not asked: {error}") from error
    return found


def _texts(said: Any) -> list[str]:
    found = said if isinstance(said, list) else []
    return [each for each in found if isinstance(each, str) and 0 < len(each) <= MAX_TEXT and each.isprintable()]


def keep_scopes(said: list[str]) -> list[str]:
    """Those that are scopes (RFC 6749, 3.3), once each."""
    return [each for each in dict.fromkeys(said) if _SCOPE.fullmatch(each)][:MAX_SCOPES]
