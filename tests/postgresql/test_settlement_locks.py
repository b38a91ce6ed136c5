"""Settlement locks: do calls that settle in budgets of their own and in one that they share wait for each other, and never both?"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

from access.budgets.ledger import NOTHING
from access.budgets.lines import Demand
from access.budgets.services import set_budget
from access.models import BudgetWindow
from invocations.end.spent_budgets import settle_budgets
from tests.support.budgets import DAY, assert_conserved, balance, take
from tests.support.concurrency import MEET_WITHIN_S, is_waited_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.budgets.lines import BudgetLine
    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)
SHARED, OWN = "model.first.main", "model.second.main"


@pytest.mark.req("LLM-7")
def test_what_a_call_gives_back_is_locked_in_the_order_of_all_others(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    """The budget that is given back comes behind the shared one: whoever waits for the shared one must not hold it yet."""
    terms: dict[str, Any] = {"dimension": "tokens", "amount": 1_000, "window_s": 365 * DAY, "by": operator.by}
    budgets = [set_budget(scope="tool", tool=tool, **terms) for tool in (SHARED, OWN)]
    shared, given_back = sorted(budgets, key=lambda each: each.pk)
    held = [*lines(tool=SHARED), *lines(tool=OWN)]
    id = take(held, Demand(tokens=100))
    model = SimpleNamespace(apart={given_back.pk: NOTHING}, result_bytes=None, tokens=7, money=0)
    call: Any = SimpleNamespace(pk=id)
    ending: Any = SimpleNamespace(ran=True, outcome=None, model=model)

    def settle() -> None:
        try:
            with transaction.atomic():
                settle_budgets(call, ending)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            BudgetWindow.objects.select_for_update().get(budget=shared)
            waiting = pool.submit(settle)
            while not waiting.done() and not is_waited_for():
                pass
            free = BudgetWindow.objects.select_for_update(skip_locked=True).filter(budget=given_back)
            assert free.count() == 1
            assert list(free.values_list("reserved", flat=True)) == [100]
        waiting.result(MEET_WITHIN_S)

    assert (balance(shared), balance(given_back)) == ((7, 0), (0, 0))
    assert_conserved()
