"""Budget balance: is the balance exact, whatever calls do and wherever they break off?"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.db.models import F, Q

from access.budgets.ledger import CallUsage, release_reservations, settle_reservations
from access.budgets.lines import BudgetLine, Demand
from access.budgets.services import set_budget
from access.models import Budget, BudgetWindow
from access.problems import QuotaExceeded
from tests.support.budgets import DAY, MINUTE, NOON, TOOL, Crash, assert_conserved, balance, take
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from tests.conftest import Caller, Person


@pytest.mark.req("TOOLS-29")
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
@pytest.mark.django_db
def test_calls_that_settle_fail_and_crash_at_random_leave_the_balance_exact(
    seed: int, operator: Person, caller: Caller, lines: Callable[..., list[BudgetLine]]
) -> None:
    chance = random.Random(seed)
    set_budget(scope="tenant", dimension="calls", amount=25, window_s=DAY, by=operator.by)
    set_budget(scope="tenant", dimension="money", amount=900, window_s=MINUTE, by=operator.by)
    set_budget(scope="agent", agent_id=caller.agent.pk, dimension="bytes_out", amount=4_000, by=operator.by)
    set_budget(scope="tool", tool=TOOL, dimension="cpu_ms", amount=2_000, by=operator.by)
    set_budget(scope="tool", tool=TOOL, dimension="concurrency", amount=6, window_s=0, by=operator.by)
    running: list[UUID] = []
    now, counted, refused = NOON, 0, 0
    for _ in range(120):
        now += timedelta(seconds=chance.choice([-20, 0, 5, 30]))
        match chance.choice(["call", "call", "call", "crash", "end", "end", "never", "crash in the end"]):
            case "call" | "crash" as what:
                demand = Demand(
                    bytes_out=chance.randrange(300), cpu_ms=chance.randrange(200), money=chance.randrange(100)
                )
                try:
                    running += [take(lines(now), demand, now, crash=what == "crash")]
                except Crash:
                    pass
                except QuotaExceeded:
                    refused += 1
            case "end" if running:
                spent = CallUsage(bytes_out=chance.randrange(200), cpu_ms=chance.choice([None, 0, 250]))
                counted += (
                    settle_reservations(invocation_id=running.pop(chance.randrange(len(running))), spent=spent) > 0
                )
            case "never" if running:
                release_reservations(invocation_id=running.pop())
            case "crash in the end" if running:
                with pytest.raises(Crash), transaction.atomic():
                    settle_reservations(invocation_id=running[0], spent=CallUsage())
                    raise Crash
        assert_conserved()
        calls = Budget.objects.get(dimension="calls")
        assert balance(calls) == (counted, len(running))
        over = BudgetWindow.objects.filter(used__gt=F("budget__amount"))
        assert not over.exclude(budget__dimension="cpu_ms").exists()

    for id in running:
        settle_reservations(invocation_id=id, spent=CallUsage())
    assert BudgetWindow.objects.filter(~Q(reserved=0)).count() == 0
    assert_conserved()
    assert refused > 0


@pytest.mark.django_db(transaction=True)
def test_sixteen_writers_on_the_same_budgets_neither_deadlock_nor_lose_anything(
    operator: Person, caller: Caller, lines: Callable[..., list[BudgetLine]]
) -> None:
    amount = 60
    set_budget(scope="tenant", dimension="calls", amount=amount, window_s=DAY, by=operator.by)
    set_budget(scope="tenant", dimension="cpu_ms", amount=10_000_000, window_s=DAY, by=operator.by)
    set_budget(scope="agent", agent_id=caller.agent.pk, dimension="bytes_out", amount=10_000_000, by=operator.by)
    set_budget(scope="tool", tool=TOOL, dimension="concurrency", amount=10_000, window_s=0, by=operator.by)

    def work(number: int) -> list[str]:
        chance, done = random.Random(number), []
        for _ in range(10):
            seen = lines()
            chance.shuffle(seen)  # the order of locks is the ledger's, not the caller's
            try:
                id = take(seen, Demand(bytes_out=100, cpu_ms=50))
            except QuotaExceeded:
                done.append("refused")
                continue
            if chance.random() < 0.3:
                release_reservations(invocation_id=id)
                done.append("released")
            else:
                settle_reservations(invocation_id=id, spent=CallUsage(bytes_out=10, cpu_ms=70))
                done.append("settled")
        return done

    answers = at_once(16, work)

    assert [each for each in answers if isinstance(each, Exception)] == []
    told = [what for each in answers for what in each]  # type: ignore[union-attr]
    settled = told.count("settled")
    assert {"settled", "released"} <= set(told)
    assert balance(Budget.objects.get(dimension="calls")) == (settled, 0)
    assert balance(Budget.objects.get(dimension="cpu_ms")) == (settled * 70, 0)
    assert balance(Budget.objects.get(dimension="concurrency")) == (0, 0)
    assert_conserved()
    for _ in range(amount - settled):
        take(lines())
    with pytest.raises(QuotaExceeded):
        take(lines())
