"""Renewals: the access token for a call, and newer ones where it has run out.

A refresh token is often good for once, so one process alone asks: it takes the row by compare-and-set for a while, and the others look
again until it has ended. No transaction is open while the server is asked.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q

from access.models import ServerAccount, ServerAccountState
from access.server_accounts.answers import ServerSilent
from access.server_accounts.discovery import AuthorizationTerms
from access.server_accounts.problems import AccountRequired, AccountUnavailable
from access.server_accounts.services import (
    RAN_OUT,
    REFUSED,
    account_url,
    build_token_client,
    end_account,
    lock_account,
    note_client_refused,
)
from access.server_accounts.token_requests import OF_THE_CLIENT, OF_THE_TOKENS, TokenRefused, refresh_tokens
from access.server_accounts.token_returns import return_unkept_tokens
from access.server_accounts.token_seals import TOKEN_COLUMNS, open_tokens, seal_tokens
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.server_accounts import RefreshedServerAccount
from kernel.database.connections import database_time, release_connection
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from access.server_accounts.token_requests import TokenAnswer
    from access.server_accounts.token_seals import AccountTokens

AHEAD = timedelta(seconds=60)  # before its end: a call lasts a while
TAKEN_FOR = timedelta(seconds=45)  # longer than a request may take
WAIT_S = 30.0
LOOK_S = 0.1
CLIENT_REMEDY = (
    "Operators: look under Account servers at who the hub is there. "
    "Once it is somebody else there, the person connects again."
)


def fetch_access_token(account_id: UUID, *, check_wanted: Callable[[], object] = lambda: None) -> str:
    """For the worker that runs a call which was accepted with this account, and nobody else. :class:`AccountRequired` where it has
    ended, :class:`AccountUnavailable` where newer tokens are needed and cannot be had now. ``check_wanted`` raises where nobody waits
    for it any more."""
    until = time.monotonic() + WAIT_S
    while True:
        account = ServerAccount.objects.select_related("server", "subject_key__tenant_key").get(pk=account_id)
        check_connected(account)
        now = database_time()
        if not account.is_due(now + AHEAD):
            return open_tokens(account).access
        if not account.refreshable:
            if not account.is_due(now):
                return open_tokens(account).access
            raise _end(account, why=RAN_OUT)
        if _take(account, now):
            return _refresh(account)
        if time.monotonic() > until:
            raise AccountUnavailable("Newer tokens are being fetched for too long already.")
        release_connection()
        time.sleep(LOOK_S)
        check_wanted()


def check_connected(account: ServerAccount) -> None:
    if not account.is_connected:
        raise AccountRequired(
            f"The account at {account.server.host} is not connected any more.",
            details={"account": account.wire_id, "person": account.person, "url": account_url(account)},
        )


def _take(account: ServerAccount, now: datetime) -> bool:
    """Whether this process asks; with the tokens that it has seen and no others."""
    free = Q(refreshing_until=None) | Q(refreshing_until__lte=now)
    mine = ServerAccount.objects.filter(free, pk=account.pk, number=account.number, state=ServerAccountState.CONNECTED)
    return mine.update(refreshing_until=now + TAKEN_FOR) == 1


def _refresh(account: ServerAccount) -> str:
    tokens, terms = open_tokens(account), AuthorizationTerms.from_json(account.terms)
    client = build_token_client(account.server, tokens, account)
    try:
        found = refresh_tokens(client, tokens, resource=terms.resource)
    except TokenRefused as error:
        if error.error == OF_THE_TOKENS:
            raise _end(account, why=REFUSED) from error
        if error.error in OF_THE_CLIENT:
            note_client_refused(account.server_id, issuer=account.issuer, client_id=account.client_id)
            return _go_without(account, tokens, str(error), remedy=CLIENT_REMEDY)
        return _go_without(account, tokens, str(error))
    except ServerSilent as error:
        return _go_without(account, tokens, str(error))
    try:
        access = _keep(account, tokens, found)
    except Exception:  # it has ended meanwhile, or cannot be written, and what comes for it is for nobody
        return_unkept_tokens(account, found.tokens, client=client, terms=terms)
        raise
    if access != found.tokens.access:  # it has come too late, and newer ones are kept
        return_unkept_tokens(account, found.tokens, client=client, terms=terms)
    return access


def _go_without(account: ServerAccount, tokens: AccountTokens, why: str, *, remedy: str = "") -> str:
    """The token is used that is there, as long as it lasts; the next call asks again."""
    ServerAccount.objects.filter(pk=account.pk, number=account.number).update(refreshing_until=None)
    if account.is_due(database_time()):
        raise AccountUnavailable(why, remedy=remedy)
    return tokens.access


@transaction.atomic
def _keep(account: ServerAccount, before: AccountTokens, found: TokenAnswer) -> str:
    number, account, now = account.number, lock_account(account.pk), database_time()
    check_connected(account)
    if account.number != number:  # the time for asking was over, and somebody else has asked since
        return open_tokens(account).access
    seal_tokens(account, found.tokens, person=account.person)
    account.number, account.refreshed_at, account.refreshing_until = number + 1, now, None
    account.expires_at = found.find_end(now)
    account.scopes = found.scopes if found.scopes is not None else account.scopes
    account.save(update_fields=[*TOKEN_COLUMNS, "number", "refreshed_at", "refreshing_until", "expires_at", "scopes"])
    evidence.record(
        kind=Kind.SERVER_ACCOUNT_REFRESHED,
        subject=account.wire_id,
        actor=Principal.system("server_accounts", tenant_id=account.tenant_id),
        data=RefreshedServerAccount(number=account.number, rotated=found.tokens.refresh != before.refresh),
    )
    return found.tokens.access


def _end(account: ServerAccount, *, why: str) -> AccountRequired:
    """What the call is refused with. The end is written, whatever becomes of the call."""
    with transaction.atomic():
        locked = lock_account(account.pk)
        if locked.is_connected and locked.number == account.number:
            end_account(locked, why=why, by=Principal.system("server_accounts", tenant_id=locked.tenant_id))
    return AccountRequired(
        f"{account.server.host} gives no newer tokens for this account, so it is not connected any more.",
        details={"account": account.wire_id, "person": account.person, "url": account_url(account)},
    )


def note_token_refused(account_id: UUID, *, since: datetime, is_certain: bool) -> None:
    """The server did not take the token of a call that began then: the next call fetches a newer one first. Where none is to be had
    the account ends, if it is certain that the token was refused, and not the call."""
    account = ServerAccount.objects.select_related("server").filter(pk=account_id).first()
    if account is None or not account.is_connected or (account.refreshed_at or since) > since:
        return
    if account.refreshable:
        rows = ServerAccount.objects.filter(pk=account.pk, number=account.number, state=ServerAccountState.CONNECTED)
        rows.update(expires_at=database_time())
    elif is_certain:
        _end(account, why=REFUSED)
