"""Chain reservations: what all calls of a chain may take, held before the first is made.

:func:`reserve_for_chain` reserves the sum under the id of the chain, in every budget or in none. Each call then draws what
it may take from
that, in the windows in which it was reserved, so a chain that was accepted does not run out of budget; what is left at its end is
released. Limits of speed (rates, calls at the same time) are no amounts that run out: they make a call of the chain wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from django.db import connection

from access.budgets import ledger
from access.budgets.lines import BudgetLine, Demand, build_line, build_quota_problem, with_windows
from access.models import Budget, Dimension, Reservation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from uuid import UUID

WHO = "this chain"
SPEED = (Dimension.CONCURRENCY, Dimension.RATE)


class ChainShare(NamedTuple):
    """What one call of a chain may take at most, and how often it may be made."""

    lines: list[BudgetLine]
    demand: Demand
    times: int = 1


def sum_shares(shares: Iterable[ChainShare]) -> list[tuple[BudgetLine, int]]:
    """The sum of what all calls may take, by budget."""
    lines: dict[UUID, BudgetLine] = {}
    amounts: dict[UUID, int] = {}
    for share in shares:
        for line in share.lines:
            if line.dimension not in SPEED:
                lines[line.budget_id] = line
                takes = share.demand.of(line.dimension) * share.times
                amounts[line.budget_id] = amounts.get(line.budget_id, 0) + takes
    return [(lines[id], amount) for id, amount in amounts.items() if amount]


def _refuse(line: BudgetLine, amount: int, now: datetime) -> NoReturn:
    raise build_quota_problem(line, Demand(**{"calls": 0, line.dimension: amount}), now, WHO)


def check_room(shares: Iterable[ChainShare], now: datetime) -> None:
    """Raise for the first budget that has no room for the whole. Decides nothing for good: :func:`reserve_for_chain` does."""
    for line, amount in sum_shares(shares):
        if line.used + line.reserved + amount > line.amount:
            _refuse(line, amount, now)


def reserve_for_chain(*, chain_id: UUID, shares: Iterable[ChainShare], now: datetime) -> None:
    """Reserve the whole, or raise; last in the transaction that accepts the chain, as for a call."""
    assert connection.in_atomic_block, "what is reserved belongs to the transaction that accepts the chain"
    wanted = sum_shares(shares)
    short = ledger.take_amounts(chain_id, wanted, now)
    if short:
        amounts = {line.budget_id: amount for line, amount in wanted}
        budgets = Budget.objects.filter(pk=short[0].budget_id).select_related("agent")
        [fresh] = [build_line(budget, window) for budget, window in with_windows(budgets, now)]
        _refuse(fresh, amounts[fresh.budget_id], now)


def _held(chain_id: UUID) -> dict[UUID, Reservation]:
    rows = Reservation.objects.filter(invocation_id=chain_id, settled=None).select_related("window")
    return {row.window.budget_id: row for row in rows}


def build_step_lines(lines: Iterable[BudgetLine], *, chain_id: UUID) -> tuple[BudgetLine, ...]:
    """The budgets as a call of the chain finds them: with room for what is held for it, in the window where that is."""
    held, found = _held(chain_id), []
    for line in lines:
        if row := held.get(line.budget_id):
            others = row.window.reserved - row.amount
            amount = max(line.amount, row.window.used + row.window.reserved)  # a limit that was lowered since
            line = line._replace(number=row.window.number, used=row.window.used, reserved=others, amount=amount)
        found.append(line)
    return tuple(found)


def draw_from_chain(
    *, chain_id: UUID, invocation_id: UUID, lines: Iterable[BudgetLine], demand: Demand, now: datetime
) -> None:
    """Move what a call may take from the chain to the call. What the chain does not hold is reserved as for any call."""
    assert connection.in_atomic_block, "what is drawn belongs to the transaction that accepts the call"
    held, rest = _held(chain_id), []
    for line in lines:
        row, takes = held.get(line.budget_id), demand.of(line.dimension)
        if row is None or row.amount < takes:
            rest.append(line)
        elif takes:
            Reservation.objects.filter(pk=row.pk).update(amount=row.amount - takes)
            Reservation.objects.create(
                tenant_id=row.tenant_id,
                invocation_id=invocation_id,
                window_id=row.window_id,
                amount=takes,
                created_at=now,
            )
    ledger.reserve_amounts(invocation_id=invocation_id, lines=rest, demand=demand, now=now)
