"""Which agent sends this request?

DRF authentication by API key, as ``Authorization: Bearer hub_…``. One query finds key, agent and tenant; nothing is
cached, so a revoked key stops counting with the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication

from access import keys
from access.models import ApiKey
from toolhub.kernel.principal import ActorKind, Principal
from toolhub.kernel.problems import Unauthenticated
from toolhub.kernel.tenancy import act_for, hub_wide

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request

SCHEME = "Bearer"
NOT_VALID = "This API key is not valid. It may be mistyped, revoked or expired."
REMEDY = "Ask an operator of your tenant for a new key."


def principal_of_key(text: str) -> Principal:
    """The agent that holds this key; the same sentence for every way of being wrong, so that nothing can be probed."""
    lookup = keys.lookup_of(text)
    with hub_wide():  # whose key it is, is what is asked
        key = ApiKey.objects.select_related("agent").filter(lookup=lookup).first() if lookup else None
    if key is None or not keys.matches(text, bytes(key.digest)):
        raise Unauthenticated(NOT_VALID, remedy=REMEDY)
    if key.revoked_at or key.expires_at <= timezone.now() or key.agent.disabled_at:
        raise Unauthenticated(NOT_VALID, remedy=REMEDY)
    return Principal(
        kind=ActorKind.AGENT,
        id=key.agent.wire_id,
        name=key.agent.name,
        tenant_id=key.agent.tenant_id,
        allowed=frozenset(key.scopes),
        agent_id=key.agent_id,
        key_id=key.id,
    )


class ApiKeyAuthentication(BaseAuthentication):
    """``request.user`` is the :class:`Principal`."""

    def authenticate(self, request: Request) -> tuple[Any, None]:
        header = request.headers.get("Authorization", "")
        scheme, _, text = header.partition(" ")
        if scheme.lower() != SCHEME.lower() or not text.strip():
            raise Unauthenticated(
                "This request carries no API key.", remedy="Send the header `Authorization: Bearer <your key>`."
            )
        principal = principal_of_key(text.strip())
        act_for(principal.tenant_id)
        return principal, None

    def authenticate_header(self, request: Request) -> str:
        return f'{SCHEME} realm="toolhub"'


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Tells drf-spectacular what the header is."""

    target_class = "access.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "hub_…"}
