"""Basis of a call: what decides about it and the key of its values, read in one exchange, with the caller's key if that is known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

from evidence.keys.subject_keys import choose_key_subject, prepare_key, read_key
from evidence.services import compute_user_fingerprint
from kernel.database.connections import database_time
from kernel.database.prepared_statements import fetch_prepared_together
from registry.decision_context import load_decision_context
from registry.decision_statement import prepare_call_row, read_call_row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from access.authentication.known_keys import KeyHolder
    from evidence.models import SubjectKey
    from kernel.database.prepared_statements import Parameters
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext


class AskedBasis(NamedTuple):
    """What the database was asked: for whom, about which tool, whose key, at which moment; and, once it is there, the answer."""

    tenant_id: UUID
    agent_id: UUID
    key_id: UUID | None
    tool: str
    subject: str
    now: datetime
    found: Sequence[list[tuple[Any, ...]]] = ()

    @property
    def statements(self) -> tuple[tuple[bytes, Parameters], ...]:
        return (
            prepare_call_row(
                tenant_id=self.tenant_id, agent_id=self.agent_id, key_id=self.key_id, tool=self.tool, now=self.now
            ),
            prepare_key(tenant_id=self.tenant_id, subject=self.subject),
        )

    def is_for(self, other: AskedBasis) -> bool:
        """Whether its answer is the other's too, but for the moment."""
        return self[:5] == other[:5] and bool(self.found)

    def read(self, connection_id: UUID | None) -> tuple[DecisionContext, SubjectKey | None]:
        (row,), keys = self.found
        context = load_decision_context(
            tenant_id=self.tenant_id,
            agent_id=self.agent_id,
            key_id=self.key_id,
            connection_id=connection_id,
            tool=self.tool,
            now=self.now,
            row=read_call_row(row),
        )
        return context, read_key(keys, tenant_id=self.tenant_id, subject=self.subject)


class BasisAhead:
    """Basis of a call that is asked for together with the key of its caller (:class:`access.authentication.known_keys.ReadAhead`).
    ``user_id``: for whom the call says that it is made. Of no use for a call that turns out to be for somebody else.
    """

    def __init__(self, tool: str, user_id: str) -> None:
        self._tool, self._user_id = tool, user_id
        self.asked: AskedBasis | None = None

    def prepare(self, holder: KeyHolder) -> Sequence[tuple[bytes, Parameters]]:
        fingerprint = compute_user_fingerprint(self._user_id, tenant_id=holder.tenant_id)
        subject = choose_key_subject(fingerprint, agent_id=holder.agent_id, at=datetime.now(UTC))
        self.asked = AskedBasis(*holder, self._tool, subject, database_time())
        return self.asked.statements

    def take(self, holder: KeyHolder, found: Sequence[list[tuple[Any, ...]]]) -> None:
        assert self.asked is not None
        self.asked = self.asked._replace(found=found)


def load_call_basis(
    tool: str, user_fingerprint: str, *, at: datetime, by: Principal, ahead: BasisAhead | None = None
) -> tuple[DecisionContext, SubjectKey | None]:
    """``at``: when the call came. Without a key where there is none yet, and on SQLite, where it costs no way back and forth.

    ``ahead``: what was asked together with the caller's key; of no use where that turned out to be another's.
    """
    agent_id = by.agent()
    connection_id: UUID | None = by.connection.id if by.connection else None
    if connection.vendor != "postgresql":
        context = load_decision_context(
            tenant_id=by.tenant_id, agent_id=agent_id, key_id=by.key_id, connection_id=connection_id, tool=tool
        )
        return context, None
    subject = choose_key_subject(user_fingerprint, agent_id=agent_id, at=at)
    wanted = AskedBasis(by.tenant_id, agent_id, by.key_id, tool, subject, database_time())
    if ahead is not None and ahead.asked is not None and ahead.asked.is_for(wanted):
        return ahead.asked.read(connection_id)
    return wanted._replace(found=fetch_prepared_together(*wanted.statements)).read(connection_id)
