"""Bearer authentication: the agent that sends a request.

DRF authentication by ``Authorization: Bearer …``: an API key (``hub_…``), a token (:mod:`access.oauth.tokens`), or what a program
shows that a person has let in (``hubo_…``, :mod:`access.connections`). One way to the database and back finds whose it is and whether
it counts; nothing is cached, so what was revoked stops counting with the next request.
"""

from __future__ import annotations

import logging
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from django.db import DatabaseError, connection
from django.db.models import Q
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication

from access.agents import api_keys
from access.authentication.known_keys import find_known_holder, remember_holder
from access.budgets.rate_limits import check_failed_key
from access.connections import token_texts
from access.connections.resources import covers_resource, hub_resource
from access.connections.rights import find_ended_connections, is_alive, select_permitted
from access.connections.services import USED_EVERY, note_connection_use
from access.models import ApiKey, Connection, ConnectionToken
from access.oauth.tokens import looks_like_token, read_token
from kernel.database.connections import database_time
from kernel.database.prepared_statements import fetch_prepared_by_scope
from kernel.database.rows import PreparedQuery, fetch_together
from kernel.database.tenancy import HUB, act_for, hub_wide
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal, UsedConnection
from kernel.problems import Unauthenticated

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request

    from access.authentication.known_keys import KeyHolder, ReadAhead
    from access.models import Agent

log = logging.getLogger("toolhub.authentication")
SCHEME = "Bearer"
KEY = PreparedQuery(lambda lookup: ApiKey.objects.select_related("agent").filter(lookup=lookup), lookup=str)
TOKEN = PreparedQuery(
    lambda digest: ConnectionToken.objects.select_related("connection__agent").filter(
        digest=digest, kind=ConnectionToken.TokenKind.ACCESS
    ),
    digest=str,
)
PERMITTED = PreparedQuery(
    lambda digest: select_permitted(
        Connection.objects.filter(tokens__digest=digest, tokens__kind=ConnectionToken.TokenKind.ACCESS)
    ),
    digest=str,
)
NOT_VALID = "This API key is not valid. It may be mistyped, revoked or expired, or not for use from here."
REMEDY = "Ask an operator of your tenant for a new key."


def find_valid_key(text: str, *, address: str = "", ahead: ReadAhead | None = None) -> ApiKey:
    """The key with its agent; the same sentence for every way of being wrong, so that nothing can be probed."""
    lookup = api_keys.extract_lookup(text)
    holder = find_known_holder(text) if lookup and ahead is not None else None
    if holder is not None and ahead is not None and connection.vendor == "postgresql":
        key = _find_with_more(lookup, holder, ahead)
    else:
        with hub_wide():  # whose key it is, is what is asked
            key = KEY.first(lookup=lookup) if lookup else None
    if key is None or not api_keys.matches_digest(text, bytes(key.digest)):
        raise Unauthenticated(NOT_VALID, remedy=REMEDY)
    check_works(key, address=address)
    return key


def _find_with_more(lookup: str, holder: KeyHolder, ahead: ReadAhead) -> ApiKey | None:
    """The key as it is now, and in the same exchange what is asked for whom this process takes for its holder."""
    more = [(str(holder.tenant_id), *each) for each in ahead.prepare(holder)]
    rows, *found = fetch_prepared_by_scope((HUB, *KEY.fill_in(lookup=lookup)), *more)
    ahead.take(holder, found)
    return next(iter(KEY.read(rows)), None)


class NotInForce(Exception):
    """Behind an :class:`Unauthenticated`: the secret was right, so it is known whose key it is, but it does not work now or here."""

    def __init__(self, agent: Agent, credential: str) -> None:
        self.agent = agent
        super().__init__(credential)


def check_works(key: ApiKey, *, address: str) -> None:
    ended = key.revoked_at or key.expires_at <= database_time() or key.agent.disabled_at
    if ended or (key.networks and not _is_within(address, key.networks)):
        raise Unauthenticated(NOT_VALID, remedy=REMEDY) from NotInForce(key.agent, key.wire_id)


def _is_within(address: str, networks: list[str]) -> bool:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in map(ip_network, networks) if network.version == mapped.version)


def note_use(key: ApiKey) -> None:
    """Write down that the key is in use. A hub that is busy elsewhere answers all the same."""
    now = database_time()
    if key.last_used_at is not None and key.last_used_at > now - USED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
    try:
        with hub_wide():
            ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    except DatabaseError as error:
        log.warning("The last use of %s could not be written: %s", key.wire_id, error)


def resolve_key_principal(text: str, *, address: str = "") -> Principal:
    """The agent that holds this key."""
    return _principal(find_valid_key(text, address=address))


