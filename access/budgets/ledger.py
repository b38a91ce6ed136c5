"""Ledger: what is reserved of each budget, and what was used in the end.

What a call may take at most is reserved when it is accepted, settled when it has ended, and given back when nothing ran; each
inside the transaction of that step, so that a crash leaves either both or neither. Limits are decided by the rows that a
conditional write wins, never by a value that was read before. Rows are locked in one order, the windows' (budget, number).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F

from access.budgets.lines import BudgetLine, Demand, build_line, build_quota_problem, check_budgets, with_windows
from access.models import Budget, BudgetWindow, Dimension, Reservation
from kernel.database.connections import database_time
from kernel.database.prepared_statements import (
    execute_prepared,
    execute_prepared_last,
    execute_prepared_later,
    fetch_prepared,
)
from kernel.ids import lowest_id, new_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from django.db.models import QuerySet

    from kernel.database.postgresql.expectations import UnmetExpectation


@dataclass(frozen=True, slots=True)
class CallUsage:
    """What a call has taken. None: nobody knows, or exactly what was reserved; then what was reserved counts."""

    calls: int | None = 1
    bytes_in: int | None = None
    bytes_out: int | None = None
    cpu_ms: int | None = None
    tokens: int | None = None
    money: int | None = None

    def of(self, dimension: str, reserved: int) -> int:
        if dimension == Dimension.CONCURRENCY:
            return 0  # the place is free again
        spent: int | None = getattr(self, dimension)
        return reserved if spent is None else spent


NOTHING = CallUsage(calls=0, bytes_in=0, bytes_out=0, cpu_ms=0, tokens=0, money=0)
WHAT_WAS_RESERVED = CallUsage(calls=None)

ROOM = "room in budgets"
KEPT, AT_ONCE = timedelta(days=1), 1000  # reservations, once they are settled
# The same upsert for both databases: a window is made when it is missing, and takes the amount only when it has room for it.
# `asked` has the columns budget_id, number, amount. The limit is read here, so that one that was lowered counts.
TAKE = """
INSERT INTO access_budgetwindow AS w (budget_id, number, used, reserved, raised)
SELECT asked.budget_id, asked.number, 0, asked.amount, 0
  FROM {asked} JOIN access_budget b ON b.id = asked.budget_id
  LEFT JOIN access_budgetwindow o ON o.budget_id = asked.budget_id AND o.number = asked.number
 WHERE asked.amount <= b.amount + COALESCE(o.raised, 0)
 ORDER BY asked.budget_id, asked.number
    ON CONFLICT (budget_id, number) DO UPDATE SET reserved = w.reserved + excluded.reserved
 WHERE w.used + w.reserved + excluded.reserved
       <= w.raised + (SELECT b.amount FROM access_budget b WHERE b.id = excluded.budget_id)
RETURNING id, budget_id
"""
_RESERVE = f"""
WITH asked AS (
  SELECT * FROM unnest(%(reservations)s::uuid[], %(budgets)s::uuid[], %(numbers)s::bigint[], %(amounts)s::bigint[])
    AS a(reservation_id, budget_id, number, amount)
), won AS ({TAKE.format(asked="asked")}), kept AS (
  INSERT INTO access_reservation (id, tenant_id, invocation_id, window_id, amount, created_at)
  SELECT asked.reservation_id, b.tenant_id, %(invocation)s::uuid, won.id, asked.amount, %(now)s::timestamptz
    FROM won JOIN asked ON asked.budget_id = won.budget_id JOIN access_budget b ON b.id = won.budget_id
)
"""  # noqa: S608  constants only
RESERVE = (_RESERVE + "SELECT budget_id FROM won").encode()  # noqa: S608  constants only
# Raises where there is no room, so that the commit can go with it: the rows are locked for no way back and forth.
RESERVE_ALL = f"""{_RESERVE}
SELECT toolhub_expect(
    count(*) = count(won.budget_id), '{ROOM} ' || string_agg(asked.budget_id::text, ' ') FILTER (WHERE won.budget_id IS NULL)
  ) FROM asked LEFT JOIN won ON won.budget_id = asked.budget_id
