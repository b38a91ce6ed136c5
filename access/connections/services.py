"""Connections: how one is opened, and how it ends."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Q

from access.budgets.rate_limits import client_network
from access.connections.connection_rules import find_bounds
from access.connections.rights import CONNECT
from access.models import Agent, Connection, ConnectionToken, EnteredClient
from access.notifications.services import list_channels, notify_channels
from access.object_permissions.rules import allowed_on
from access.roles import AGENT_SCOPES
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.connections import (
    EndedConnection,
    MetClient,
    OpenedConnection,
    RefusedConnection,
    SteppedUpConnection,
)
from kernel.database.connections import database_time
from kernel.ids import encode_user
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

    from access.models import TrustedIssuer
    from access.oauth.clients import Client

USED_EVERY = timedelta(minutes=1)
REVOKED, BY_CLIENT, REUSE, LEFT, REMOVED, UNVOUCHED = "revoked", "client", "reuse", "left", "removed", "unvouched"
DECLINED, ASKED = "declined", "asked"
REQUESTED = "connection.requested"
MAX_TOOLS = 500


def check_may_connect(agent: Agent, *, by: Principal) -> None:
    if by.kind is not ActorKind.USER:
        raise Forbidden("Only a person lets programs act as an agent.")
    if agent.disabled_at is not None:
        raise Forbidden(f"The agent {agent.name} is disabled.", remedy="Ask an operator to enable it.")
    if CONNECT not in allowed_on(by, agent):
        raise Forbidden(
            f"{by.name} may not let programs act as the agent {agent.name}.",
            remedy=f"Ask somebody who manages the agent for the permission {CONNECT}.",
            details={"missing": CONNECT},
        )


@transaction.atomic
def open_connection(
    *,
    agent_id: UUID,
    member: Any,
    client: Client,
    redirect_host: str,
    resource: str,
    scopes: Iterable[str],
    tools: Iterable[str] | None,
    refreshable: bool,
    days: int,
    code_digest: str,
    form_digest: str,
    by: Principal,
) -> Connection:
    """Let a program act as the agent. It gets its tokens for the code, of which the hub keeps the digest.

    ``form_digest``: of the form that a person sent. Sent twice, as by a double click, it opens one connection.
    """
    now = database_time()
    forget_old_tokens(tenant_id=by.tenant_id, now=now)
    agent = Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    check_may_connect(agent, by=by)
    check_is_known(client, by=by)
    wanted = [scope for scope in AGENT_SCOPES if scope in set(scopes)]
    if not wanted:
        raise SchemaInvalid.at("/scopes", "Let the program do at least one thing.")
    bounds = find_bounds(by.tenant_id)
    if not 1 <= days <= bounds.days:
        raise SchemaInvalid.at("/days", f"A connection lasts 1 to {bounds.days} days.")
    names = None if tools is None else sorted(set(tools))
    if names is not None and not 1 <= len(names) <= MAX_TOOLS:
        raise SchemaInvalid.at("/tools", f"Choose 1 to {MAX_TOOLS} tools, or all.")
    lasts = timedelta(days=days)
    chosen = {"agent_id": agent.pk, "scopes": wanted, "tools": names, "refreshable": refreshable}
    opened = Connection.objects.select_for_update().filter(form_digest=form_digest, tenant_id=by.tenant_id).first()
    if opened is not None:
        return _replace_code(opened, code_digest=code_digest, is_same=_is_as_chosen(opened, lasts=lasts, **chosen))
    note_client(client, by=by)
    held = find_held_scopes(agent, member=member, client_id=client.id)
    connection = Connection(
        tenant_id=by.tenant_id,
        member=member,
        client_id=client.id,
        client_kind=client.kind,
        client_name=client.name,
        client_digest=client.digest,
        redirect_host=redirect_host,
        resource=resource,
        until=now + lasts,
        code_digest=code_digest,
        form_digest=form_digest,
        opened_at=now,
        **chosen,
    )
    try:
        with transaction.atomic():
            connection.save(force_insert=True)
    except IntegrityError:  # sent at the same moment for another agent
        raise _build_sent_already() from None
    record_opening(connection, once=not refreshable, by=by)
    if held and set(wanted) - set(held):
        evidence.record(
            kind=Kind.CONNECTION_STEPPED_UP,
            subject=connection.wire_id,
            actor=by,
            data=SteppedUpConnection(
                agent=agent.wire_id,
                client=client.id,
                before=held,
                added=[scope for scope in wanted if scope not in held],
            ),
        )
    return connection


def find_held_scopes(agent: Agent, *, member: Any, client_id: str) -> list[str]:
    """What this person has let the program do as the agent so far, in connections that are alive."""
    rows = Connection.objects.live(database_time()).filter(agent=agent, member=member, client_id=client_id)
    held = {scope for scopes in rows.values_list("scopes", flat=True) for scope in scopes}
    return [scope for scope in AGENT_SCOPES if scope in held]


def record_opening(connection: Connection, *, once: bool, by: Principal, issuer: str | None = None) -> None:
    """The fact of it, in the transaction that has made the row."""
    evidence.record(
        kind=Kind.CONNECTION_OPENED,
        subject=connection.wire_id,
        actor=by,
        data=OpenedConnection(
            agent=connection.agent.wire_id,
            member=by.id,
            client=connection.client_id,
            redirect_host=connection.redirect_host,
            resource=connection.resource,
            scopes=connection.scopes,
            tools=connection.tools,
            until=connection.until.isoformat(),
            once=once,
            issuer=issuer,
        ),
    )


def forget_old_tokens(*, tenant_id: UUID, now: datetime) -> None:
    """Those of connections that have run out, and assertions that cannot be shown again."""
    of_tenant = ConnectionToken.objects.filter(connection__tenant_id=tenant_id)
    assertion = ConnectionToken.TokenKind.ASSERTION
    of_tenant.filter(connection__until__lt=now).exclude(kind=assertion).delete()
    of_tenant.filter(kind=assertion, expires_at__lt=now).delete()


def check_is_known(client: Client, *, by: Principal) -> None:
    """One that was entered by hand is the program of its tenant alone, and stays until this is done: who removes it waits."""
    if client.tenant_id is None:
        return
    of_it = EnteredClient.objects.filter(application__client_id=client.id, tenant_id=by.tenant_id)
    if not of_it.select_for_update(of=("self",)).exists():
        raise Conflict(
            "This program is not known here any more.", remedy="Ask somebody who manages agents to enter it again."
        )


def _is_as_chosen(connection: Connection, *, lasts: timedelta, **chosen: Any) -> bool:
    same = all(getattr(connection, name) == value for name, value in chosen.items())
    return same and connection.until - connection.opened_at == lasts


def _replace_code(connection: Connection, *, code_digest: str, is_same: bool) -> Connection:
    """A browser goes where the last answer sends it, so the last code is the one that is good."""
    if connection.redeemed_at is not None or connection.ended_at is not None or not is_same:
        raise _build_sent_already()
    connection.code_digest = code_digest
    connection.save(update_fields=["code_digest"])
    return connection


def _build_sent_already() -> Conflict:
    return Conflict("This form was sent already.", remedy="Connect the program again.")


def note_client(client: Client, *, by: Principal) -> None:
    """A fact for each program that the tenant has not let in as it is now."""
    known = Connection.objects.filter(tenant_id=by.tenant_id, client_id=client.id, client_digest=client.digest)
    if not known.exists():
        evidence.record(
            kind=Kind.CLIENT_MET,
            subject=by.id,
            actor=by,
            data=MetClient(client=client.id, how=str(client.kind), host=client.host, digest=client.digest),
        )


@transaction.atomic
def refuse_connection(*, client: Client, redirect_host: str, why: str, by: Principal) -> int:
    """How many notification channels are told: whoever may not let it act as an agent asks those who may give the permission."""
    evidence.record(
        kind=Kind.CONNECTION_REFUSED,
        subject=by.id,
        actor=by,
        data=RefusedConnection(member=by.id, client=client.id, redirect_host=redirect_host, why=why),
    )
    if why != ASKED:
        return 0
    said = {"member": by.name, "program": client.known_as or redirect_host, "url": f"/people/{by.id}"}
    return notify_channels(REQUESTED, subject=by.id, body=said, tenant_id=by.tenant_id)


def has_request_channel(by: Principal) -> bool:
    """Whether anybody hears of a request to connect a program: a notification channel of the tenant that wants to."""
    return bool(list_channels(REQUESTED, tenant_id=by.tenant_id))


# Ending.


def write_connection_end(connection: Connection, *, why: str, by: Principal) -> None:
    """In the transaction of the caller, which has locked the row."""
    if connection.ended_at is not None:
        return
    connection.ended_at, connection.ended_by, connection.end_reason = database_time(), by.id, why
    connection.save(update_fields=["ended_at", "ended_by", "end_reason"])
    # An assertion that was used stays known: it opened this connection, and is to open no other.
    connection.tokens.exclude(kind=ConnectionToken.TokenKind.ASSERTION).delete()
    evidence.record(
        kind=Kind.CONNECTION_ENDED,
        subject=connection.wire_id,
        actor=by,
        data=EndedConnection(agent=connection.agent.wire_id, client=connection.client_id, why=why),
    )


def lock_connection(**which: Any) -> Connection:
    return Connection.objects.select_for_update(of=("self",)).select_related("agent__tenant", "member").get(**which)


def may_end(connection: Connection, *, by: Principal) -> bool:
    """Who opened it, and who manages its agent; of its tenant."""
    if connection.tenant_id != by.tenant_id:
        return False
    return encode_user(connection.member_id) == by.id or manages_agent(connection.agent, by=by)


def manages_agent(agent: Agent, *, by: Principal) -> bool:
    return "agents.manage" in allowed_on(by, agent)


@transaction.atomic
def end_connection(*, connection_id: UUID, by: Principal) -> Connection:
    """The program's next request is refused, and streams that it follows end with their next look."""
    connection = lock_connection(pk=connection_id, tenant_id=by.tenant_id)
    if not may_end(connection, by=by):
        raise Forbidden(
            "Who opened a connection ends it, or who manages its agent.",
            remedy="Ask an operator.",
            details={"missing": "agents.manage"},
        )
    write_connection_end(connection, why=REVOKED, by=by)
    return connection