def _principal(key: ApiKey, scopes: frozenset[str] | None = None) -> Principal:
    return Principal(
        kind=ActorKind.AGENT,
        id=key.agent.wire_id,
        name=key.agent.name,
        tenant_id=key.agent.tenant_id,
        allowed=frozenset(key.scopes) if scopes is None else scopes,
        agent_id=key.agent_id,
        key_id=key.id,
    )


NOT_CONNECTED = (
    "This token is not valid. It may have expired, be for another address of the hub, or its connection has ended."
)
CONNECT_AGAIN = "Connect again: sign in and choose the agent."


def resolve_connection_principal(text: str, *, address: str, resource: str) -> Principal:
    """The agent as which a person has let a program act. For another ``resource`` the token is none."""
    asked = {"digest": token_texts.compute_token_digest(text)}
    with hub_wide():  # whose token it is, is what is asked
        well_formed = token_texts.is_well_formed(text)
        found, permitted = fetch_together((TOKEN, asked), (PERMITTED, asked)) if well_formed else ([], [])
        if not found:
            raise Unauthenticated(NOT_CONNECTED, remedy=CONNECT_AGAIN)
        token, now = found[0], database_time()
        connection = token.connection
        lasts = token.expires_at > now and is_alive(connection, now=now) and permitted
        if not lasts or not covers_resource(connection.resource, resource):
            raise Unauthenticated(NOT_CONNECTED, remedy=CONNECT_AGAIN) from NotInForce(
                connection.agent, connection.wire_id
            )
        try:
            note_connection_use(connection, address=address, now=now)
        except DatabaseError as error:
            log.warning("The last use of %s could not be written: %s", connection.wire_id, error)
    return Principal(
        kind=ActorKind.AGENT,
        id=connection.agent.wire_id,
        name=connection.agent.name,
        tenant_id=connection.tenant_id,
        allowed=frozenset(connection.scopes),
        agent_id=connection.agent_id,
        connection=UsedConnection(
            connection.pk,
            client=connection.client_id,
            member=encode_user(connection.member_id),
            token_ends=token.expires_at,
        ),
    )


def check_still_connected(by: Principal) -> None:
    """Before what a program has waited for is given to it; nothing for all others."""
    if by.connection is not None and find_ended_connections([by.connection.id]):
        raise Unauthenticated(NOT_CONNECTED, remedy=CONNECT_AGAIN)


def resolve_principal(text: str, *, address: str, resource: str = "", ahead: ReadAhead | None = None) -> Principal:
    """The agent of a key or of a token. ``resource``: the part of the hub that is asked, if it says so for itself.

    ``ahead``: what else is asked together with a key that is known, on PostgreSQL.
    """
    if text.startswith(token_texts.ACCESS):
        return resolve_connection_principal(text, address=address, resource=resource or hub_resource())
    if looks_like_token(text):
        found = read_token(text, resource=resource)
        if isinstance(found, Principal):
            return found
        key, scopes = found
        check_works(key, address=address)
    else:
        key, scopes = find_valid_key(text, address=address, ahead=ahead), None
    note_use(key)
    found = _principal(key, scopes)
    if scopes is None:
        remember_holder(text, found)
    return found


def resolve_header_principal(
    header: str, *, address: str, resource: str = "", ahead: ReadAhead | None = None
) -> Principal:
    """The agent of an ``Authorization`` header. Who fails too often is told to wait. ``ahead``: as above."""
    try:
        return resolve_principal(_credential(header), address=address, resource=resource, ahead=ahead)
    except Unauthenticated as problem:
        check_failed_key(address, because=problem)
        raise


def find_header_holder(header: str) -> KeyHolder | None:
    """Whose the key of an ``Authorization`` header was when this process has found it good, which says nothing about now."""
    return find_known_holder(header.partition(" ")[2].strip())


def _credential(header: str) -> str:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != SCHEME.lower() or not text.strip():
        raise Unauthenticated(
            "This request carries no API key.", remedy="Send it as `Authorization: Bearer <your key>`."
        )
    return text.strip()


class ApiKeyAuthentication(BaseAuthentication):
    """``request.user`` is the :class:`Principal`."""

    def authenticate(self, request: Request) -> tuple[Any, None]:
        principal = resolve_header_principal(self.read_header(request), address=request.META.get("REMOTE_ADDR", ""))
        act_for(principal.tenant_id)
        return principal, None

    def read_header(self, request: Request) -> str:
        return str(request.headers.get("Authorization", ""))

    def authenticate_header(self, request: Request) -> str:
        return f'{SCHEME} realm="toolhub"'


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tells drf-spectacular what the header is."""

    target_class = "access.authentication.bearer.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "hub_…, hubo_… or JWT"}
