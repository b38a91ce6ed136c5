"""Pairs of Begin and End: has every call of every test its pair? And how does a test make a call by hand?

After each test that had the database, one statement reads all calls and chains with their Begins and Ends. The few tests that
break pairs on purpose are marked ``unpaired``.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import connection, transaction

from access.models import Agent
from evidence import services as evidence
from evidence.kinds import PAIR, Kind
from invocations.end.end_record import build_caller_principal
from invocations.models import Invocation
from kernel.database.tenancy import hub_wide
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

CHAINS = (Kind.CHAIN_BEGAN, Kind.CHAIN_ENDED)
_READ = """
    SELECT 'call', CAST(id AS text), state, finished_at IS NOT NULL, dry_run FROM invocations_invocation
    UNION ALL SELECT 'chain', CAST(id AS text), state, finished_at IS NOT NULL, false FROM invocations_chain
    UNION ALL SELECT kind, CAST(invocation_id AS text), outcome, true, false FROM evidence_fact WHERE kind IN ({pair})
    UNION ALL SELECT kind, subject, outcome, true, false FROM evidence_fact WHERE kind IN ({chains})
"""
seen = {"tests": 0, "calls": 0, "chains": 0}


def _texts(kinds: Sequence[str]) -> str:
    return ", ".join(f"'{kind}'" for kind in kinds)


_UNLIKE = """
    SELECT id, state FROM (SELECT id, state FROM invocations_invocation WHERE finished_at IS NULL EXCEPT
                           SELECT id, state FROM invocations_unfinishedcall) one
    UNION ALL
    SELECT id, state FROM (SELECT id, state FROM invocations_unfinishedcall EXCEPT
                           SELECT id, state FROM invocations_invocation WHERE finished_at IS NULL) other
"""


def unlike_their_narrow_rows() -> list[str]:
    """Calls that have not ended whose narrow row is missing or says another state, and narrow rows of no such call."""
    with hub_wide(), connection.cursor() as cursor:
        cursor.execute(_UNLIKE)
        return [f"{encode('inv', UUID(str(id)))}: {state}" for id, state in cursor.fetchall()]


def without_their_pair() -> list[str]:
    """The calls and chains that lack a Begin or an End, or have one too many, with what they have."""
    with hub_wide(), connection.cursor() as cursor:
        cursor.execute(_READ.format(pair=_texts(PAIR), chains=_texts(CHAINS)))
        rows = cursor.fetchall()
    wanted: dict[str, list[str]] = {}
    found: dict[str, list[str]] = defaultdict(list)
    for what, id, state, final, dry_run in rows:
        if what in ("call", "chain"):
            name = encode("inv" if what == "call" else "chn", UUID(id))
            begin = what if what == "chain" else "dry_run" if dry_run else "invocation"
            wanted[name] = [f"{begin}.began", *([f"{begin}.ended {state}"] if final else [])]
            seen[f"{what}s"] += 1
        else:
            name = id if what in CHAINS else encode("inv", UUID(id))
            found[name].append(what if what.endswith("began") else f"{what} {state}")
    seen["tests"] += bool(wanted)
    return [
        f"{name}: {sorted(found[name])}"
        for name in {*wanted, *found}
        if sorted(found[name]) != sorted(wanted.get(name, []))
    ]


def keep_calls(*rows: Invocation) -> list[Invocation]:
    """Calls made by hand, with the Begin, and the End of those that have ended."""
    with transaction.atomic():
        Invocation.objects.bulk_create(rows)
        for row in rows:
            _witness(row, Kind.DRY_RUN_BEGAN if row.dry_run else Kind.INVOCATION_BEGAN)
            if row.finished_at:
                _witness(row, Kind.DRY_RUN_ENDED if row.dry_run else Kind.INVOCATION_ENDED)
    return list(rows)


def keep_end(row: Invocation, *, state: str, at: datetime) -> None:
    """The end of a call that was made by hand and open."""
    with transaction.atomic():
        row.state, row.finished_at = state, at
        row.save(update_fields=["state", "finished_at"])
        _witness(row, Kind.INVOCATION_ENDED)


def keep_open_call(id: UUID, *, tenant_id: UUID, tool: str) -> None:
    """A call by hand that goes on, in the transaction in which the test writes its Begin."""
    agent, _ = Agent.objects.get_or_create(tenant_id=tenant_id, name="by-hand")
    Invocation.objects.create(
        id=id, tenant_id=tenant_id, agent=agent, tool=tool, state="running", created_at=datetime.now(UTC)
    )


def end_call(row: Invocation, state: str) -> int:
    """As if the call had come to this end, without any of what else belongs to one."""
    with transaction.atomic():
        row.state, row.finished_at = state, datetime.now(UTC)
        changed = Invocation.objects.filter(pk=row.pk).update(state=row.state, finished_at=row.finished_at)
        _witness(row, Kind.DRY_RUN_ENDED if row.dry_run else Kind.INVOCATION_ENDED)
    return changed


def _witness(row: Invocation, kind: Kind) -> None:
    more: dict[str, Any] = {} if kind.endswith("began") else {"outcome": str(row.state)}
    evidence.record(
        kind=kind, subject=row.wire_id, actor=build_caller_principal(row), invocation_id=row.pk, tool=row.tool, **more
    )
