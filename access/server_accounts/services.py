"""Server accounts: how a person is asked for one, what agents they let use it, and how it ends.

How tokens come and are renewed: :mod:`access.server_accounts.authorizations`, :mod:`access.server_accounts.renewals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction

from access.models import AccountServer, Membership, ReturnedTokens, ServerAccount, ServerAccountState
from access.models.server_accounts import SERVER_ACCOUNT_TRANSITIONS
from access.notifications.services import notify_channels
from access.server_accounts.clients import MAX_ID, MAX_SECRET
from access.server_accounts.discovery import AuthorizationTerms
from access.server_accounts.signals import account_changed
from access.server_accounts.token_requests import TokenClient
from access.server_accounts.token_seals import (
    CLIENT_COLUMNS,
    TOKEN_COLUMNS,
    clear_tokens,
    open_client_secret,
    seal_client_secret,
    seal_tokens,
)
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.server_accounts import AccountServerTerms, EndedServerAccount, ServerAccountUse
from kernel.database.connections import database_time
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, NotFound, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from access.server_accounts.token_seals import AccountTokens

DISCONNECTED, DECLINED, REFUSED, RAN_OUT = "disconnected", "declined", "refused", "ran_out"
REPLACED, LEFT, ERASED, REVOKED = "replaced", "left", "erased", "revoked"
REQUESTED_EVENT, ENDED_EVENT = "account.requested", "account.ended"
CLIENT_REFUSED_EVENT = "account.client_refused"
BY_ITSELF = (REFUSED, RAN_OUT)
BY_OTHERS = (*BY_ITSELF, REVOKED)  # the person has not done it, so they are told
# Nothing is given back: it is refused there already, or some servers would end with it what has just come in its place, too.
LET_LAPSE = (*BY_ITSELF, REPLACED)
OPEN = (ServerAccountState.REQUESTED, ServerAccountState.CONNECTED)


def account_path(account: ServerAccount) -> str:
    return f"/server-accounts/{account.wire_id}"


def account_url(account: ServerAccount) -> str:
    """Where the person connects it, and nobody else."""
    return f"{settings.TOOLHUB_PUBLIC_URL}{account_path(account)}"


# Finding.


def is_member(member_id: int, *, tenant_id: UUID) -> bool:
    """Whether somebody may act in the tenant at this moment."""
    return Membership.objects.filter(tenant_id=tenant_id, user_id=member_id, user__is_active=True).exists()


def find_open_account(member_id: int, *, tenant_id: UUID, resource: str) -> ServerAccount | None:
    """The one that is connected or asked for."""
    rows = ServerAccount.objects.select_related("server")
    return rows.filter(tenant_id=tenant_id, member_id=member_id, server__resource=resource, state__in=OPEN).first()


def check_is_own(account: ServerAccount, *, by: Principal) -> None:
    """Only the person whose account it is does anything with it."""
    if by.kind is not ActorKind.USER or account.tenant_id != by.tenant_id or account.person != by.id:
        raise Forbidden("This is the account of somebody else.", remedy="Each person connects their own.")


def lock_account(account_id: UUID) -> ServerAccount:
    rows = ServerAccount.objects.select_for_update(of=("self",))
    return rows.select_related("server", "subject_key__tenant_key").get(pk=account_id)


def lock_own(account_id: UUID, *, by: Principal) -> ServerAccount:
    account = lock_account(account_id)
    check_is_own(account, by=by)
    return account


# Asking.


def get_server(resource: str, *, tenant_id: UUID) -> AccountServer:
    """The row of a server that tools name, made the first time."""
    return AccountServer.objects.get_or_create(tenant_id=tenant_id, resource=resource)[0]


@transaction.atomic
def request_account(*, resource: str, member_id: int, agent: str = "", tool: str = "", by: Principal) -> ServerAccount:
    """Ask a person to connect their account at a server, or to let ``agent`` (``agt_…``) use the one that is connected. Asking again
    gives the same request back."""
    server = get_server(resource, tenant_id=by.tenant_id)
    which = {"tenant_id": by.tenant_id, "member_id": member_id, "server": server}
    account = ServerAccount.objects.filter(state__in=OPEN, **which).first()
    is_new = account is None
    if account is None:
        try:
            with transaction.atomic():
                account = ServerAccount.objects.create(**which)
        except IntegrityError:
            account = ServerAccount.objects.get(state__in=OPEN, **which)
    account = lock_account(account.pk)
    if not is_new and (not agent or agent in account.asked_by or agent in account.agents):
        return account
    account.asked_by = [*account.asked_by, agent] if agent else account.asked_by
    account.save(update_fields=["asked_by"])
    evidence.record(
        kind=Kind.SERVER_ACCOUNT_REQUESTED,
        subject=account.wire_id,
        actor=by,
        tool=tool,
        data=ServerAccountUse(member=account.person, resource=resource, agents=[agent] if agent else []),
    )
    said = {"member": name_member(account), "tool": tool, "url": account_path(account)}
    notify_channels(REQUESTED_EVENT, subject=account.wire_id, body=said, tenant_id=account.tenant_id)
    return account


def name_member(account: ServerAccount) -> str:
    return str(get_user_model().objects.get(pk=account.member_id).get_username())


# What the person says.


@transaction.atomic
def allow_agents(*, account_id: UUID, agents: Iterable[str], by: Principal) -> ServerAccount:
    """From now on these agents, and no others, may use the account on their own word that a call is for the person."""
    account = lock_own(account_id, by=by)
    check_open(account)
    account.agents = sorted(set(agents))
    account.asked_by = [each for each in account.asked_by if each not in account.agents]
    account.save(update_fields=["agents", "asked_by"])
    evidence.record(
        kind=Kind.SERVER_ACCOUNT_ALLOWED,
        subject=account.wire_id,
        actor=by,
        data=ServerAccountUse(member=account.person, resource=account.server.resource, agents=account.agents),
    )
    account_changed.send(ServerAccount, account=account, by=by)
    return account


@transaction.atomic
def disconnect_account(*, account_id: UUID, by: Principal) -> ServerAccount:
    """Calls stop at once; the tokens are given back where the authorization server takes them."""
    account = lock_own(account_id, by=by)
    end_account(account, why=DISCONNECTED if account.is_connected else DECLINED, by=by)
    return account


@transaction.atomic
def revoke_account(*, account_id: UUID, by: Principal) -> ServerAccount:
    """An operator ends somebody's account; whose it is may connect anew."""
    account = ServerAccount.objects.filter(pk=account_id, tenant_id=by.tenant_id).first()
    if account is None:
        raise NotFound("There is no such account.")
    account = lock_account(account.pk)
    end_account(account, why=REVOKED, by=by)
    return account


