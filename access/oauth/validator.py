"""Validator: what django-oauth-toolkit and oauthlib ask the hub while they speak OAuth.

They read and check the protocol. What a code or a token is worth is kept with its :class:`Connection` and decided there
(:mod:`access.connections.services`): the tables of tokens that django-oauth-toolkit brings stay empty (docs/adr/0050). Codes and
secrets are kept as digests.
"""

from __future__ import annotations

import hmac
import json
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from oauth2_provider.models import get_grant_model
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from access.connections import connection_tokens, token_texts
from access.connections.resources import find_resource
from access.oauth.redirect_uris import RedirectRefused, check_redirect_uri
from access.roles import AGENT_SCOPES

Grant: Any = get_grant_model()
CODE_LASTS = timedelta(seconds=60)
S256 = "S256"
ELSEWHERE = (
    "offline_access",
    "openid",
    "claudeai",
)  # what clients ask for everywhere, the last of them for alone (Claude)
SECRET_FORM = "sha256:"  # noqa: S105  how a client's secret is kept: it has 256 bits, so a slow hash protects nothing


def hash_client_secret(secret: str) -> str:
    return SECRET_FORM + token_texts.compute_token_digest(secret)


def address_of(request: Any) -> str:
    return str(request.headers.get("REMOTE_ADDR", ""))


class HubValidator(OAuth2Validator):  # type: ignore[misc]
    """Only codes with PKCE (S256) and refresh tokens; everything else never gets here (:mod:`access.oauth.api`)."""

    # Clients.

    def _check_secret(self, provided_secret: str, stored_secret: str) -> bool:
        return bool(stored_secret) and hmac.compare_digest(hash_client_secret(provided_secret), stored_secret)

    def validate_redirect_uri(self, client_id: str, redirect_uri: str, request: Any, *_: Any, **__: Any) -> bool:
        try:
            check_redirect_uri(redirect_uri)
        except RedirectRefused:
            return False
        return bool(super().validate_redirect_uri(client_id, redirect_uri, request))

    def get_default_redirect_uri(self, client_id: str, request: Any, *_: Any, **__: Any) -> str | None:
        """Where there is one alone: a program that has several says which it means (OAuth 2.1 §4.1.1)."""
        registered = request.client.redirect_uris.split()
        return str(registered[0]) if len(registered) == 1 else None

    def is_origin_allowed(self, client_id: str, origin: str, request: Any, *_: Any, **__: Any) -> bool:
        """Headers for browsers are the endpoint's to set."""
        return False

    # What is asked for. Scopes are narrowed to what may be had and not refused: clients ask for what the last answer named.

    def validate_scopes(self, client_id: str, scopes: list[str], client: Any, request: Any, *_: Any, **__: Any) -> bool:
        named = set(scopes) - {"", *ELSEWHERE}  # some send an empty text
        return not named or not named.isdisjoint(AGENT_SCOPES)

    def get_default_scopes(self, client_id: str, request: Any, *_: Any, **__: Any) -> list[str]:
        return list(AGENT_SCOPES)

    def is_pkce_required(self, client_id: str, request: Any) -> bool:
        return True

    # Codes.

    def save_authorization_code(self, client_id: str, code: dict[str, str], request: Any, *_: Any, **__: Any) -> None:
        """With the connection that it opens, or not at all. ``request.open_connection`` is the page's."""
        if request.code_challenge_method != S256:
            raise errors.InvalidRequestError(description="The code_challenge_method is S256.", request=request)
        digest = token_texts.compute_token_digest(code["code"])
        now = timezone.now()
        with transaction.atomic():
            Grant.objects.filter(expires__lt=now - timedelta(hours=1)).delete()
            Grant.objects.create(
                application=request.client,
                user=request.user,
                code=digest,
                expires=now + CODE_LASTS,
                redirect_uri=request.redirect_uri,
                scope=" ".join(request.scopes),
                code_challenge=request.code_challenge,
                code_challenge_method=request.code_challenge_method,
                claims=json.dumps({}),
            )
            request.open_connection(code_digest=digest)

    def validate_code(self, client_id: str, code: str, client: Any, request: Any, *_: Any, **__: Any) -> bool:
        digest = token_texts.compute_token_digest(code)
        found = Grant.objects.select_related("user").filter(code=digest, application=client).first()
        if found is None:
            connection_tokens.note_code_shown_again(code_digest=digest, address=address_of(request))
            return False
        if found.is_expired():
            return False
        request.hub_grant, request.user, request.scopes = found, found.user, found.scope.split()
        return True

    # What follows is asked of the row as it was read: another request may use the code up meanwhile.

    def get_code_challenge(self, code: str, request: Any) -> str:
        return str(request.hub_grant.code_challenge)

    def get_code_challenge_method(self, code: str, request: Any) -> str:
        return str(request.hub_grant.code_challenge_method)

    def confirm_redirect_uri(
        self, client_id: str, code: str, redirect_uri: str, client: Any, request: Any, *_: Any, **__: Any
    ) -> bool:
        return bool(redirect_uri == request.hub_grant.redirect_uri)

    def invalidate_authorization_code(self, client_id: str, code: str, request: Any, *_: Any, **__: Any) -> None:
        Grant.objects.filter(pk=request.hub_grant.pk).delete()

    # Tokens.

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *_: Any, **__: Any) -> bool:
        if not token_texts.is_well_formed(refresh_token, token_texts.REFRESH):
            return False
        digest = token_texts.compute_token_digest(refresh_token)
        found = connection_tokens.find_refresh_token(digest, client_id=client.client_id)
        if found is None:
            return False
        request.hub_token, request.user = found, found.connection.member
        return True

    def get_original_scopes(self, refresh_token: str, request: Any, *_: Any, **__: Any) -> list[str]:
        return list(request.hub_token.connection.scopes)

    def is_within_original_scope(
        self, request_scopes: list[str], refresh_token: str, request: Any, *_: Any, **__: Any
    ) -> bool:
        """The newer token has the scopes of the connection, and says so."""
        return True

    def save_bearer_token(self, token: dict[str, Any], request: Any, *_: Any, **__: Any) -> None:
        self._check_resource(request)
        what: dict[str, Any] = {
            "access": token_texts.compute_token_digest(token["access_token"]),
            "refresh": token_texts.compute_token_digest(token["refresh_token"]),
            "expires_in": settings.TOOLHUB_CONNECTION_TOKEN_S,
            "address": address_of(request),
        }
        if request.grant_type == "authorization_code":
            given = connection_tokens.redeem_code(
                code_digest=request.hub_grant.code, client_id=request.client.client_id, **what
            )
        else:
            given = connection_tokens.rotate_tokens(token_id=request.hub_token.pk, **what)
        if given is None:
            raise errors.InvalidGrantError(request=request)
        connection, token["expires_in"] = given
        token["scope"] = " ".join(connection.scopes)
        if not connection.refreshable:
            del token["refresh_token"]

    def _check_resource(self, request: Any) -> None:
        """The one that the connection is for; who names none means it."""
        asked = [value for name, value in request.decoded_body or [] if name == "resource" and value]
        granted = (
            connection_tokens.find_resource_of_code(request.hub_grant.code)
            if request.grant_type == "authorization_code"
            else request.hub_token.connection.resource
        )
        if asked and find_resource(asked) != granted:
            raise errors.CustomOAuth2Error(
                error="invalid_target", description="The resource is not the one that was asked for.", request=request
            )

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *_: Any, **__: Any) -> None:
        connection_tokens.give_back_token(
            digest=token_texts.compute_token_digest(token), client_id=request.client.client_id
        )