""".encode()  # noqa: S608  constants only
TAKE_FROM_JSON = TAKE.format(
    asked="""(SELECT json_extract(value, '$[0]') AS budget_id, json_extract(value, '$[1]') AS number,
                     json_extract(value, '$[2]') AS amount FROM json_each(%(asked)s)) AS asked"""
).encode()
KEEP_FROM_JSON = b"""
INSERT INTO access_reservation (id, tenant_id, invocation_id, window_id, amount, created_at)
SELECT json_extract(won.value, '$[0]'), b.tenant_id, %(invocation)s, w.id, json_extract(won.value, '$[2]'), %(now)s
  FROM json_each(%(won)s) won JOIN access_budgetwindow w ON w.id = json_extract(won.value, '$[1]')
  JOIN access_budget b ON b.id = w.budget_id
"""
# What a reservation has become, by the dimension of its budget.
SETTLED = """CASE {dimension}
         WHEN 'calls' THEN COALESCE(%(calls)s{number}, {amount})
         WHEN 'bytes_in' THEN COALESCE(%(bytes_in)s{number}, {amount})
         WHEN 'bytes_out' THEN COALESCE(%(bytes_out)s{number}, {amount})
         WHEN 'cpu_ms' THEN COALESCE(%(cpu_ms)s{number}, {amount})
         WHEN 'tokens' THEN COALESCE(%(tokens)s{number}, {amount})
         WHEN 'money' THEN COALESCE(%(money)s{number}, {amount})
         ELSE 0 END"""
SETTLE = f"""
WITH held AS MATERIALIZED (
  SELECT w.id, b.dimension FROM access_budgetwindow w JOIN access_budget b ON b.id = w.budget_id
   WHERE w.id IN (SELECT window_id FROM access_reservation WHERE invocation_id = %(invocation)s::uuid AND settled IS NULL)
   ORDER BY w.budget_id, w.number FOR NO KEY UPDATE OF w
), done AS (
  UPDATE access_reservation r SET settled = {SETTLED.format(dimension="held.dimension", amount="r.amount", number="::bigint")}
    FROM held WHERE r.window_id = held.id AND r.invocation_id = %(invocation)s::uuid AND r.settled IS NULL
  RETURNING r.window_id, r.amount, r.settled
)
UPDATE access_budgetwindow w SET reserved = w.reserved - done.amount, used = w.used + done.settled
  FROM done WHERE w.id = done.window_id
RETURNING w.id
""".encode()  # noqa: S608  constants only
# Of several calls that are settled in one transaction, in the order of everybody else. Each is looked for by itself (OFFSET): of a
# table that is thought to be small PostgreSQL would read all, and goes on so until it is analysed.
LOCK_WINDOWS = b"""
SELECT 1 FROM access_budgetwindow WHERE id IN (
  SELECT held.window_id FROM unnest(%(invocations)s::uuid[]) AS call(id), LATERAL (
    SELECT window_id FROM access_reservation WHERE invocation_id = call.id AND settled IS NULL OFFSET 0
  ) held
) ORDER BY budget_id, number FOR NO KEY UPDATE"""
DIMENSION = (
    "(SELECT b.dimension FROM access_budgetwindow w JOIN access_budget b ON b.id = w.budget_id WHERE w.id = window_id)"
)
SETTLE_RESERVATIONS = f"""
UPDATE access_reservation SET settled = {SETTLED.format(dimension=DIMENSION, amount="amount", number="")}
 WHERE invocation_id = %(invocation)s AND settled IS NULL