def check_open(account: ServerAccount) -> None:
    if account.state == ServerAccountState.ENDED:
        raise Conflict("This account is not connected any more.", remedy="Open My server accounts to begin anew.")


# Ending.


def end_account(account: ServerAccount, *, why: str, by: Principal) -> None:
    """In the transaction of the caller, who has locked the row. Nothing of the tokens stays."""
    if ServerAccountState.ENDED not in SERVER_ACCOUNT_TRANSITIONS[account.state]:
        raise Conflict("This account is not connected any more.")
    if why not in LET_LAPSE and account.is_connected:
        return_tokens_of(account)
    account.authorizations.all().delete()
    clear_tokens(account)
    account.state, account.ended_at, account.ended_by, account.end_reason = (
        ServerAccountState.ENDED,
        database_time(),
        by.id,
        why,
    )
    account.save(
        update_fields=[
            *TOKEN_COLUMNS,
            *("refreshable", "expires_at", "refreshing_until", "state", "ended_at", "ended_by", "end_reason"),
        ]
    )
    evidence.record(
        kind=Kind.SERVER_ACCOUNT_ENDED,
        subject=account.wire_id,
        actor=by,
        data=EndedServerAccount(member=account.person, resource=account.server.resource, why=why),
    )
    if why in BY_OTHERS:
        said = {"member": name_member(account), "url": account_path(account)}
        notify_channels(ENDED_EVENT, subject=account.wire_id, body=said, tenant_id=account.tenant_id)
    if why != REPLACED:  # the one in its place goes on for whoever waits
        account_changed.send(ServerAccount, account=account, by=by)


def build_token_client(server: AccountServer, tokens: AccountTokens, of: ServerAccount | ReturnedTokens) -> TokenClient:
    """Who asks whom for newer tokens, and gives them back: as they were given. What the server has named since then counts for
    nothing; only a newer secret of the same client does."""
    terms = AuthorizationTerms.from_json(of.terms)
    is_same = (server.issuer, server.client_id) == (terms.issuer, of.client_id)
    secret = open_client_secret(server) if is_same else tokens.client_secret
    return TokenClient(of.client_id, secret, terms.token_endpoint, tuple(terms.auth_methods))


def return_tokens_of(account: ServerAccount) -> None:
    """The account's tokens as they are sealed, in the transaction in which it ends: their key may be away at this moment."""
    key = account.subject_key
    if key is None or key.destroyed_at is not None or not account.terms.get("revocation_endpoint"):
        return
    ReturnedTokens(
        id=account.pk,  # to which what is sealed is bound
        tenant_id=account.tenant_id,
        account=account,
        client_id=account.client_id,
        terms=account.terms,
        subject_key=key,
        token_key=account.token_key,
        nonce=account.nonce,
        ciphertext=account.ciphertext,
        next_attempt_at=database_time(),
    ).save(force_insert=True)


