"""Authorization requests: what a program asks a person for, read from its address, and how it is answered.

The page that asks the person carries the request signed, for this person and this session; the answer is computed from it anew, and
nothing that a form says makes it wider.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from django.conf import settings
from django.core import signing
from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauthlib.common import add_params_to_uri, urlencoded
from oauthlib.oauth2 import FatalClientError, InvalidClientIdError, OAuth2Error

from access.connections.resources import find_resource
from access.models import Connection
from access.oauth.client_documents import fetching_for
from access.oauth.clients import ENTERED, Application, Client, describe_client, find_entered_client
from access.roles import AGENT_SCOPES
from kernel.canonical import compute_digest
from kernel.problems import Malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from access.models import EnteredClient, Tenant

PATH = "/oauth/authorize"
SALT = "toolhub.authorization-request"
SIGNED_FOR_S = 30 * 60
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_QUERY = 8000
MAX_STATE = 2000
SIMPLE = ("client_id", "redirect_uri", "state", "response_type", "code_challenge", "code_challenge_method", "prompt")


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """``query``: as it was sent. ``scopes``: those asked for that may be had."""

    query: str
    client: Client
    redirect_uri: str
    state: str
    scopes: tuple[str, ...]
    resource: str
    prompts: frozenset[str]


class AnsweredByRedirect(Exception):
    """The request is refused in a way that its program is told: ``uri`` is where the person's browser goes."""

    def __init__(self, uri: str, error: str, description: str) -> None:
        self.uri, self.error, self.description = uri, error, description
        super().__init__("refused")


def build_answer(redirect_uri: str, state: str, **said: str) -> str:
    """The redirect URI with the answer, and by whom it is (RFC 9207): on errors too, or a refusal would look like an attack."""
    named = {**said, "state": state, "iss": settings.TOOLHUB_PUBLIC_URL}
    return str(add_params_to_uri(redirect_uri, [(name, value) for name, value in named.items() if value]))


def _refuse(redirect_uri: str, state: str, error: str, description: str) -> AnsweredByRedirect:
    uri = build_answer(redirect_uri, state, error=error, error_description=description)
    return AnsweredByRedirect(uri, error, description)


def _server() -> Any:
    return get_oauthlib_core().server


def _uri(query: str) -> str:
    """With what browsers leave as it is, and oauthlib refuses, escaped: ``{ } [ ] | ^`` and what is no ASCII."""
    escaped = "".join(each if each in urlencoded else quote(each) for each in query)
    return f"{settings.TOOLHUB_PUBLIC_URL}{PATH}?{escaped}"


def read_authorization_request(query: str, *, user: Any, tenants: Iterable[Tenant]) -> AuthorizationRequest:
    """``user``: who was sent here with it, for whom the program's document is fetched; ``tenants``: theirs. Raises :class:`Malformed`
    where nobody may be sent anywhere, since neither program nor address is known, or they have let the program in never before;
    anybody registers one, and would have the hub send people where it likes (RFC 9700 §4.11.2). Else :class:`AnsweredByRedirect` for
    its mistakes.
    """
    try:
        return _read(query, user=user, tenants=tenants)
    except AnsweredByRedirect as answer:
        client_id = dict(parse_qsl(query)).get("client_id", "")
        if Connection.objects.filter(member=user, client_id=client_id).exists():
            raise
        raise Malformed(
            "The program that sent you here made a mistake. You have not let it in before, so you are not sent back to it.",
            remedy="Connect it again. Should it stay so, tell its makers what stands below.",
            details={"error": answer.error, "description": answer.description},
        ) from answer


def _refuse_unknown(error: OAuth2Error) -> Malformed:
    return Malformed(
        "The program that sent you here is not known, or may not be answered at the address that it names.",
        remedy="Connect it again. Should it stay so, tell its makers what stands below.",
        details={"error": error.error, "description": error.description},
    )


def _find_entered(client_id: str, tenants: Iterable[Tenant]) -> EnteredClient | None:
    """Of a program that was entered by hand: to whom is of another tenant, it is as one that nobody knows."""
    entered = find_entered_client(client_id)
    if entered is not None and entered.tenant_id not in {each.pk for each in tenants}:
        raise _refuse_unknown(InvalidClientIdError())
    return entered


