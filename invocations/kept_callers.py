"""Kept callers: who makes the calls of a chain or a run, when nobody is there any more to show a credential."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from access.models import Connection
from kernel.ids import encode, encode_user
from kernel.principal import ActorKind, Principal, UsedConnection

if TYPE_CHECKING:
    from access.models import Agent

# In the place of a caller's credential that nobody is to know any more: it may name the person whose program it was.
NOBODY: dict[str, Any] = {"key": None, "issuer": None, "token": "", "connection": None}
KEPT_SCOPES = frozenset(
    {"invocations:read"}
)  # without it a step sends what steps beside it have left, and nothing else


def describe_credential(by: Principal) -> dict[str, Any]:
    """What is kept of a caller's credential: ids, a digest of a token, and those of its scopes that steps are held against."""
    return {
        "key": by.key_id.hex if by.key_id else None,
        "issuer": by.issuer_id.hex if by.issuer_id else None,
        "token": by.token,
        "connection": [by.connection.id.hex, by.connection.client, by.connection.member] if by.connection else None,
        "scopes": sorted(KEPT_SCOPES & by.allowed),
    }


def build_kept_caller(agent: Agent, credential: dict[str, Any]) -> Principal:
    """The agent with the credential that it had then. Each call that is made so is decided on by what holds at that moment."""
    return Principal(
        kind=ActorKind.AGENT,
        id=encode("agt", agent.pk),
        name=agent.name,
        tenant_id=agent.tenant_id,
        allowed=KEPT_SCOPES & frozenset(credential.get("scopes", ())),
        agent_id=agent.pk,
        key_id=_read_id(credential["key"]),
        issuer_id=_read_id(credential["issuer"]),
        token=credential["token"],
        connection=_read_connection(credential.get("connection")),
    )


def build_used_connection(connection_id: UUID, *, tenant_id: UUID) -> UsedConnection:
    """The program that has made a call, and who let it act as the agent."""
    row = Connection.objects.get(pk=connection_id, tenant_id=tenant_id)
    return UsedConnection(row.pk, client=row.client_id, member=encode_user(row.member_id))


def _read_connection(kept: list[str] | None) -> UsedConnection | None:
    return None if kept is None else UsedConnection(UUID(kept[0]), client=kept[1], member=kept[2])


def _read_id(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)
