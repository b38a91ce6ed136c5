"""Leaves of agents: what they are, their keys, and the identity providers that speak for them."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, SearchTerm, leaf_data


@leaf_data(Kind.AGENT_CREATED)
class CreatedAgent(LeafData):
    """That an agent was created."""

    name: Annotated[str, "of the agent"]


@leaf_data(Kind.KEY_CREATED)
class CreatedKey(LeafData):
    """What an API key may be used for; never the key."""

    agent: Annotated[str, "whose key it is", SearchTerm("agent")]
    lookup: Annotated[str, "the part of the key that is no secret"]
    scopes: Annotated[list[str], "what it may be used for"]
    networks: Annotated[list[str], "where it may be used from; empty: anywhere"]
    expires_at: Annotated[str, "when it ends"]


@leaf_data(Kind.KEY_ROTATED)
class RotatedKey(CreatedKey):
    """The new key, and how long the old one still works."""

    replaced_by: Annotated[str, "id of the new key"]
    works_until: Annotated[str, "end of the old key"]


@leaf_data(Kind.ISSUER_TRUSTED, Kind.ISSUER_CHANGED)
class TrustedIssuerTerms(LeafData):
    """Whose tokens are accepted."""

    issuer: Annotated[str, "as tokens name it"]
    audience: Annotated[str, "that tokens must name"]
    keys: Annotated[str, "address of its public keys, or `inline`"]


@leaf_data(Kind.IDENTITY_MAPPED, Kind.IDENTITY_UNMAPPED)
class MappedIdentity(LeafData):
    """Which agent a subject of an identity provider speaks for, or no longer does."""

    identity: Annotated[str, "id of the mapping"]
    agent: Annotated[str, "for whom it speaks", SearchTerm("agent")]
    scopes: Annotated[list[str] | None, "at most these"] = None
