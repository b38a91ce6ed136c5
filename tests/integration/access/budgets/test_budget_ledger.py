"""Budget ledger: does a call hold what it may take, count what it took, and give back the rest?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from django.utils import timezone

from access.budgets import ledger
from access.budgets.ledger import CallUsage, release_reservations, settle_reservations
from access.budgets.lines import BudgetLine, Demand, lines_for
from access.budgets.services import end_budget, raise_budget_once, set_budget
from access.models import Reservation
from access.problems import QuotaExceeded
from kernel.database.prepared_statements import fetch_prepared
from kernel.ids import lowest_id, new_id
from registry.decision_context import load_decision_context
from tests.support.budgets import DAY, MINUTE, NOON, TOOL, assert_conserved, balance, take

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

OTHER = "sample.tools.other"


@pytest.mark.req("TOOLS-29")
@pytest.mark.django_db
def test_a_call_counts_what_it_took_and_gives_back_the_rest(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budgets = {
        dimension: set_budget(scope="tenant", dimension=dimension, amount=1_000_000, by=operator.by)
        for dimension in ("calls", "bytes_in", "bytes_out", "cpu_ms", "tokens", "money")
    }
    demand = Demand(bytes_in=100, bytes_out=5_000, cpu_ms=2_000, tokens=900, money=700)

    id = take(lines(), demand)

    assert {dimension: balance(budget) for dimension, budget in budgets.items()} == {
        "calls": (0, 1), "bytes_in": (0, 100), "bytes_out": (0, 5_000), "cpu_ms": (0, 2_000), "tokens": (0, 900),
        "money": (0, 700),
    }  # fmt: skip

    settle_reservations(invocation_id=id, spent=CallUsage(bytes_out=1_234, cpu_ms=56, tokens=77))

    assert {dimension: balance(budget) for dimension, budget in budgets.items()} == {
        "calls": (1, 0), "bytes_in": (100, 0), "bytes_out": (1_234, 0), "cpu_ms": (56, 0), "tokens": (77, 0),
        "money": (700, 0),
    }  # fmt: skip
    assert_conserved()


@pytest.mark.django_db
def test_settling_again_and_releasing_what_is_settled_change_nothing(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="cpu_ms", amount=1_000, by=operator.by)
    id = take(lines(), Demand(cpu_ms=400))

    changed = [
        settle_reservations(invocation_id=id, spent=CallUsage(cpu_ms=30)),
        settle_reservations(invocation_id=id, spent=CallUsage(cpu_ms=900)),
        release_reservations(invocation_id=id),
    ]

    assert changed == [1, 0, 0]
    assert balance(budget) == (30, 0)


@pytest.mark.req("LLM-7")
@pytest.mark.django_db
def test_what_single_budgets_are_settled_at_is_theirs_alone(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    terms: dict[str, Any] = {"dimension": "tokens", "amount": 1_000, "by": operator.by}
    first, second = (set_budget(scope="tool", tool=tool, **terms) for tool in (TOOL, OTHER))
    whole = set_budget(scope="tenant", **terms)
    held = {line.budget_id: line for tool in (TOOL, OTHER) for line in lines(tool=tool)}
    id = take(list(held.values()), Demand(tokens=100))
    apart = {first.pk: CallUsage(tokens=3), second.pk: CallUsage(tokens=4)}

    for _ in range(2):
        settle_reservations(invocation_id=id, spent=CallUsage(tokens=7), apart=apart)

    assert [balance(each) for each in (first, second, whole)] == [(3, 0), (4, 0), (7, 0)]
    assert_conserved()


@pytest.mark.django_db
def test_a_call_that_never_ran_gives_everything_back_the_call_too(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=1, by=operator.by)

    for _ in range(3):
        release_reservations(invocation_id=take(lines()))

    assert balance(budget) == (0, 0)


@pytest.mark.req("TOOLS-29")
@pytest.mark.django_db
def test_what_has_no_room_in_one_budget_holds_nothing_of_any(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    calls = set_budget(scope="tenant", dimension="calls", amount=10, by=operator.by)
    cpu = set_budget(scope="tool", tool=TOOL, dimension="cpu_ms", amount=100, by=operator.by)
    seen = lines()
    take(seen, Demand(cpu_ms=60))

    with pytest.raises(QuotaExceeded) as caught:
        take(seen, Demand(cpu_ms=60))  # with lines that were read before the other call took its part

    assert caught.value.details["budget"]["budget"] == cpu.wire_id
    assert caught.value.details["budget"]["reserved"] == 60
    assert (balance(calls), balance(cpu)) == ((0, 1), (0, 60))
    assert Reservation.objects.count() == 2


@pytest.mark.parametrize("dimension", ["cpu_ms", "tokens"])
@pytest.mark.django_db
def test_what_is_measured_beyond_what_was_reserved_counts_in_full(
    dimension: str, operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension=dimension, amount=100, by=operator.by)

    settle_reservations(invocation_id=take(lines(), Demand(**{dimension: 90})), spent=CallUsage(**{dimension: 130}))

    assert balance(budget) == (130, 0)
    assert lines()[0].remaining == 0
    with pytest.raises(QuotaExceeded):
        take(lines(), Demand(**{dimension: 1}))


@pytest.mark.req("LLM-7")
@pytest.mark.django_db
def test_tokens_that_nobody_counted_are_taken_as_they_were_reserved(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="tokens", amount=100, by=operator.by)

    settle_reservations(invocation_id=take(lines(), Demand(tokens=60)), spent=CallUsage())

    assert balance(budget) == (60, 0)
    with pytest.raises(QuotaExceeded, match="of 100 tokens, 60 are used"):
        take(lines(), Demand(tokens=41))


@pytest.mark.django_db
def test_a_place_among_those_that_run_at_once_is_free_when_the_call_ends(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="concurrency", amount=2, window_s=0, by=operator.by)
    first, second = take(lines()), take(lines())

    with pytest.raises(QuotaExceeded):
        take(lines())
    settle_reservations(invocation_id=first, spent=CallUsage())
    third = take(lines(NOON + timedelta(days=400)))  # it has no window that would end
    for id in (second, third):
        settle_reservations(invocation_id=id, spent=CallUsage())

    assert balance(budget) == (0, 0)
    assert budget.windows.count() == 1


@pytest.mark.django_db
def test_the_next_window_has_the_whole_budget_and_the_last_keeps_its_own(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=1, window_s=MINUTE, by=operator.by)
    first = take(lines(NOON), now=NOON)
    with pytest.raises(QuotaExceeded) as caught:
        take(lines(NOON), now=NOON)
    assert caught.value.retry_after == 1  # it is held by a call that runs
    settle_reservations(invocation_id=first, spent=CallUsage())
    with pytest.raises(QuotaExceeded) as caught:
        take(lines(NOON), now=NOON)
    assert caught.value.retry_after == 30

    later = NOON + timedelta(seconds=30)
    second = take(lines(later), now=later)
    settle_reservations(invocation_id=second, spent=CallUsage())

    assert list(budget.windows.order_by("number").values_list("used", "reserved")) == [(1, 0), (1, 0)]


@pytest.mark.django_db
def test_a_clock_that_goes_back_neither_loses_nor_frees_anything(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=2, window_s=MINUTE, by=operator.by)
    ahead = NOON + timedelta(seconds=40)  # the next window
    running = take(lines(NOON), now=NOON)
    settle_reservations(invocation_id=take(lines(ahead), now=ahead), spent=CallUsage())

    settle_reservations(invocation_id=take(lines(NOON), now=NOON), spent=CallUsage())  # the clock was set back
    settle_reservations(
        invocation_id=running, spent=CallUsage()
    )  # in the window it was reserved in, whatever the time is now

    assert list(budget.windows.order_by("number").values_list("used", "reserved")) == [(2, 0), (1, 0)]
    with pytest.raises(QuotaExceeded):
        take(lines(NOON), now=NOON)
    take(lines(ahead), now=ahead)
    with pytest.raises(QuotaExceeded):
        take(lines(ahead), now=ahead)
    assert_conserved()


@pytest.mark.req("TOOLS-31")
@pytest.mark.django_db
def test_a_lowered_budget_counts_for_a_call_that_saw_the_higher_one(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=5, by=operator.by)
    settle_reservations(invocation_id=take(lines()), spent=CallUsage())
    seen = lines()

    same = set_budget(scope="tenant", dimension="calls", amount=1, by=operator.by)

    assert same.pk == budget.pk
    assert balance(budget) == (1, 0)  # setting it anew gives nobody back what was used
    with pytest.raises(QuotaExceeded):
        take(seen)


@pytest.mark.django_db
def test_what_is_raised_once_counts_in_the_window_that_runs_and_in_no_other(
    operator: Person, lines: Callable[..., list[BudgetLine]], caller: Caller
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=1, window_s=365 * DAY, by=operator.by)
    now = datetime.now(UTC)
    take(lines(now), now=now)

    raise_budget_once(budget_id=budget.pk, by_amount=2, reason="a busy day", by=operator.by)

    assert [line.amount for line in lines(now)] == [3]
    assert [line.amount for line in lines(now + timedelta(days=365))] == [1]
    take(lines(now), now=now)
    take(lines(now), Demand(calls=1), now=now)
    with pytest.raises(QuotaExceeded):
        take(lines(now), now=now)


@pytest.mark.django_db
def test_a_call_larger_than_the_budget_fits_a_window_that_was_raised(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="cpu_ms", amount=10, window_s=365 * DAY, by=operator.by)
    now = datetime.now(UTC)
    raise_budget_once(budget_id=budget.pk, by_amount=90, reason="one long run", by=operator.by)

    take(lines(now), Demand(cpu_ms=100), now=now)

    assert balance(budget) == (0, 100)


@pytest.mark.django_db
def test_an_ended_budget_limits_nothing_and_is_settled_by_those_who_hold_some(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=1, by=operator.by)
    running = take(lines())

    end_budget(budget_id=budget.pk, reason="not needed", by=operator.by)

    assert lines() == []
    take(lines())
    settle_reservations(invocation_id=running, spent=CallUsage())
    assert balance(budget) == (1, 0)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_budgets_of_other_tenants_agents_and_tools_do_not_count(
    operator: Person, stranger: Person, foreign_caller: Caller, lines: Callable[..., list[BudgetLine]]
) -> None:
    set_budget(scope="tenant", dimension="calls", amount=0, by=stranger.by)
    set_budget(scope="tool", tool=TOOL, dimension="calls", amount=0, by=stranger.by)
    set_budget(scope="agent", agent_id=foreign_caller.agent.pk, dimension="calls", amount=0, by=stranger.by)
    set_budget(scope="tool", tool="sample.tools.write", dimension="calls", amount=0, by=operator.by)

    assert lines() == []


@pytest.mark.django_db
def test_the_one_statement_of_preflight_reads_the_same_lines(
    caller: Caller, operator: Person, grant: Callable[..., Any]
) -> None:
    given = grant(calls_limit=5)
    set_budget(scope="tenant", dimension="calls", amount=7, by=operator.by)
    set_budget(scope="agent", agent_id=caller.agent.pk, dimension="cpu_ms", amount=9_000, by=operator.by)
    set_budget(scope="tool", tool=TOOL, dimension="concurrency", amount=3, window_s=0, by=operator.by)
    set_budget(scope="tool", tool=TOOL, dimension="rate", amount=3, window_s=1, by=operator.by)
    set_budget(scope="tool", tool="sample.tools.write", dimension="calls", amount=3, by=operator.by)
    now = datetime.now(UTC)
    where: dict[str, Any] = {
        "tenant_id": caller.by.tenant_id,
        "agent_id": caller.agent.pk,
        "tool": TOOL,
        "now": now,
    }
    plain = lines_for(**where, grant_id=given.pk)
    take(plain, Demand(cpu_ms=10), now=now)

    plain = lines_for(**where, grant_id=given.pk)

    assert {line.budget_id: line for line in load_decision_context(**where).lines} == {
        line.budget_id: line for line in plain
    }
    assert len(plain) == 5


@pytest.mark.django_db
def test_accepting_a_call_takes_all_amounts_with_one_statement(
    operator: Person, lines: Callable[..., list[BudgetLine]], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(scope="tenant", dimension="calls", amount=5, by=operator.by)
    set_budget(scope="tenant", dimension="cpu_ms", amount=500, by=operator.by)
    seen, statements = lines(), 0
    inner = fetch_prepared

    def counting(*args: Any) -> Any:
        nonlocal statements
        statements += 1
        return inner(*args)

    monkeypatch.setattr(ledger, "fetch_prepared", counting)

    take(seen, Demand(cpu_ms=10))

    assert statements == 1  # on SQLite another keeps what was taken
    assert Reservation.objects.count() == 2


@pytest.mark.django_db
def test_what_was_settled_a_day_ago_goes_and_its_window_stays(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=10, by=operator.by)
    seen = lines()
    young = take(seen)
    settle_reservations(invocation_id=young, spent=CallUsage())
    [row] = Reservation.objects.filter(invocation_id=young)
    yesterday = timezone.now() - timedelta(days=1, minutes=1)
    for number, settled in enumerate((1, 1, None)):
        row.pk, row.invocation_id = UUID(int=lowest_id(yesterday).int + number), new_id()
        row.settled = settled
        row.save(force_insert=True)
    held = row.pk

    assert [ledger.remove_settled(limit=1) for _ in range(3)] == [1, 1, 0]

    assert set(Reservation.objects.values_list("pk", flat=True)) == {
        Reservation.objects.get(invocation_id=young).pk,
        held,
    }
    assert balance(budget) == (1, 0)
