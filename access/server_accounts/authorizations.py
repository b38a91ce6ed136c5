"""Authorizations: how a person connects their account at a server elsewhere (OAuth 2.1: code with PKCE).

What was begun is a row that is found by the state and the browser's session together, and is taken away by the first answer. The
verifier is kept nowhere: it is made of the two again. The answer must come to the same browser and person, and from the server that
was asked (RFC 9207). No transaction is open while others are asked.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from django.db import transaction

from access.models import AccountAuthorization, AccountServer, ServerAccount, ServerAccountState
from access.server_accounts.answers import ServerSilent
from access.server_accounts.clients import (
    AccountClient,
    callback_url,
    check_issuer_of_entered,
    choose_callback,
    choose_client,
    is_registered,
)
from access.server_accounts.discovery import AuthorizationTerms, find_terms
from access.server_accounts.problems import AccountUnavailable, AuthorizationRefused
from access.server_accounts.services import (
    REPLACED,
    check_is_own,
    check_open,
    end_account,
    lock_own,
    note_client_refused,
    record_server,
)
from access.server_accounts.signals import account_changed
from access.server_accounts.token_requests import OF_THE_CLIENT, TokenClient, TokenRefused, redeem_code
from access.server_accounts.token_returns import return_unkept_tokens
from access.server_accounts.token_seals import (
    CLIENT_COLUMNS,
    TOKEN_COLUMNS,
    open_client_secret,
    seal_client_secret,
    seal_tokens,
)
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.server_accounts import ConnectedServerAccount
from kernel.database.connections import database_time
from kernel.problems import Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from access.server_accounts.token_requests import TokenAnswer
    from kernel.principal import Principal

LASTS = timedelta(minutes=15)
MAX_BEGUN = 5  # of one account, the newest
MAX_ANSWER = 4096


def begin_authorization(
    *,
    account_id: UUID,
    browser: str,
    agents: list[str],
    scopes: list[str],
    stated: Sequence[dict[str, str]] = (),
    by: Principal,
) -> str:
    """The address that the person's browser is sent to. ``browser``: the key of its session. ``agents``: those that the account is
    connected for, too. ``scopes``: that the installed tools want; none: those that the server asks for. ``stated``: what the
    manifests of those tools state of who gives tokens.

    What the server says of itself is read anew each time, so that nothing of it grows old here.
    """
    account = ServerAccount.objects.select_related("server").get(pk=account_id, tenant_id=by.tenant_id)
    check_is_own(account, by=by)
    check_open(account)
    if not browser:
        raise AuthorizationRefused("An account is connected in a browser in which its person is signed in.")
    terms = find_terms(account.server.resource, stated)
    client = choose_client(account.server, terms)
    server = _keep_terms(account.server, terms, client, by=by)
    scopes = scopes or terms.scopes
    callback = choose_callback(server, server.client_kind)
    state = secrets.token_urlsafe(32)
    newly = [
        each for each in agents if each not in account.agents
    ]  # leave that is taken back until then does not return
    _keep_begun(
        account,
        digest=_digest(browser, state),
        callback=callback,
        client_id=server.client_id,
        terms=terms,
        scopes=scopes,
        agents=newly,
    )
    asked = {
        "response_type": "code",
        "client_id": server.client_id,
        "redirect_uri": callback_url(callback),
        "state": state,
        "code_challenge": _challenge(_verifier(browser, state)),
        "code_challenge_method": "S256",
    }
    if terms.resource:
        asked["resource"] = terms.resource
    if scopes:
        asked["scope"] = " ".join(scopes)
    endpoint = terms.authorization_endpoint
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"


def _digest(browser: str, state: str) -> str:
    """By which what was begun is found: an answer that comes to another browser finds nothing."""
    return hashlib.sha256(f"{browser}\0{state}".encode()).hexdigest()


def _verifier(browser: str, state: str) -> str:
    """Of PKCE. The authorization server knows the state, and nobody but the browser and the hub its session."""
    return _encode(hmac.digest(browser.encode(), b"verifier\0" + state.encode(), "sha256"))


def _challenge(verifier: str) -> str:
    return _encode(hashlib.sha256(verifier.encode()).digest())


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _keep_begun(account: ServerAccount, *, terms: AuthorizationTerms, **said: Any) -> None:
    now = database_time()
    AccountAuthorization.objects.create(
        tenant_id=account.tenant_id, account=account, issuer=terms.issuer, terms=terms.to_json(), begun_at=now, **said
    )
    rows = AccountAuthorization.objects.filter(account=account)
    rows.filter(begun_at__lte=now - LASTS).delete()
    # By name: what another tab begins at this moment is not among them.
    older = list(rows.order_by("-begun_at", "-pk").values_list("pk", flat=True)[MAX_BEGUN:])
    rows.filter(pk__in=older).delete()


@transaction.atomic
def _keep_terms(
    server: AccountServer, terms: AuthorizationTerms, client: AccountClient, *, by: Principal
) -> AccountServer:
    server = AccountServer.objects.select_for_update().get(pk=server.pk)
    entered = AccountServer.HubClientKind.ENTERED
    if client.kind == AccountServer.HubClientKind.REGISTERED and is_registered(server, terms):
        # Somebody else has registered the hub at the same moment; there are tokens of that one perhaps.
        client = AccountClient(server.client_id, client.kind)
    is_known = (client.id, client.kind) == (server.client_id, server.client_kind)
    if entered in (client.kind, server.client_kind) and not is_known:
        raise Conflict("Who the hub is at this server has been changed at this moment.", remedy="Try again.")
    if client.kind == entered:
        check_issuer_of_entered(server, terms)
    is_other = not is_known or server.issuer != terms.issuer
    if is_other and client.kind != entered:
        server.client_id, server.client_kind, server.client_ends_at = client.id, client.kind, client.ends_at
        server.client_refused_at = None
        seal_client_secret(server, client.secret)
    server.issuer, server.terms = terms.issuer, terms.to_json()
    server.save(update_fields=["issuer", "terms", "changed_at", *CLIENT_COLUMNS])
    if is_other:
        record_server(server, Kind.ACCOUNT_SERVER_MET, by=by)
    return server


def finish_authorization(
    *, answer: Mapping[str, str], browser: str, callback: str = "", by: Principal
) -> ServerAccount:
    """The account, connected. Whatever comes of it, the state is used up. ``callback``: the key of the address it came to."""
    state = answer.get("state", "")
    begun = take_begun(state, browser=browser, by=by)
    if callback != begun.callback:
        raise AuthorizationRefused("This answer has come to the address of another server than the one that was asked.")
    terms = AuthorizationTerms.from_json(begun.terms)
    check_issuer(terms, answer.get("iss"))
    account = begun.account
    if answer.get("error") or not answer.get("code"):
        raise AuthorizationRefused(
            f"The authorization server says {answer.get('error', 'nothing')[:60]!a}.",
            details={"account": account.wire_id},
        )
    check_open(account)
    server = account.server
    if (server.issuer, server.client_id) != (begun.issuer, begun.client_id):
        raise AuthorizationRefused("Who gives tokens for this server has changed meanwhile.")
    client = TokenClient(server.client_id, open_client_secret(server), terms.token_endpoint, tuple(terms.auth_methods))
    try:
        found = redeem_code(
            client,
            code=answer["code"][:MAX_ANSWER],
            verifier=_verifier(browser, state),
            redirect_uri=callback_url(begun.callback),
            resource=terms.resource,
        )
    except TokenRefused as error:
        if error.error in OF_THE_CLIENT:
            note_client_refused(server.pk, issuer=server.issuer, client_id=server.client_id)
        raise AuthorizationRefused(str(error)) from error
    except ServerSilent as error:
        raise AccountUnavailable(str(error), remedy="Begin again from the page of the account.") from error
    try:
        return _connect(account, found, begun, by=by)
    except Exception:  # whatever it is, nobody keeps what was given
        return_unkept_tokens(account, found.tokens, client=client, terms=terms)
        raise


def take_begun(state: str, *, browser: str, by: Principal) -> AccountAuthorization:
    """What this browser has begun under this state, once: of two answers at the same moment one alone takes it."""
    rows = AccountAuthorization.objects.select_related("account__server", "account__subject_key__tenant_key")
    is_state = state and len(state) <= MAX_ANSWER
    begun = rows.filter(digest=_digest(browser, state), tenant_id=by.tenant_id).first() if is_state else None
    if begun is not None:
        is_taken = AccountAuthorization.objects.filter(pk=begun.pk).delete()[0] == 1
        if is_taken and begun.account.person == by.id and database_time() - begun.begun_at <= LASTS:
            check_is_own(begun.account, by=by)
            return begun
    raise AuthorizationRefused("This answer belongs to nothing that you have begun in this browser of late.")


def check_issuer(terms: AuthorizationTerms, said: str | None) -> None:
    """RFC 9207: whose answer it is. Who says that it names itself must; who is named must be who was asked. Of who gives tokens for a
    service nobody has said the name; its answers are told apart by the address that they come to."""
    if not terms.knows_issuer or (said is None and not terms.says_issuer):
        return
    if not hmac.compare_digest((said or "").encode(), terms.issuer.encode()):
        raise AuthorizationRefused("This answer comes from another authorization server than the one that was asked.")


@transaction.atomic
def _connect(
    account: ServerAccount, found: TokenAnswer, begun: AccountAuthorization, *, by: Principal
) -> ServerAccount:
    account, now, replaced = lock_own(account.pk, by=by), database_time(), None
    agents = sorted({*account.agents, *begun.agents})
    if account.is_connected:  # anew, perhaps as somebody else there, so it is another account
        replaced, newly = account, set(begun.agents).intersection(account.asked_by)
        agents = sorted({*account.agents, *newly})
        end_account(replaced, why=REPLACED, by=by)
        account = ServerAccount(
            tenant_id=account.tenant_id,
            member_id=account.member_id,
            server=account.server,
            asked_by=account.asked_by,
        )
        account.save(force_insert=True)
    check_open(account)
    seal_tokens(account, found.tokens, person=account.person)
    account.state, account.connected_at, account.number = ServerAccountState.CONNECTED, now, 1
    account.refreshable, account.expires_at = bool(found.tokens.refresh), found.find_end(now)
    account.issuer, account.client_id, account.terms = begun.issuer, begun.client_id, begun.terms
    account.scopes = found.scopes if found.scopes is not None else begun.scopes
    account.agents = agents
    account.asked_by = [each for each in account.asked_by if each not in account.agents]
    account.save(
        update_fields=[
            *TOKEN_COLUMNS,
            *("issuer", "client_id", "terms"),
            *("state", "connected_at", "number", "refreshable", "expires_at", "scopes", "agents", "asked_by"),
        ]
    )
    evidence.record(
        kind=Kind.SERVER_ACCOUNT_CONNECTED,
        subject=account.wire_id,
        actor=by,
        data=ConnectedServerAccount(
            member=account.person,
            resource=account.server.resource,
            issuer=account.issuer,
            client=account.client_id,
            scopes=account.scopes,
            agents=account.agents,
            refreshable=account.refreshable,
        ),
    )
    account_changed.send(ServerAccount, account=account, replaced=replaced, by=by)
    return account
