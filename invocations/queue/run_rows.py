"""Run rows: what a call is run with, read in the exchange that claims it.

On PostgreSQL the claim notes in settings of its transaction which call it took and whose. So what is asked about that call needs no
word of the claim, and goes to the database together with it and with the commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from evidence.models import Snapshot, SnapshotKind
from invocations.models import FOR_WORK, Attempt, Invocation
from kernel.database.connections import database_time
from kernel.database.prepared_statements import fetch_prepared_later
from kernel.database.rows import PreparedQuery, get_row_values, write_row_columns
from registry.decision_statement import read_call_row, write_call_statement
from registry.installations.services import INSTALLED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from registry.decision_rows import CallRow
    from registry.models import Installation

INPUT = PreparedQuery(
    lambda invocation_id: Snapshot.objects.filter(invocation_id=invocation_id, kind=SnapshotKind.INPUT).select_related(
        "subject_key__tenant_key"
    ),
    invocation_id=UUID,
)
OF_CLAIM = {"invocation": "id", "number": "attempt"}  # what the claimed row says of its attempt
# Column of the claimed row -> the setting that has it, and its type.
_NOTED = {
    "id": ("app.claimed", "uuid"),
    "tenant_id": ("app.claimed_tenant", "uuid"),
    "agent_id": ("app.claimed_agent", "uuid"),
    "key_id": ("app.claimed_key", "uuid"),
    "tool": ("app.claimed_tool", "text"),
}
# Evaluated once a statement; nothing was claimed: null, which no row has.
_SAID = {
    column: f"(SELECT NULLIF(current_setting('{setting}', true), '')::{kind})"
    for column, (setting, kind) in _NOTED.items()
}
_NOTES = ", ".join(
    f"set_config('{setting}', COALESCE({column}::text, ''), true)" for column, (setting, _) in _NOTED.items()
)
DECIDING = write_call_statement(
    tenant=_SAID["tenant_id"], agent=_SAID["agent_id"], key=_SAID["key_id"], name=_SAID["tool"], agent_name="''"
)


@dataclass(frozen=True, slots=True)
class RunRows:
    """``deciding``: what decides about the call at this moment (``at``). Lists of one, or of none."""

    at: datetime
    deciding: CallRow
    installations: list[Installation]
    inputs: list[Snapshot]


@cache
def write_claim(update: str) -> bytes:
    """The claim by ``update``, with the attempt that it begins and the notes of whose it is."""
    columns, places = write_row_columns(Attempt, **OF_CLAIM)
    return f"""
{update} RETURNING id, tenant_id, agent_id, key_id, tool, attempt
), begun AS (
  INSERT INTO {Attempt._meta.db_table} ({columns}) SELECT {places} FROM claimed
)
SELECT id, {_NOTES} FROM claimed
""".encode()  # noqa: S608  names only


def claim_with_rows(begun: Attempt, asked: Mapping[str, Any], update: str) -> ClaimInFlight:
    """Send the claim, and all that is asked about its call, with the end of this transaction. ``begun``: the attempt, but for whose it
    is. ``update``: what ends in the UPDATE of the call's row, without its RETURNING.
    """
    at = database_time()
    return ClaimInFlight(
        at,
        [
            fetch_prepared_later(write_claim(update), {**asked, **get_row_values(begun, except_for=OF_CLAIM)}),
            FOR_WORK.ask_later_for(pk=_SAID["id"]),
            fetch_prepared_later(DECIDING, {"now": at, "second": int(at.timestamp())}),
            INSTALLED.ask_later_for(tenant_id=_SAID["tenant_id"], name=_SAID["tool"]),
            INPUT.ask_later_for(invocation_id=_SAID["id"]),
        ],
    )


@dataclass(frozen=True, slots=True)
class ClaimInFlight:
    """A claim that was sent; what it found can be read once its transaction has ended."""

    at: datetime
    found: list[Any]

    def read(self) -> Invocation | None:
        claimed, call, deciding, installations, inputs = (each.get() for each in self.found)
        if not claimed:
            return None
        invocation: Invocation = FOR_WORK.read(call)[0]
        invocation.run_rows = RunRows(
            self.at, read_call_row(deciding[0]), INSTALLED.read(installations), INPUT.read(inputs)
        )
        return invocation
