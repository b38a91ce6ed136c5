"""Budgets: how do tests take from budgets without a call, and read what is left?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Sum

from access.budgets.ledger import reserve_amounts
from access.budgets.lines import BudgetLine, Demand
from access.budgets.services import set_budget
from access.models import Budget, BudgetWindow, Reservation
from kernel.ids import new_id

if TYPE_CHECKING:
    from uuid import UUID

    from tests.conftest import Person

TOOL = "sample.tools.echo"
NOON = datetime(2026, 5, 1, 12, 0, 30, tzinfo=UTC)
DAY, MINUTE = 24 * 60 * 60, 60


class Crash(Exception):
    """The process dies here: nothing of its transaction is kept."""


def limit_tenant(by: Person, dimension: str, amount: int) -> Budget:
    """So much for all of the tenant, for a year."""
    return set_budget(scope="tenant", dimension=dimension, amount=amount, window_s=365 * DAY, by=by.by)


def take(lines: list[BudgetLine], demand: Demand | None = None, now: datetime = NOON, *, crash: bool = False) -> UUID:
    """What acceptance does; the call's id. ``crash``: it dies before it commits."""
    id = new_id()
    with transaction.atomic():
        reserve_amounts(invocation_id=id, lines=lines, demand=demand or Demand(), now=now)
        if crash:
            raise Crash
    return id


def balance(budget: Budget) -> tuple[int, int]:
    sums = budget.windows.aggregate(used=Sum("used"), reserved=Sum("reserved"))
    return sums["used"] or 0, sums["reserved"] or 0


def assert_conserved() -> None:
    """Each window says what its reservations say."""
    for window in BudgetWindow.objects.all():
        held = Reservation.objects.filter(window=window)
        assert window.reserved == (held.filter(settled=None).aggregate(sum=Sum("amount"))["sum"] or 0)
        assert window.used == (held.aggregate(sum=Sum("settled"))["sum"] or 0)
