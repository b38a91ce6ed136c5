"""Assertion rules: what an identity provider may vouch for, so that programs act for its people without a page. Off by default.

The provider is one with which people sign in here: only of those it is known whom its subjects mean. Whatever changes a rule ends what
was opened by it; the next assertion opens it anew, as far as the rule then goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from access.agents.services import check_scopes
from access.connections.services import MAX_TOOLS, end_vouched_connections
from access.issuers.services import check_speaks_for
from access.models import Agent, AssertionRule, TrustedIssuer
from access.roles import AGENT_SCOPES
from access.sign_in.identities import find_sign_in_providers
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.connections import AssertionRuleTerms
from kernel.database.connections import database_time
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal

MAX_TOOL_NAME = 200


def longest_minutes() -> int:
    """No token of a connection lasts longer."""
    return max(1, int(settings.TOOLHUB_CONNECTION_TOKEN_S) // 60)


def may_vouch(issuer: TrustedIssuer) -> bool:
    """Whether people sign in here with it."""
    return bool(find_sign_in_providers(issuer.issuer))


def _check_tools(tools: Iterable[str] | None) -> list[str] | None:
    names = None if tools is None else sorted({each.strip() for each in tools} - {""})
    if names is None:
        return None
    if not 1 <= len(names) <= MAX_TOOLS or any(len(each) > MAX_TOOL_NAME for each in names):
        raise SchemaInvalid.at("/tools", f"Name 1 to {MAX_TOOLS} tools by their ids, or none for all.")
    return names


@transaction.atomic
def set_assertion_rule(
    *,
    issuer_id: UUID,
    agent_id: UUID,
    scopes: Iterable[str],
    tools: Iterable[str] | None,
    token_minutes: int,
    by: Principal,
) -> TrustedIssuer:
    """Let the provider vouch for its people: programs that it lets act for them act as this agent, and no further than this."""
    issuer = TrustedIssuer.objects.select_for_update().get(pk=issuer_id, tenant_id=by.tenant_id)
    if issuer.disabled_at is not None:
        raise Conflict("Tokens of this issuer are refused.", remedy="Trust it again first.")
    if not may_vouch(issuer):
        raise Conflict(
            "People of this hub do not sign in with this identity provider, so it is not known whom it means.",
            remedy="Trust the one of TOOLHUB_OIDC_ISSUER, exactly as its tokens name it.",
        )
    agent = Agent.objects.get(pk=agent_id, tenant_id=by.tenant_id)
    check_speaks_for([agent], by=by)
    wanted = set(check_scopes(scopes, by=by))
    kept = [scope for scope in AGENT_SCOPES if scope in wanted]
    if not kept or wanted - set(kept):
        raise SchemaInvalid.at("/scopes", "Choose at least one scope, and only those of an agent.")
    if not 1 <= token_minutes <= longest_minutes():
        raise SchemaInvalid.at("/token_minutes", f"A token lasts 1 to {longest_minutes()} minutes.")
    terms = {"agent": agent, "scopes": kept, "tools": _check_tools(tools), "token_minutes": token_minutes}
    rule, _ = AssertionRule.objects.update_or_create(
        issuer=issuer, defaults=terms | {"set_by": by.id, "set_at": database_time()}
    )
    _record(Kind.ASSERTION_RULE_SET, rule, ended=end_vouched_connections(issuer, by=by), by=by)
    return issuer


@transaction.atomic
def end_assertion_rule(*, issuer_id: UUID, by: Principal) -> TrustedIssuer:
    """Its assertions are refused from the next one on, and what they have opened ends."""
    issuer = TrustedIssuer.objects.select_for_update().get(pk=issuer_id, tenant_id=by.tenant_id)
    rule = AssertionRule.objects.select_related("agent").filter(issuer=issuer).first()
    if rule is None:
        raise Conflict("This identity provider vouches for nobody.")
    rule.delete()
    _record(Kind.ASSERTION_RULE_ENDED, rule, ended=end_vouched_connections(issuer, by=by), by=by)
    return issuer


def _record(kind: Kind, rule: AssertionRule, *, ended: int, by: Principal) -> None:
    evidence.record(
        kind=kind,
        subject=rule.issuer.wire_id,
        actor=by,
        data=AssertionRuleTerms(
            agent=rule.agent.wire_id,
            scopes=rule.scopes,
            tools=rule.tools,
            token_minutes=rule.token_minutes,
            connections=ended,
        ),
    )
