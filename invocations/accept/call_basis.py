"""Basis of a call: what decides about it and the key of its values, read in one exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from evidence.keys.subject_keys import choose_key_subject, prepare_key, read_key
from kernel.database.connections import database_time
from kernel.database.prepared_statements import fetch_prepared_together
from registry.decision_context import load_decision_context
from registry.decision_statement import prepare_call_row, read_call_row

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from evidence.models import SubjectKey
    from kernel.principal import Principal
    from registry.decision_context import DecisionContext


def load_call_basis(
    tool: str, user_fingerprint: str, *, at: datetime, by: Principal
) -> tuple[DecisionContext, SubjectKey | None]:
    """``at``: when the call came. Without a key where there is none yet, and on SQLite, where it costs no way back and forth."""
    agent_id = by.agent()
    connection_id: UUID | None = by.connection.id if by.connection else None
    if connection.vendor != "postgresql":
        context = load_decision_context(
            tenant_id=by.tenant_id, agent_id=agent_id, key_id=by.key_id, connection_id=connection_id, tool=tool
        )
        return context, None
    now, subject = database_time(), choose_key_subject(user_fingerprint, agent_id=agent_id, at=at)
    (row,), keys = fetch_prepared_together(
        prepare_call_row(tenant_id=by.tenant_id, agent_id=agent_id, key_id=by.key_id, tool=tool, now=now),
        prepare_key(tenant_id=by.tenant_id, subject=subject),
    )
    context = load_decision_context(
        tenant_id=by.tenant_id,
        agent_id=agent_id,
        key_id=by.key_id,
        connection_id=connection_id,
        tool=tool,
        now=now,
        row=read_call_row(row),
    )
    return context, read_key(keys, tenant_id=by.tenant_id, subject=subject)