def return_tokens(account: ServerAccount, tokens: AccountTokens, *, client_id: str, terms: Mapping[str, Any]) -> None:
    """Tokens that nobody keeps are given back once this is written, by a loop: no page waits for the server that takes them."""
    if not terms.get("revocation_endpoint"):
        return
    row = ReturnedTokens(
        tenant_id=account.tenant_id,
        account=account,
        client_id=client_id,
        terms=dict(terms),
        next_attempt_at=database_time(),
    )
    seal_tokens(row, tokens, person=account.person)
    row.save(force_insert=True)


def end_accounts_of(member: Any, *, tenant_id: UUID, by: Principal) -> int:
    """Those of somebody who leaves the tenant, in the transaction of the caller."""
    rows = ServerAccount.objects.filter(tenant_id=tenant_id, member=member, state__in=OPEN).order_by("pk")
    return _end_all(rows.values_list("pk", flat=True), why=LEFT, by=by)


def end_erased_accounts(account_ids: Iterable[UUID], *, tenant_id: UUID) -> int:
    """Those of a person who was erased: their key is destroyed, and the rows say so."""
    return _end_all(account_ids, why=ERASED, by=Principal.system("erasure", tenant_id=tenant_id))


def _end_all(account_ids: Iterable[UUID], *, why: str, by: Principal) -> int:
    found = list(account_ids)
    for account_id in found:
        end_account(lock_account(account_id), why=why, by=by)
    return len(found)


# What operators enter.


@transaction.atomic
def enter_client(*, resource: str, client_id: str, client_secret: str, by: Principal) -> AccountServer:
    """The client that the owner of an authorization server has given the hub; an empty id: back to what the hub finds by itself."""
    by.check("secrets.manage")
    client_id = client_id.strip()
    if len(client_id) > MAX_ID or not client_id.isprintable():
        raise SchemaInvalid.at("/client_id", f"An id has at most {MAX_ID} visible characters.")
    if len(client_secret) > MAX_SECRET or (client_secret and not client_id):
        raise SchemaInvalid.at(
            "/client_secret", f"A secret belongs to an id, and has at most {MAX_SECRET:,} characters."
        )
    server = get_server(resource, tenant_id=by.tenant_id)
    server = AccountServer.objects.select_for_update().get(pk=server.pk)
    if (server.client_id, server.client_kind) != (client_id, AccountServer.HubClientKind.ENTERED):
        server.issuer = ""  # of the one before; whoever is asked first with this one has given it
    server.client_id = client_id
    server.client_kind = AccountServer.HubClientKind.ENTERED if client_id else ""
    server.entered_by = by.id if client_id else ""
    server.client_ends_at = server.client_refused_at = None
    seal_client_secret(server, client_secret.strip())
    server.save(update_fields=["issuer", "entered_by", "changed_at", *CLIENT_COLUMNS])
    record_server(server, Kind.ACCOUNT_SERVER_ENTERED, by=by)
    return server


@transaction.atomic
def note_client_refused(server_id: UUID, *, issuer: str, client_id: str) -> None:
    """The authorization server does not know the hub. Operators are told, once; a registration that was lost there is made anew by
    whoever connects next. Of a client that is the hub's no more nothing is said."""
    server = AccountServer.objects.select_for_update().get(pk=server_id)
    if (server.issuer, server.client_id) != (issuer, client_id) or server.client_refused_at is not None:
        return
    by = Principal.system("server_accounts", tenant_id=server.tenant_id)
    server.client_refused_at = database_time()
    if server.client_kind == AccountServer.HubClientKind.REGISTERED:
        server.client_id, server.client_kind, server.client_ends_at = "", "", None
        seal_client_secret(server, "")
        record_server(server, Kind.ACCOUNT_SERVER_MET, by=by)
    server.save(update_fields=[*CLIENT_COLUMNS, "changed_at"])
    body = {"url": "/server-accounts/servers"}
    notify_channels(CLIENT_REFUSED_EVENT, subject=server.wire_id, body=body, tenant_id=server.tenant_id)


def record_server(server: AccountServer, kind: Kind, *, by: Principal) -> None:
    said = AccountServerTerms(
        resource=server.resource, issuer=server.issuer, client=server.client_id, how=str(server.client_kind)
    )
    evidence.record(kind=kind, subject=server.wire_id, actor=by, data=said)
