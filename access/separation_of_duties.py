"""Separation of duties: the person who stands behind an agent.

Who made an agent, a key of it or a way in for tokens could approve through it what they asked for themselves. Decisions ask
here before they count somebody as another person. It makes no difference when the agent was made by another agent of theirs,
nor that the key or the mapping is gone by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from access.models import Agent, ApiKey
from evidence.kinds import Kind
from evidence.leaves.agents import MappedIdentity
from evidence.leaves.connections import AssertionRuleTerms
from evidence.models import Fact
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from uuid import UUID


def _makers(agent_id: UUID) -> set[str]:
    """Wire ids of who created this agent, ever made a key of it, or let an issuer's tokens speak for it or open its connections."""
    wire_id = encode("agt", agent_id)
    tenants = Agent.objects.filter(pk=agent_id).values("tenant_id")
    mapped = [
        fact
        for fact in Fact.objects.filter(kind=Kind.IDENTITY_MAPPED, tenant_id__in=tenants)
        if fact.read_data(MappedIdentity).agent == wire_id
    ]
    ruled = [
        fact
        for fact in Fact.objects.filter(kind=Kind.ASSERTION_RULE_SET, tenant_id__in=tenants)
        if fact.read_data(AssertionRuleTerms).agent == wire_id
    ]
    trusted = Fact.objects.filter(
        kind__in=[Kind.ISSUER_TRUSTED, Kind.ISSUER_CHANGED], subject__in={fact.subject for fact in [*mapped, *ruled]}
    )
    made = Fact.objects.filter(kind=Kind.AGENT_CREATED, subject=wire_id)
    return {
        *ApiKey.objects.filter(agent_id=agent_id).values_list("created_by", flat=True),
        *made.values_list("actor_id", flat=True),
        *(fact.actor_id for fact in [*mapped, *ruled]),
        *trusted.values_list("actor_id", flat=True),
    }


def _behind(agent_id: UUID) -> set[str]:
    """Wire ids of the people and agents behind this one, however many agents are between."""
    pending, seen = {agent_id}, set[str]()
    while pending:
        makers = set[str]().union(*(_makers(each) for each in pending)) - seen
        seen |= makers
        pending = {decode("agt", maker) for maker in makers if maker.startswith("agt_")}
    return seen


def controls_agent(user_wire_id: str, agent_id: UUID) -> bool:
    """Whether the person ``usr_…`` made this agent or a way into it, or an agent that did."""
    return user_wire_id in _behind(agent_id)


def list_controlled_agents(user_wire_id: str, tenant_id: UUID) -> set[str]:
    """Wire ids of all agents of the tenant of which :func:`controls_agent` says so: as many questions for many agents as for one."""
    pending, seen = {user_wire_id}, set[str]()
    while pending:
        pending = _made_by(pending, tenant_id) - seen
        seen |= pending
    return seen


def _made_by(makers: set[str], tenant_id: UUID) -> set[str]:
    """Wire ids of the agents that one of them created, made a key of, or let tokens or connections speak for."""
    facts = Fact.objects.filter(tenant_id=tenant_id)
    keys = ApiKey.objects.filter(agent__tenant_id=tenant_id, created_by__in=makers)
    issuers = facts.filter(kind__in=[Kind.ISSUER_TRUSTED, Kind.ISSUER_CHANGED], actor_id__in=makers)
    spoken_for = Q(actor_id__in=makers) | Q(subject__in=set(issuers.values_list("subject", flat=True)))
    return {
        *(encode("agt", agent_id) for agent_id in keys.values_list("agent_id", flat=True)),
        *facts.filter(kind=Kind.AGENT_CREATED, actor_id__in=makers).values_list("subject", flat=True),
        *(each.read_data(MappedIdentity).agent for each in facts.filter(spoken_for, kind=Kind.IDENTITY_MAPPED)),
        *(each.read_data(AssertionRuleTerms).agent for each in facts.filter(spoken_for, kind=Kind.ASSERTION_RULE_SET)),
    }


def are_of_one_chain(one: UUID, other: UUID) -> bool:
    """Whether one of two agents made the other or a way into it, or the same agent did so for both."""
    chains = [{encode("agt", each), *_behind(each)} for each in (one, other)]
    return any(maker.startswith("agt_") for maker in chains[0] & chains[1])
