"""Token returns: how tokens that nobody keeps any more are given back to who gave them (RFC 7009).

They wait in rows of their own until the authorization server has answered, so that no page waits for it, and a server that is down is
asked again. What it does not take in the end runs out by itself: the row says so, and the person and the operators read it. Once the
account is connected anew, or goes on with others, nothing is given back: some servers end with one token all that the person has
given the client.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from django.db import DatabaseError, transaction

from access.models import ReturnedTokens, ReturnState, ServerAccount, ServerAccountState
from access.server_accounts.answers import ServerSilent
from access.server_accounts.discovery import AuthorizationTerms
from access.server_accounts.services import build_token_client, return_tokens
from access.server_accounts.token_requests import TokenRefused, revoke_tokens
from access.server_accounts.token_seals import clear_returned_tokens, open_tokens
from evidence.deliveries import queue
from evidence.deliveries.queue import DeliveryQueue, claim_row, run_queue
from evidence.problems import KeyUnavailable, ValuesErased
from kernel.database.connections import database_time, release_connection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from access.server_accounts.token_requests import TokenClient
    from access.server_accounts.token_seals import AccountTokens

log = logging.getLogger("toolhub.token_returns")
PAUSES_S = (30.0, 120.0, 600.0, 3600.0, 6 * 3600.0)
BATCH = 50
TOO_LATE = "The account had newer tokens when these came, and giving them back could end those."


class TokenReturnQueue(DeliveryQueue[ReturnedTokens]):
    name = "returned tokens"
    log = log
    every_s = 2.0
    at_once = 4
    limits: ClassVar[Mapping[str, int]] = {"host": 2}  # of who is asked, whatever the hub is called there

    def list_due(self) -> Iterable[ReturnedTokens]:
        rows = ReturnedTokens.objects.filter(state=ReturnState.WAITING, next_attempt_at__lte=database_time())
        return rows.select_related("account__server", "subject_key__tenant_key").order_by("next_attempt_at")[:BATCH]

    def claim_due(self, row: ReturnedTokens) -> bool:
        row.attempts += 1
        return claim_row(ReturnedTokens.objects.filter(state=ReturnState.WAITING), row, attempts=row.attempts)

    def serve_row(self, row: ReturnedTokens) -> int:
        if _is_connected_anew(row):
            # Of an account that was replaced it is as it should be; of one that goes on, a renewal has come too late.
            return _finish(row, ReturnState.LAPSED, TOO_LATE if row.account.is_connected else "")
        try:
            tokens = open_tokens(row)
            client = build_token_client(row.account.server, tokens, row)
        except ValuesErased:
            return _finish(row, ReturnState.LAPSED, "Their person was erased, so nobody can read them.")
        except KeyUnavailable as error:
            return _put_off(row, str(error))
        release_connection()
        try:
            revoke_tokens(client, tokens, endpoint=row.endpoint)
        except TokenRefused as error:
            return _finish(row, ReturnState.LAPSED, str(error))
        except ServerSilent as error:
            return _put_off(row, str(error))
        return _finish(row, ReturnState.RETURNED, "")


def _is_connected_anew(row: ReturnedTokens) -> bool:
    return _is_connected(row.account, client_id=row.client_id, issuer=AuthorizationTerms.from_json(row.terms).issuer)


def _is_connected(account: ServerAccount, *, client_id: str, issuer: str) -> bool:
    """Whether the same client has tokens of the same person for this server by now, from who gave these."""
    rows = ServerAccount.objects.filter(member_id=account.member_id, server_id=account.server_id)
    return rows.filter(state=ServerAccountState.CONNECTED, client_id=client_id, issuer=issuer).exists()


def _finish(row: ReturnedTokens, state: ReturnState, error: str) -> int:
    """The tokens go; returns how many were taken. ``error``: what somebody is to be told, empty where there is nothing."""
    clear_returned_tokens(row)
    row.state, row.next_attempt_at, row.last_error = state, None, error[: queue.MAX_ERROR]
    row.save(
        update_fields=["subject_key", "token_key", "nonce", "ciphertext", "state", "next_attempt_at", "last_error"]
    )
    if error:
        log.warning("Tokens of an account were not given back to %s: %s", row.host, error)
    return int(state == ReturnState.RETURNED)


def _put_off(row: ReturnedTokens, why: str) -> int:
    """For a while each time; in the end the tokens go untaken."""
    if row.attempts > len(PAUSES_S):
        return _finish(row, ReturnState.LAPSED, why)
    row.next_attempt_at = database_time() + timedelta(seconds=PAUSES_S[row.attempts - 1])
    row.last_error = why[: queue.MAX_ERROR]
    row.save(update_fields=["next_attempt_at", "last_error"])
    return 0


def return_unkept_tokens(
    account: ServerAccount, tokens: AccountTokens, *, client: TokenClient, terms: AuthorizationTerms
) -> None:
    """Tokens that have come and could not be kept. Where not even that can be written, they are given back here and now, but for those
    of an account that goes on with others."""
    try:
        with transaction.atomic():
            return_tokens(account, tokens, client_id=client.id, terms=terms.to_json())
    except Exception as error:  # noqa: BLE001  whoever calls has the reason why they are not kept, and raises it
        log.warning("That tokens are to be given back could not be written: %s", error)
        if _goes_on(account, client_id=client.id, issuer=terms.issuer):
            log.warning("Tokens of an account were not given back: %s", TOO_LATE)
        else:
            _give_back_now(client, tokens, terms)


def _goes_on(account: ServerAccount, *, client_id: str, issuer: str) -> bool:
    """Also where the database is away; it was connected then when newer tokens were asked for."""
    try:
        return _is_connected(account, client_id=client_id, issuer=issuer)
    except DatabaseError:
        return account.is_connected


def _give_back_now(client: TokenClient, tokens: AccountTokens, terms: AuthorizationTerms) -> None:
    if not terms.revocation_endpoint:
        return
    try:
        revoke_tokens(client, tokens, endpoint=terms.revocation_endpoint)
    except (ServerSilent, TokenRefused) as error:
        log.warning("Tokens of an account were not given back: %s", error)


QUEUE = TokenReturnQueue()
return_due = partial(queue.send_due, QUEUE)
run_token_returns = partial(run_queue, QUEUE)
