"""Which agent sends this request?

DRF authentication by ``Authorization: Bearer …``: an API key (``hub_…``), or a token (:mod:`access.tokens`). One query finds
key, agent and tenant; nothing is cached, so a revoked key stops counting with the next request, and so do its tokens.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication

from access import keys
from access.budgets.rates import check_failed_key
from access.models import ApiKey
from access.tokens import looks_like_token, read_token
from toolhub.kernel.principal import ActorKind, Principal
from toolhub.kernel.problems import Unauthenticated
from toolhub.kernel.rows import Reading
from toolhub.kernel.tenancy import act_for, hub_wide

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request

log = logging.getLogger("toolhub.authentication")
SCHEME = "Bearer"
USED_EVERY = timedelta(minutes=1)  # a key's last use is written down no more often
KEY = Reading(lambda lookup: ApiKey.objects.select_related("agent").filter(lookup=lookup), lookup=str)
NOT_VALID = "This API key is not valid. It may be mistyped, revoked or expired, or not for use from here."
REMEDY = "Ask an operator of your tenant for a new key."


def key_of(text: str, *, address: str = "") -> ApiKey:
    """The key with its agent; the same sentence for every way of being wrong, so that nothing can be probed."""
    lookup = keys.lookup_of(text)
    with hub_wide():  # whose key it is, is what is asked
        key = KEY.first(lookup=lookup) if lookup else None
    if key is None or not keys.matches(text, bytes(key.digest)):
        raise Unauthenticated(NOT_VALID, remedy=REMEDY)
    check_works(key, address=address)
    return key


class NotInForce(Exception):
    """Behind an :class:`Unauthenticated`: the secret was right, so it is known whose key it is, but it does not work now or here."""

    def __init__(self, key: ApiKey) -> None:
        self.agent = key.agent
        super().__init__(key.wire_id)


def check_works(key: ApiKey, *, address: str) -> None:
    ended = key.revoked_at or key.expires_at <= timezone.now() or key.agent.disabled_at
    if ended or (key.networks and not _is_within(address, key.networks)):
        raise Unauthenticated(NOT_VALID, remedy=REMEDY) from NotInForce(key)


def _is_within(address: str, networks: list[str]) -> bool:
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in map(ip_network, networks) if network.version == mapped.version)


def note_use(key: ApiKey) -> None:
    """Write down that the key is in use. A hub that is busy elsewhere answers all the same."""
    now = timezone.now()
    if key.last_used_at is not None and key.last_used_at > now - USED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
    try:
        with hub_wide():
            ApiKey.objects.filter(stale, pk=key.pk).update(last_used_at=now)
    except DatabaseError as error:
        log.warning("The last use of %s could not be written: %s", key.wire_id, error)


def principal_of_key(text: str, *, address: str = "") -> Principal:
    """The agent that holds this key."""
    return _principal(key_of(text, address=address))


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


def principal_of(text: str, *, address: str) -> Principal:
    """The agent of a key or of a token."""
    if looks_like_token(text):
        found = read_token(text)
        if isinstance(found, Principal):
            return found
        key, scopes = found
        check_works(key, address=address)
    else:
        key, scopes = key_of(text, address=address), None
    note_use(key)
    return _principal(key, scopes)


def principal_of_header(header: str, *, address: str) -> Principal:
    """The agent of an ``Authorization`` header. Who fails too often is told to wait."""
    try:
        return principal_of(_credential(header), address=address)
    except Unauthenticated as problem:
        check_failed_key(address, because=problem)
        raise


def _credential(header: str) -> str:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != SCHEME.lower() or not text.strip():
        raise Unauthenticated(
            "This request carries no API key.", remedy="Send the header `Authorization: Bearer <your key>`."
        )
    return text.strip()


class ApiKeyAuthentication(BaseAuthentication):
    """``request.user`` is the :class:`Principal`."""

    def authenticate(self, request: Request) -> tuple[Any, None]:
        return self.principal_of(request), None

    def principal_of(self, request: Request) -> Principal:
        address = request.META.get("REMOTE_ADDR", "")
        principal = principal_of_header(request.headers.get("Authorization", ""), address=address)
        act_for(principal.tenant_id)
        return principal

    def authenticate_header(self, request: Request) -> str:
        return f'{SCHEME} realm="toolhub"'


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tells drf-spectacular what the header is."""

    target_class = "access.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "hub_… or JWT"}