def end_connections_of(member: Any, *, tenant_id: UUID, by: Principal) -> None:
    """Those of somebody who leaves the tenant, in the transaction of the caller."""
    _end_all(LEFT, tenant_id=tenant_id, member=member, by=by)


def end_vouched_connections(issuer: TrustedIssuer, *, by: Principal) -> int:
    """How many there were, of those for which an identity provider has vouched, in the transaction of the caller."""
    return _end_all(UNVOUCHED, tenant_id=by.tenant_id, issuer=issuer, by=by)


def end_connections_with(client_id: str, *, by: Principal) -> int:
    """How many there were, of a program that is removed, in the transaction of the caller."""
    return _end_all(REMOVED, tenant_id=by.tenant_id, client_id=client_id, by=by)


def _end_all(why: str, *, by: Principal, **which: Any) -> int:
    rows = Connection.objects.select_for_update(of=("self",)).select_related("agent")
    found = list(rows.filter(ended_at=None, **which).order_by("pk"))
    for connection in found:
        write_connection_end(connection, why=why, by=by)
    return len(found)


def note_connection_use(connection: Connection, *, address: str, now: datetime) -> None:
    """Write down that it is in use, at most once a minute."""
    network = client_network(address)[:64]
    if connection.last_used_at is None or connection.last_used_at <= now - USED_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
        Connection.objects.filter(stale, pk=connection.pk).update(last_used_at=now, last_used_from=network)