def _read(query: str, *, user: Any, tenants: Iterable[Tenant]) -> AuthorizationRequest:
    if len(query) > MAX_QUERY:
        raise Malformed("This request is too long.")
    pairs = parse_qsl(query, keep_blank_values=True)
    said = {name: value for name, value in pairs if name in SIMPLE}
    state = said.get("state", "")
    if len(state) > MAX_STATE:
        raise Malformed("The state of this request is too long.")
    try:
        entered = _find_entered(said.get("client_id", ""), tenants)
        with fetching_for(str(user.pk)):
            asked, credentials = _server().validate_authorization_request(_uri(query))
    except FatalClientError as error:
        raise _refuse_unknown(error) from error
    except OAuth2Error as error:
        # Only what is fatal comes before the address was checked, so that this one is the program's own.
        raise _refuse(error.redirect_uri, state, error.error, error.description or "") from error
    except ValueError as error:
        raise Malformed("This request cannot be read.") from error
    redirect_uri = credentials["redirect_uri"]
    if said.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(said.get("code_challenge", "")):
        raise _refuse(redirect_uri, state, "invalid_request", "The code_challenge is one of the method S256.")
    if any(name == "response_mode" and value != "query" for name, value in pairs):
        raise _refuse(redirect_uri, state, "invalid_request", "The response_mode is query.")
    resource = find_resource([value for name, value in pairs if name == "resource" and value])
    if resource is None:
        raise _refuse(redirect_uri, state, "invalid_target", "The hub has no such resource.")
    prompts = frozenset(said.get("prompt", "").split())
    if "none" in prompts:
        raise _refuse(redirect_uri, state, "interaction_required", "A person is asked each time.")
    application = Application.objects.get(client_id=credentials["client_id"])
    if application.registration_source == ENTERED and entered is None:  # by nobody of a tenant
        raise _refuse_unknown(InvalidClientIdError())
    return AuthorizationRequest(
        query=query,
        client=describe_client(application, entered),
        redirect_uri=redirect_uri,
        state=state,
        scopes=tuple(scope for scope in AGENT_SCOPES if scope in asked) or AGENT_SCOPES,
        resource=resource,
        prompts=prompts,
    )


def sign_request(request: AuthorizationRequest, *, user: Any, session: str) -> str:
    """For the form: what was asked, of whom, in which session, and by a program that said of itself what the person read."""
    said = [request.query, user.pk, compute_digest(session), request.client.digest]
    return signing.dumps(said, salt=SALT, compress=True)


def open_signed_request(text: str, *, user: Any, session: str, tenants: Iterable[Tenant]) -> AuthorizationRequest:
    try:
        query, pk, session_digest, digest = signing.loads(text, salt=SALT, max_age=SIGNED_FOR_S)
    except signing.BadSignature as error:
        raise Malformed(
            "This form was not made by the hub, or was open for too long. Nothing was changed.",
            remedy="Connect the program again.",
        ) from error
    if pk != user.pk or session_digest != compute_digest(session):
        raise Malformed(
            "This form was made for somebody else, or before you signed in anew. Nothing was changed.",
            remedy="Connect the program again.",
        )
    found = read_authorization_request(query, user=user, tenants=tenants)
    if found.client.digest != digest:
        raise Malformed(
            "The program says something else of itself than a moment ago. Nothing was changed.",
            remedy="Connect it again, and look who asks.",
        )
    return found


def answer_request(
    request: AuthorizationRequest, *, user: Any, scopes: list[str], open_connection: Callable[..., Any]
) -> str:
    """Open the connection; where the browser goes with its code."""
    said = dict(parse_qsl(request.query))
    credentials = {
        "client_id": request.client.id,
        "redirect_uri": request.redirect_uri,
        "response_type": "code",
        "state": request.state or None,
        "code_challenge": said["code_challenge"],
        "code_challenge_method": said["code_challenge_method"],
        "user": user,
        "open_connection": open_connection,
    }
    try:
        headers, _, _ = _server().create_authorization_response(
            _uri(request.query), scopes=scopes, credentials=credentials
        )
    except OAuth2Error as error:
        raise _refuse(request.redirect_uri, request.state, error.error, error.description or "") from error
    return str(add_params_to_uri(headers["Location"], [("iss", settings.TOOLHUB_PUBLIC_URL)]))
