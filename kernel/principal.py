"""Principal: who is acting.

A :class:`Principal` is what services get as ``by``: who it is, for which tenant, and what the credential (scopes) or the
person's roles (permissions) allow. It is built once a request and never stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kernel.problems import Forbidden

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class ActorKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class UsedConnection:
    """By which program an agent's request comes, and which person (``usr_…``) has let it act as the agent. ``token_ends``: when the
    token does that came with the request; None for what goes on without one.
    """

    id: UUID
    client: str
    member: str
    token_ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class Principal:
    """``id`` is the wire id (``usr_…``, ``agt_…``) or ``system:<part>``."""

    kind: ActorKind
    id: str
    name: str
    tenant_id: UUID
    allowed: frozenset[str] = frozenset()
    agent_id: UUID | None = None
    key_id: UUID | None = None
    issuer_id: UUID | None = None  # whose token this is, and which one: a digest (access.oauth.tokens)
    token: str = ""
    connection: UsedConnection | None = None
    via: str = ""  # another way in than their own: ``command``, by somebody with a shell (toolhub.management.actor)

    def may(self, permission: str) -> bool:
        return permission in self.allowed

    def check(self, permission: str) -> None:
        """Raise :class:`Forbidden` unless this principal holds ``permission`` (a role's) or scope (a key's)."""
        if permission not in self.allowed:
            if self.kind is ActorKind.AGENT:  # what a key or token carries does not grow
                what, ticket = "scope", "token" if self.token or self.connection else "key"
                remedy = f"Use a {ticket} with the scope {permission}, or ask for one."
            else:
                what, remedy = "permission", f"Ask an owner of the tenant for the permission {permission}."
            raise Forbidden(
                f"{self.name} does not hold the {what} {permission}.",
                remedy=remedy,
                details={"missing": permission},
            )

    def agent(self) -> UUID:
        """The agent's id; raises :class:`Forbidden` for anybody else, since people decide and only agents call."""
        if self.agent_id is None:
            raise Forbidden(
                "Only an agent calls tools and asks for consent; people decide.",
                remedy="Send the key or the token of an agent.",
            )
        return self.agent_id

    @classmethod
    def system(cls, part: str, *, tenant_id: UUID) -> Principal:
        """The hub itself, acting on behalf of nobody: the sweeper, the seed."""
        return cls(kind=ActorKind.SYSTEM, id=f"system:{part}", name=part, tenant_id=tenant_id)
