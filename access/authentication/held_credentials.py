"""Held credentials: those that something goes on with after its request was let in, and which of them count no more.

A stream stays open for hours. What it was opened with is asked about again for all streams of a process together: a connection, a
key, or, where a token of somebody else's has neither, the agent.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from access.connections.rights import find_ended_connections
from access.models import Agent, ApiKey
from access.oauth.tokens import read_token_end
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal


class HeldKind(StrEnum):
    CONNECTION = "connection"
    KEY = "key"
    AGENT = "agent"


class HeldCredential(NamedTuple):
    kind: HeldKind
    id: UUID

    @classmethod
    def of(cls, by: Principal) -> HeldCredential:
        if by.connection is not None:
            return cls(HeldKind.CONNECTION, by.connection.id)
        return cls(HeldKind.AGENT, by.agent()) if by.key_id is None else cls(HeldKind.KEY, by.key_id)


def find_token_end(by: Principal, header: str) -> datetime | None:
    """When the token ends that came in an ``Authorization`` header and was found good; None for what ends with its row."""
    if by.connection is not None:
        return by.connection.token_ends
    seconds = read_token_end(header.partition(" ")[2].strip())
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def find_ended_credentials(held: Iterable[HeldCredential]) -> set[HeldCredential]:
    """Those that count for nothing by now; a statement for each kind that is among them."""
    asked = set(held)
    ids = {kind: [each.id for each in asked if each.kind is kind] for kind in HeldKind}
    good: set[HeldCredential] = set()
    with hub_wide():  # of all tenants that have streams here
        if connections := ids[HeldKind.CONNECTION]:
            ended = set(find_ended_connections(connections))
            good |= {HeldCredential(HeldKind.CONNECTION, id) for id in connections if id not in ended}
        if keys := ids[HeldKind.KEY]:
            rows = ApiKey.objects.filter(
                pk__in=keys, revoked_at=None, expires_at__gt=database_time(), agent__disabled_at=None
            )
            good |= {HeldCredential(HeldKind.KEY, id) for id in rows.values_list("pk", flat=True)}
        if agents := ids[HeldKind.AGENT]:
            enabled = Agent.objects.filter(pk__in=agents, disabled_at=None)
            good |= {HeldCredential(HeldKind.AGENT, id) for id in enabled.values_list("pk", flat=True)}
    return asked - good
