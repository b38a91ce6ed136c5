"""Assertions of identity providers: how one opens a connection, for a person who is shown no page.

What it may open is said by the tenant (:class:`AssertionRule`): as which agent, how far, for how long; without a rule, nothing. The
person must be one whom the page would let do the same. There is no refresh token: the provider is asked again, and may say no. The
connection is the same while nothing differs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from access.budgets.rate_limits import client_network
from access.connections import token_texts
from access.connections.connection_rules import find_bounds
from access.connections.connection_tokens import add_tokens
from access.connections.services import (
    check_is_known,
    check_may_connect,
    forget_old_tokens,
    note_client,
    record_opening,
)
from access.middleware import principal_of_user
from access.models import Agent, AssertionRule, Connection, ConnectionToken, Membership, TrustedIssuer
from access.oauth.clients import describe_client
from access.problems import AssertionRefused, AssertionWithoutScopes
from access.roles import AGENT_SCOPES
from access.sign_in.identities import find_person
from kernel.database.connections import database_time
from kernel.problems import Conflict, Forbidden

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from access.models import EnteredClient
    from access.oauth.clients import Client
    from access.oauth.identity_assertions import IdentityAssertion
    from kernel.principal import Principal

DAYS = 30  # after which a new connection, with a fact of its own, is opened
USED = "This assertion was used already."
ASK_AGAIN = "Let the program ask the identity provider for a new one."


def connect_by_assertion(
    assertion: IdentityAssertion, *, client: EnteredClient, asked: Collection[str], address: str
) -> tuple[Connection, str, int]:
    """The connection, an access token for it and how many seconds that lasts. ``asked``: scopes; none: all that may be had."""
    token = token_texts.make_token(token_texts.ACCESS)
    connection, lasts = _connect(assertion, client=client, asked=asked, token=token, address=address)
    return connection, token, lasts


@transaction.atomic
def _connect(
    assertion: IdentityAssertion, *, client: EnteredClient, asked: Collection[str], token: str, address: str
) -> tuple[Connection, int]:
    # Held until this is done: who ends the trust or changes the rule waits, and ends what was opened.
    issuer = TrustedIssuer.objects.select_for_update().get(pk=assertion.issuer.pk)
    rule = AssertionRule.objects.filter(issuer=issuer).first()
    if issuer.disabled_at is not None or rule is None:
        raise AssertionRefused("This identity provider may not vouch for people any more.")
    if _keys_of(issuer) != _keys_of(assertion.issuer):
        raise AssertionRefused("The keys of this identity provider have changed.", remedy=ASK_AGAIN)
    if ConnectionToken.objects.filter(digest=assertion.once).exists():
        raise AssertionRefused(USED)
    agent = Agent.objects.select_for_update().select_related("tenant").get(pk=rule.agent_id)
    member, by = _find_member(assertion, agent=agent)
    try:
        check_may_connect(agent, by=by)
    except Forbidden as problem:
        raise AssertionRefused(problem.detail, remedy=problem.remedy) from problem
    scopes = _choose_scopes(rule, said=assertion.scopes, asked=asked)
    described = describe_client(client.application, client)
    try:
        check_is_known(described, by=by)  # before connections are locked, as where a program is removed
    except Conflict as problem:
        raise AssertionRefused(problem.detail, remedy=problem.remedy) from problem
    connection = _find_same(rule, member=member, client=client, resource=assertion.resource, scopes=scopes)
    if connection is None:
        connection = _open(
            rule, member=member, client=described, assertion=assertion, scopes=scopes, address=address, by=by
        )
    try:
        with transaction.atomic():
            ConnectionToken.objects.create(
                connection=connection,
                kind=ConnectionToken.TokenKind.ASSERTION,
                digest=assertion.once,
                expires_at=datetime.fromtimestamp(assertion.known_until, UTC),
                used_at=database_time(),
                used_from=client_network(address),
            )
    except IntegrityError as error:  # shown twice at the same moment
        raise AssertionRefused(USED) from error
    seconds = rule.token_minutes * 60
    digest = token_texts.compute_token_digest(token)
    return connection, add_tokens(connection, access=digest, refresh=None, expires_in=seconds)


def _keys_of(issuer: TrustedIssuer) -> tuple[Any, ...]:
    """What says with which keys it signs: an assertion is judged before the row is locked."""
    return issuer.issuer, issuer.jwks_url, issuer.jwks


def _find_member(assertion: IdentityAssertion, *, agent: Agent) -> tuple[Any, Principal]:
    """The person, and them as who acts here: for evidence it is said which assertion spoke for them."""
    issuer = assertion.issuer
    member = find_person(issuer.issuer, assertion.subject)
    if member is None:
        raise AssertionRefused(
            "Nobody of this hub has signed in as this person of the identity provider.",
            remedy="Sign in to the console with it once, then connect again.",
        )
    belongs = Membership.objects.filter(tenant_id=issuer.tenant_id, user=member).exists()
    if not belongs or not member.is_active:
        raise AssertionRefused(
            "This person does not belong to the tenant.", remedy="Ask an owner of the tenant to invite them."
        )
    by = principal_of_user(member, agent.tenant)
    return member, replace(by, issuer_id=issuer.pk, token=assertion.digest)


def _choose_scopes(rule: AssertionRule, *, said: frozenset[str] | None, asked: Collection[str]) -> list[str]:
    """What the rule allows, the provider says and the program asks for. Programs ask for what the last refusal named: it is narrowed
    to what may be had, and not refused.
    """
    held = [scope for scope in AGENT_SCOPES if scope in rule.scopes and (said is None or scope in said)]
    chosen = [scope for scope in held if scope in asked] if asked else held
    if not chosen:
        raise AssertionWithoutScopes
    return chosen


def _find_same(
    rule: AssertionRule, *, member: Any, client: EnteredClient, resource: str, scopes: list[str]
) -> Connection | None:
    """The newest live one that is as this would be, and lasts as long as a token of it. Its tokens that have run out go.

    Rows are locked in the order in which they are where several end.
    """
    now = database_time()
    lasting = Connection.objects.select_for_update(of=("self",)).live(now + timedelta(minutes=rule.token_minutes))
    rows = lasting.filter(
        tenant_id=client.tenant_id,
        issuer_id=rule.issuer_id,
        agent_id=rule.agent_id,
        member=member,
        client_id=client.client_id,
        resource=resource,
    ).order_by("pk")
    for each in reversed(list(rows)):
        if each.scopes == scopes and each.tools == rule.tools:
            each.tokens.filter(expires_at__lt=now).delete()
            return each
    return None


def _open(
    rule: AssertionRule,
    *,
    member: Any,
    client: Client,
    assertion: IdentityAssertion,
    scopes: list[str],
    address: str,
    by: Principal,
) -> Connection:
    now, tenant_id = database_time(), assertion.issuer.tenant_id
    forget_old_tokens(tenant_id=tenant_id, now=now)
    note_client(client, by=by)
    connection = Connection.objects.create(
        tenant_id=tenant_id,
        agent=rule.agent,
        member=member,
        issuer_id=rule.issuer_id,
        client_id=client.id,
        client_kind=client.kind,
        client_name=client.name,
        client_digest=client.digest,
        resource=assertion.resource,
        scopes=scopes,
        tools=rule.tools,
        refreshable=False,
        until=now + min(timedelta(days=DAYS), find_bounds(tenant_id).lasts),
        code_digest=_digest_of_nothing(),
        form_digest=_digest_of_nothing(),
        opened_at=now,
        redeemed_at=now,
        redeemed_from=client_network(address),
    )
    record_opening(connection, once=False, issuer=assertion.issuer.wire_id, by=by)
    return connection


def _digest_of_nothing() -> str:
    """No code and no form opened it, and nobody can show one that fits."""
    return token_texts.compute_token_digest(token_texts.make_token(token_texts.REFRESH))
