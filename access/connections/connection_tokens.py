"""Connection tokens: what a program is given for its connection, and what it means that it shows one again.

An authorization code and each refresh token are good for once. Whoever shows one again shows that somebody else has it, too: the
connection ends. Only a program that asks twice at the same time is told no and keeps what it has.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from access.budgets.rate_limits import client_network
from access.connections.connection_rules import find_bounds
from access.connections.rights import is_in_force
from access.connections.services import BY_CLIENT, REUSE, lock_connection, write_connection_end
from access.models import Connection, ConnectionToken
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.connections import DetectedReuse
from kernel.database.connections import database_time
from kernel.principal import Principal

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

RETRY_WINDOW = timedelta(seconds=10)  # within it, a program that asks again is one that did not wait


def _hub(connection: Connection) -> Principal:
    return Principal.system("authorization", tenant_id=connection.tenant_id)


def _end_reused(connection: Connection, what: str) -> None:
    if connection.ended_at is None:
        evidence.record(
            kind=Kind.CONNECTION_REUSE_DETECTED,
            subject=connection.wire_id,
            actor=_hub(connection),
            data=DetectedReuse(agent=connection.agent.wire_id, what=what),
        )
        write_connection_end(connection, why=REUSE, by=_hub(connection))


def _is_client_retry(at: datetime | None, network: str, address: str) -> bool:
    """Whether what comes a second time comes so soon, and from the same place, that its program did not wait."""
    return at is not None and database_time() - at < RETRY_WINDOW and network == client_network(address)


def add_tokens(connection: Connection, *, access: str, refresh: str | None, expires_in: int) -> int:
    """By their digests; how many seconds the access token lasts, which is no longer than its tenant lets it."""
    now, bounds = database_time(), find_bounds(connection.tenant_id)
    end = bounds.find_end(connection)
    lasts = min(now + timedelta(seconds=expires_in), now + bounds.token, end)
    rows = [
        ConnectionToken(connection=connection, kind=ConnectionToken.TokenKind.ACCESS, digest=access, expires_at=lasts)
    ]
    if refresh is not None:
        idle = min(now + bounds.idle, end)
        rows.append(
            ConnectionToken(
                connection=connection, kind=ConnectionToken.TokenKind.REFRESH, digest=refresh, expires_at=idle
            )
        )
    ConnectionToken.objects.bulk_create(rows)
    return max(1, int((lasts - now).total_seconds()))


@transaction.atomic
def redeem_code(
    *, code_digest: str, access: str, refresh: str, expires_in: int, client_id: str, address: str
) -> tuple[Connection, int] | None:
    """The first tokens of a connection, by their digests, and how many seconds they last; None when the code is worth nothing.

    What is shown again ends the connection, so the answer is given and not raised: the end must be written.
    """
    try:
        connection = lock_connection(code_digest=code_digest, client_id=client_id)
    except Connection.DoesNotExist:
        return None
    if connection.redeemed_at is not None:
        if not _is_client_retry(connection.redeemed_at, connection.redeemed_from, address):
            _end_reused(connection, "code")
        return None
    now = database_time()
    if not is_in_force(connection, now=now) or find_bounds(connection.tenant_id).find_end(connection) <= now:
        return None
    connection.redeemed_at, connection.redeemed_from = database_time(), client_network(address)
    connection.save(update_fields=["redeemed_at", "redeemed_from"])
    kept = refresh if connection.refreshable else None
    return connection, add_tokens(connection, access=access, refresh=kept, expires_in=expires_in)


@transaction.atomic
def note_code_shown_again(*, code_digest: str, address: str) -> None:
    """Of a code that is not known, or not any more: whoever shows one that was used ends what it opened."""
    try:
        connection = lock_connection(code_digest=code_digest, redeemed_at__isnull=False)
    except Connection.DoesNotExist:
        return
    if not _is_client_retry(connection.redeemed_at, connection.redeemed_from, address):
        _end_reused(connection, "code")


def find_resource_of_code(code_digest: str) -> str:
    """What the tokens for this code are for; empty where there is no such code."""
    return Connection.objects.filter(code_digest=code_digest).values_list("resource", flat=True).first() or ""


def find_refresh_token(digest: str, *, client_id: str) -> ConnectionToken | None:
    """The row of a refresh token that this program was given, used or not."""
    return (
        ConnectionToken.objects.select_related("connection__agent__tenant", "connection__member")
        .filter(digest=digest, kind=ConnectionToken.TokenKind.REFRESH, connection__client_id=client_id)
        .first()
    )


@transaction.atomic
def rotate_tokens(
    *, token_id: UUID, access: str, refresh: str, expires_in: int, address: str
) -> tuple[Connection, int] | None:
    """Newer tokens for a refresh token; None when it is worth nothing. All that ask at once are asked one after the other."""
    connection_ids = ConnectionToken.objects.filter(pk=token_id).values_list("connection_id", flat=True)
    connection_id = connection_ids.first()
    if connection_id is None:
        return None
    connection = lock_connection(pk=connection_id)
    token = connection.tokens.filter(pk=token_id).first()
    now = database_time()
    if token is None or token.expires_at <= now or not is_in_force(connection, now=now):
        return None
    bounds = find_bounds(connection.tenant_id)
    # The tenant may say less by now than when the token was given.
    if min(bounds.find_end(connection), token.created_at + bounds.idle) <= now:
        return None
    if token.used_at is not None:
        if not _is_client_retry(token.used_at, token.used_from, address):
            _end_reused(connection, "refresh_token")
        return None
    token.used_at, token.used_from = now, client_network(address)
    token.save(update_fields=["used_at", "used_from"])
    connection.tokens.filter(kind=ConnectionToken.TokenKind.ACCESS).delete()
    return connection, add_tokens(connection, access=access, refresh=refresh, expires_in=expires_in)


@transaction.atomic
def give_back_token(*, digest: str, client_id: str) -> None:
    """The program gives a token back (RFC 7009), and with it all that the person let it do. Nothing is said of what is not its own."""
    token = ConnectionToken.objects.filter(digest=digest, connection__client_id=client_id).first()
    if token is not None:
        connection = lock_connection(pk=token.connection_id)
        write_connection_end(connection, why=BY_CLIENT, by=_hub(connection))
