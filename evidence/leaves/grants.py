"""Leaves of grants, delegations and consents."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, SearchTerm, Written, leaf_data


@leaf_data(Kind.GRANT_REQUESTED)
class RequestedGrant(LeafData):
    """What an agent asks for."""

    agent: Annotated[str, "that asks", SearchTerm("agent")]
    tools: Annotated[str, "expression that selects tools"]
    capabilities: Annotated[Any, "what the tools may reach at most; null: no limit of its own"]
    scopes: Annotated[Any, "for which scopes; null: no limit of its own"]
    conditions: Annotated[list[Any], "that must hold"]
    purpose: Written


@leaf_data(Kind.GRANT_DECLINED)
class DeclinedGrant(LeafData):
    """What an agent asked for and does not get."""

    agent: Annotated[str, "that asked", SearchTerm("agent")]
    tools: Annotated[str, "expression that selects tools"]
    reason: Written


@leaf_data(Kind.GRANT_GIVEN)
class GivenGrant(LeafData):
    """What an agent may call, and within which limits."""

    agent: Annotated[str, "that gets it; `*`: every agent of the tenant", SearchTerm("agent")]
    tools: Annotated[str, "expression that selects tools"]
    calls_limit: Annotated[int | None, "calls in a window; null: no limit of its own"]
    window_s: Annotated[int, "length of the window"]
    capabilities: Annotated[Any, "what the tools may reach at most; null: no limit of its own"]
    scopes: Annotated[Any, "for which scopes; null: no limit of its own"]
    conditions: Annotated[list[Any], "that must hold"]
    may_delegate: Annotated[int, "how many times it may be handed on"]
    expires_at: Annotated[str | None, "when it ends; null: never"]
    source: Annotated[str, "where it was given"]
    reason: Written


@leaf_data(Kind.GRANT_EXTENDED)
class ExtendedGrant(LeafData):
    """That a grant ends later."""

    agent: Annotated[str, "that has it", SearchTerm("agent")]
    before: Annotated[str, "when it would have ended"]
    expires_at: Annotated[str | None, "when it ends now; null: never"]
    reason: Written


@leaf_data(Kind.GRANT_REVOKED)
class RevokedGrant(LeafData):
    """That a grant was taken back."""

    agent: Annotated[str, "that had it", SearchTerm("agent")]
    reason: Written


@leaf_data(Kind.DELEGATION_GIVEN)
class GivenDelegation(LeafData):
    """What an agent hands on of a grant, attenuated."""

    agent: Annotated[str, "that gets it", SearchTerm("agent")]
    delegated_from: Annotated[str, "the grant that it comes from"]
    actors: Annotated[list[Any], "the chain of agents, with the grant of each"]
    tools: Annotated[str, "expression that selects tools"]
    capabilities: Annotated[Any, "what the tools may reach at most; null: as in the parent"]
    scopes: Annotated[Any, "for which scopes; null: as in the parent"]
    conditions: Annotated[list[Any], "that must hold"]
    may_delegate: Annotated[int, "how many times it may be handed on"]
    calls_limit: Annotated[int | None, "calls in a window; null: no limit of its own"]
    window_s: Annotated[int, "length of the window"]
    expires_at: Annotated[str, "when it ends"]
    reason: Written


@leaf_data(Kind.DELEGATION_REVOKED)
class RevokedDelegation(LeafData):
    """That a delegated grant was taken back."""

    agent: Annotated[str, "that had it", SearchTerm("agent")]
    actors: Annotated[list[Any], "the chain of agents, with the grant of each"]


@leaf_data(Kind.CONSENT_REQUESTED)
class RequestedConsent(LeafData):
    """What a person is asked to consent to."""

    purpose: Written
    mode: Annotated[str, "`once`, `period` or `standing`"]
    validity_s: Annotated[int, "for how long"]
    versions: Annotated[str, "of the tool; empty: all"]
    data_classes: Annotated[list[str], "personal data that the tool may get"]
    arguments: Annotated[str, "keyed hash of the arguments that it is bound to; empty: any"]
    policy: Annotated[str, "hash of the rules that it is bound to; empty: any"]


@leaf_data(Kind.CONSENT_APPROVED, Kind.CONSENT_DENIED, Kind.CONSENT_REVOKED)
class DecidedConsent(LeafData):
    """What a person decided about a consent."""

    reason: Written
    agent: Annotated[str, "whose consent it is", SearchTerm("agent")]
    mode: Annotated[str, "`once`, `period` or `standing`"]
    expires_at: Annotated[str | None, "when it ends; null: never"]
    failed_dry_run: Annotated[
        str | None, "the call that failed as a dry run, which the person has seen and approved nevertheless"
    ] = None