RETURNING window_id, amount, settled
""".encode()  # noqa: S608  constants only
SETTLE_WINDOW = b"UPDATE access_budgetwindow SET reserved = reserved - %s, used = used + %s WHERE id = %s"


def reserve_amounts(*, invocation_id: UUID, lines: Iterable[BudgetLine], demand: Demand, now: datetime) -> None:
    """Hold what the call may take, in every line or in none: raises where there is no room, and the caller rolls back.

    Last in the transaction that accepts the call, since the rows are contended and stay locked until it commits.
    """
    assert connection.in_atomic_block, "what is reserved belongs to the transaction that accepts the call"
    wanted = _list_wanted(lines, demand)
    short = take_amounts(invocation_id, wanted, now)
    if short:
        raise_shortage([line.budget_id for line in short], demand, now)


def _list_wanted(lines: Iterable[BudgetLine], demand: Demand) -> list[tuple[BudgetLine, int]]:
    return [(line, demand.of(line.dimension)) for line in lines if demand.of(line.dimension)]


def reserve_at_commit(*, invocation_id: UUID, lines: Iterable[BudgetLine], demand: Demand, now: datetime) -> None:
    """The same, sent with the commit of the transaction, which fails where there is no room: whoever began it calls
    :func:`explain_shortage` with what it raises.
    """
    if connection.vendor != "postgresql":
        reserve_amounts(invocation_id=invocation_id, lines=lines, demand=demand, now=now)
        return
    assert connection.in_atomic_block, "what is reserved belongs to the transaction that accepts the call"
    if wanted := _list_wanted(lines, demand):
        execute_prepared_later(RESERVE_ALL, _write_asked(invocation_id, wanted, now))


def explain_shortage(unmet: UnmetExpectation, demand: Demand, now: datetime) -> None:
    """Say which budget had no room, if it was that, once the transaction is rolled back."""
    if unmet.expected.startswith(ROOM):
        raise_shortage(list(map(UUID, unmet.expected.removeprefix(ROOM).split())), demand, now)


def take_amounts(holder: UUID, wanted: list[tuple[BudgetLine, int]], now: datetime) -> list[BudgetLine]:
    """Hold an amount of each line; returns those that have no room for it, and then the caller rolls back."""
    if not wanted:
        return []
    taken = _take_postgresql if connection.vendor == "postgresql" else _take_sqlite
    won = taken(holder, wanted, now)
    return [line for line, _ in wanted if line.budget_id not in won]


def raise_shortage(short: list[UUID], demand: Demand, now: datetime) -> NoReturn:
    """Say which budget had no room, as it stands now: another call has taken what the preflight saw."""
    budgets = Budget.objects.filter(pk__in=short).select_related("agent")
    fresh = [build_line(budget, window) for budget, window in with_windows(budgets, now)]
    check_budgets(fresh, demand, now)
    raise build_quota_problem(
        fresh[0], demand, now
    )  # it was given back this very moment: the caller may try again at once


def _take_postgresql(invocation_id: UUID, wanted: list[tuple[BudgetLine, int]], now: datetime) -> set[UUID]:
    return {row[0] for row in fetch_prepared(RESERVE, _write_asked(invocation_id, wanted, now))}


def _write_asked(invocation_id: UUID, wanted: list[tuple[BudgetLine, int]], now: datetime) -> dict[str, Any]:
    return {
        "reservations": [new_id() for _ in wanted],
        "budgets": [line.budget_id for line, _ in wanted],
        "numbers": [line.number for line, _ in wanted],
        "amounts": [amount for _, amount in wanted],
        "invocation": invocation_id,
        "now": now,
    }


def _take_sqlite(invocation_id: UUID, wanted: list[tuple[BudgetLine, int]], now: datetime) -> AbstractSet[UUID]:
    asked = [[line.budget_id, line.number, amount] for line, amount in wanted]
    windows = {UUID(budget): window for window, budget in fetch_prepared(TAKE_FROM_JSON, {"asked": asked})}
    won = [[new_id(), windows[line.budget_id], amount] for line, amount in wanted if line.budget_id in windows]
    execute_prepared(KEEP_FROM_JSON, {"won": won, "invocation": invocation_id, "now": now})
    return windows.keys()


@transaction.atomic(savepoint=False)
def settle_reservations(
    *, invocation_id: UUID, spent: CallUsage, apart: Mapping[UUID, CallUsage] = MappingProxyType({})
) -> int:
    """Count what the call has taken and give back the rest. Once: a call that is settled stays as it is.

    How many windows it changed. A call may have taken more than it reserved (CPU time): then it counts in full. ``apart``: what it has
    taken of single budgets, where that is something else.
    """
    held = Reservation.objects.filter(invocation_id=invocation_id, settled=None)
    changed = 0
    if apart:
        # All of them before the first is written, in the order of everybody else.
        windows = BudgetWindow.objects.filter(pk__in=held.values("window_id")).order_by("budget_id", "number")
        list(windows.select_for_update(no_key=True).values_list("pk"))
        changed = _settle_plainly(held.filter(window__budget_id__in=list(apart)), spent, apart)
    settle = _settle_postgresql if connection.vendor == "postgresql" else _settle_sqlite
    return changed + settle(_write_spent(invocation_id, spent))


def _settle_postgresql(asked: dict[str, Any]) -> int:
    return len(fetch_prepared(SETTLE, asked))


def _settle_sqlite(asked: dict[str, Any]) -> int:
    settled = fetch_prepared(SETTLE_RESERVATIONS, asked)
    for window, amount, took in settled:
        execute_prepared(SETTLE_WINDOW, [amount, took, window])
    return len(settled)


def settle_at_commit(
    *, invocation_id: UUID, spent: CallUsage, apart: Mapping[UUID, CallUsage] = MappingProxyType({})
) -> None:
    """The same, sent with the commit of the transaction, so that the windows are locked for no way back and forth."""
    if apart or connection.vendor != "postgresql":
        settle_reservations(invocation_id=invocation_id, spent=spent, apart=apart)
        return
    assert connection.in_atomic_block, "what is settled belongs to the transaction that ends the call"
    lists = {"invocations": [invocation_id]}
    execute_prepared_last(SETTLE, _write_spent(invocation_id, spent), lock=LOCK_WINDOWS, of=lists)


def _write_spent(invocation_id: UUID, spent: CallUsage) -> dict[str, Any]:
    measured = ("calls", "bytes_in", "bytes_out", "cpu_ms", "tokens", "money")
    return {name: getattr(spent, name) for name in measured} | {"invocation": invocation_id}


def _settle_plainly(held: QuerySet[Reservation], spent: CallUsage, apart: Mapping[UUID, CallUsage]) -> int:
    """With their windows locked, or on SQLite, where a transaction that writes is alone."""
    found = list(held.select_related("window__budget"))
    for each in found:
        took = apart.get(each.window.budget_id, spent).of(each.window.budget.dimension, each.amount)
        Reservation.objects.filter(pk=each.pk).update(settled=took)
        BudgetWindow.objects.filter(pk=each.window_id).update(
            reserved=F("reserved") - each.amount, used=F("used") + took
        )
    return len(found)


def release_reservations(*, invocation_id: UUID) -> int:
    """Give everything back, the call too: nothing ran."""
    return settle_reservations(invocation_id=invocation_id, spent=NOTHING)


def open_since(before: datetime, *, limit: int) -> list[UUID]:
    """Calls that hold something since before then, the oldest first. The sweeper knows which of them have ended."""
    held = Reservation.objects.filter(settled=None, created_at__lt=before).order_by("created_at")
    return list(dict.fromkeys(held.values_list("invocation_id", flat=True)[:limit]))


def settle_lost(invocation_ids: Iterable[UUID]) -> int:
    """Settle calls that ended, or never were, without anybody settling them: what they reserved counts as used."""
    return sum(settle_reservations(invocation_id=each, spent=WHAT_WAS_RESERVED) > 0 for each in invocation_ids)


def remove_settled(kept: timedelta = KEPT, *, limit: int = AT_ONCE) -> int:
    """The oldest of what was settled longer ago than it is kept; how many went. Windows have counted it, and nobody asks for it."""
    old = Reservation.objects.filter(pk__lt=lowest_id(database_time() - kept), settled__isnull=False).order_by("pk")
    return Reservation.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:limit])).delete()[0]
