"""Token requests: how the hub asks an authorization server elsewhere for tokens, for newer ones, and gives them back.

They go the guarded way of all outgoing requests: no redirect is followed, so that no code and no token goes anywhere else.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from access.server_accounts.answers import ServerSilent, ask, read_object
from access.server_accounts.discovery import keep_scopes
from access.server_accounts.token_seals import AccountTokens

if TYPE_CHECKING:
    from kernel.http.outbound import OutboundResponse

MAX_TOKEN = 16_384
MAX_LASTS_S = 10 * 365 * 24 * 3600
MAX_DIGITS = 12
_CODE = re.compile(r"[a-z_]{1,60}")  # of an error; agents are told it, too
_TOKEN = re.compile(r"[!-~]+")
# What is said of the tokens themselves: asking again gives nothing (RFC 6749, 5.2).
OF_THE_TOKENS = "invalid_grant"
# What is said of the hub, and of no person's account: somebody has to enter or register it anew.
OF_THE_CLIENT = frozenset({"invalid_client", "unauthorized_client"})


class TokenRefused(Exception):
    """The server says no, with its code."""

    def __init__(self, error: str) -> None:
        self.error = error
        super().__init__(f"The authorization server refused: {error}.")


@dataclass(frozen=True, slots=True)
class TokenClient:
    """Who asks. ``secret``: empty for a public client; ``methods``: how the server lets a client say its secret."""

    id: str
    secret: str
    token_endpoint: str
    methods: tuple[str, ...]

    def identify(self, form: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """The form and the headers of a request."""
        if not self.secret:
            return form | {"client_id": self.id}, {}
        if "client_secret_basic" not in self.methods and "client_secret_post" in self.methods:
            return form | {"client_id": self.id, "client_secret": self.secret}, {}
        pair = f"{quote(self.id, safe='')}:{quote(self.secret, safe='')}"
        return form, {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """``scopes``: None where the server says nothing of them; ``lasts``: None where it does not say how long."""

    tokens: AccountTokens
    scopes: list[str] | None
    lasts: timedelta | None

    def find_end(self, now: datetime) -> datetime | None:
        return None if self.lasts is None else now + self.lasts


def redeem_code(client: TokenClient, *, code: str, verifier: str, redirect_uri: str, resource: str) -> TokenAnswer:
    """:class:`TokenRefused`, :class:`ServerSilent`."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": redirect_uri,
    }
    return _ask_for_tokens(client, form | _name(resource))


def _name(resource: str) -> dict[str, str]:
    """What the tokens are for (RFC 8707). A service that says nothing of itself is not asked by it: some servers refuse what they do
    not know."""
    return {"resource": resource} if resource else {}


def refresh_tokens(client: TokenClient, tokens: AccountTokens, *, resource: str) -> TokenAnswer:
    """Newer ones; where the server gives no other refresh token the old one stays. :class:`TokenRefused`, :class:`ServerSilent`."""
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh} | _name(resource)
    found = _ask_for_tokens(client, form)
    if found.tokens.refresh:
        return found
    return replace(found, tokens=replace(found.tokens, refresh=tokens.refresh))


def revoke_tokens(client: TokenClient, tokens: AccountTokens, *, endpoint: str) -> None:
    """RFC 7009; both of them, since not every server ends one with the other. :class:`ServerSilent` where it is to be asked again,
    :class:`TokenRefused` where it does not take one of them."""
    refused = ""
    for kind, token in (("refresh_token", tokens.refresh), ("access_token", tokens.access)):
        if token:
            form, headers = client.identify({"token": token, "token_type_hint": kind})
            refused = _read_revocation(_post(endpoint, form, headers)) or refused
    if refused:
        raise TokenRefused(refused)


def _read_revocation(answer: OutboundResponse) -> str:
    """Why a token is not taken; empty: it is, or is known to be good no more, or ends with the other one only."""
    if answer.status == 429 or not 200 <= answer.status < 500 or 300 <= answer.status < 400:
        raise ServerSilent(f"The authorization server answered {answer.status}.")
    if answer.status < 300:
        return ""
    error = _read_code((read_object(answer) or {}).get("error"))
    return "" if error == "unsupported_token_type" else error


def _read_code(said: Any) -> str:
    return said if isinstance(said, str) and _CODE.fullmatch(said) else "unknown"


def _post(url: str, form: dict[str, str], headers: dict[str, str]) -> OutboundResponse:
    sent = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return ask(url, method="POST", body=urlencode(form).encode(), headers=sent)


def _ask_for_tokens(client: TokenClient, form: dict[str, str]) -> TokenAnswer:
    form, headers = client.identify(form)
    answer = _post(client.token_endpoint, form, headers)
    said = read_object(answer)
    if answer.status in (400, 401, 403) and said is not None and isinstance(said.get("error"), str):
        raise TokenRefused(_read_code(said["error"]))
    if 300 <= answer.status < 400:
        raise ServerSilent("The authorization server points to another address, where no token is asked for.")
    if answer.status != 200 or said is None:
        raise ServerSilent(f"The authorization server answered {answer.status}.")
    return _read_answer(said, client)


def _read_answer(said: dict[str, Any], client: TokenClient) -> TokenAnswer:
    access, refresh = said.get("access_token"), said.get("refresh_token") or ""
    if not _is_token(access) or (refresh and not _is_token(refresh)):
        raise ServerSilent("The authorization server gave no token that can be sent.")
    if str(said.get("token_type", "")).lower() != "bearer":
        raise ServerSilent("The authorization server gave a token of a kind that the hub does not send.")
    lasts, scope = said.get("expires_in"), said.get("scope")
    if isinstance(lasts, str) and lasts.isascii() and lasts.isdecimal() and len(lasts) <= MAX_DIGITS:
        lasts = int(lasts)
    is_time = isinstance(lasts, int | float) and not isinstance(lasts, bool) and 0 <= lasts <= MAX_LASTS_S
    return TokenAnswer(
        AccountTokens(str(access), str(refresh), client.secret),
        keep_scopes(scope.split()) if isinstance(scope, str) and scope.strip() else None,
        timedelta(seconds=float(lasts)) if is_time else None,  # type: ignore[arg-type]
    )


def _is_token(said: Any) -> bool:
    return isinstance(said, str) and len(said) <= MAX_TOKEN and _TOKEN.fullmatch(said) is not None
