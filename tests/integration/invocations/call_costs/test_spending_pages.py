"""Spending pages: does a person see what was spent by day, model, tool and agent, and does the question stay small?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone

from access.budgets.services import set_budget
from invocations.call_costs import cost_sums, past_use
from invocations.call_costs.cost_sums import load_spending
from invocations.call_costs.models import CallCost
from invocations.call_costs.past_use import load_past_use
from invocations.models import Invocation, State
from kernel.database.connections import database_time
from kernel.ids import new_id
from tests.conftest import make_caller
from tests.support.begin_end_pairs import keep_calls
from tests.support.budgets import DAY
from tests.support.connected_models import MODEL, set_script_prices

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def spend(
    caller: Caller, micros: int | None, *, tool: str = MODEL, days: int = 0, times: int = 1, currency: str = "USD"
) -> None:
    at = database_time() - timedelta(days=days)
    calls = [
        Invocation(
            id=new_id(),
            tenant_id=caller.by.tenant_id,
            agent=caller.agent,
            tool=tool,
            state=State.SUCCEEDED,
            request_id="x",
            arguments_fingerprint="",
            created_at=at,
            finished_at=at,
        )
        for _ in range(times)
    ]
    keep_calls(*calls)
    CallCost.objects.bulk_create(
        CallCost(
            invocation=each,
            tenant_id=each.tenant_id,
            agent=caller.agent,
            tool=tool,
            micros=micros,
            currency=currency,
            input_tokens=10,
            output_tokens=5,
            made_at=at,
        )
        for each in calls
    )


@pytest.mark.req("LLM-7")
def test_spending_is_added_up_by_day_model_tool_and_agent(caller: Caller, operator: Person) -> None:
    other = make_caller(operator.by, "clerk")
    spend(caller, 1_500_000)
    spend(caller, 250_000, days=2, times=2)
    spend(other, 500_000, tool=ECHO, days=2)
    spend(caller, 9_000_000, days=20)

    said = load_spending(tenant_id=operator.by.tenant_id, currency="USD", days=7, now=database_time())

    assert [each.micros for each in said.days][-3:] == [1_000_000, 0, 1_500_000]
    assert len(said.days) == 7
    assert [(each.of, each.micros, each.calls) for each in said.models] == [(MODEL, 2_000_000, 3)]
    assert [(each.of, each.micros) for each in said.tools] == [(ECHO, 500_000)]
    assert [(each.of, each.micros) for each in said.agents] == [("assistant", 2_000_000), ("clerk", 500_000)]
    assert (said.total.micros, said.total.tokens) == (2_500_000, 60)
    month = load_spending(tenant_id=operator.by.tenant_id, currency="USD", days=30, now=database_time())
    assert month.total.micros == 11_500_000


@pytest.mark.req("LLM-7")
def test_each_figure_leads_to_its_calls_and_a_budget_has_its_line(caller: Caller, operator: Person) -> None:
    spend(caller, 1_500_000)
    budget = set_budget(scope="tenant", dimension="money", amount=1_000_000, window_s=DAY, by=operator.by)
    client = operator.client()

    page = client.get("/spending?days=30").content.decode()

    today = timezone.localdate()
    since = today - timedelta(days=29)
    for link in (
        f"/invocations?tool={MODEL}&amp;from={since}&amp;to={today}",
        f"/invocations?agent=assistant&amp;from={since}&amp;to={today}",
        f"/invocations?from={today}&amp;to={today}",
    ):
        assert link in page
        assert MODEL in client.get(link.replace("&amp;", "&")).content.decode()
    assert "1.50 USD" in page
    assert "Budget: 1.00 USD a day" in page
    assert f"/budgets/{budget.wire_id}" in page
    assert 'class="limit"' in page
    assert "style=" not in page


@pytest.mark.req("LLM-7")
def test_a_budget_of_a_month_is_held_against_a_day_as_an_even_part(operator: Person) -> None:
    set_budget(scope="tenant", dimension="money", amount=30_000_000, window_s=30 * DAY, by=operator.by)

    page = operator.client().get("/spending").content.decode()

    assert "Budget: 1.00 USD a day" in page
    assert "if its window is used evenly" in page


@pytest.mark.req("LLM-7")
def test_what_has_no_price_and_what_was_another_currency_is_said_and_in_no_sum(
    caller: Caller, operator: Person
) -> None:
    spend(caller, 1_000_000, currency="USD")
    rates = [{"effective_from": "2026-01-01", "rate": "0.92"}]
    set_script_prices(operator.by, currency="EUR", rates=rates, input="1")
    spend(caller, 2_000_000, currency="EUR")
    spend(caller, None, currency="EUR", times=3)

    page = operator.client().get("/spending").content.decode()

    assert "2.00 EUR" in page
    assert "1.00 USD" in page
    assert "3 calls of models without a known price" in page
    assert "3.00" not in page


@pytest.mark.req("LLM-7")
def test_of_very_many_calls_the_newest_count_and_the_page_says_so(
    caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_sums, "MAX_CALLS", 3)
    spend(caller, 1_000_000, days=3, times=4)
    spend(caller, 2_000_000, times=2)

    page = operator.client().get("/spending").content.decode()

    assert "There are more calls than are added up here" in page
    assert "4.00 USD" in page


@pytest.mark.req("LLM-7")
def test_a_long_list_ends_in_one_row_of_all_others(
    caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_sums, "MAX_ROWS", 2)
    for n in range(4):
        spend(caller, 1_000_000 + n, tool=f"model.script.m{n}")

    said = load_spending(tenant_id=operator.by.tenant_id, currency="USD", days=7, now=database_time())

    assert [(each.of, each.micros) for each in said.models] == [
        ("model.script.m3", 1_000_003),
        ("model.script.m2", 1_000_002),
        ("", 2_000_001),
    ]


@pytest.mark.req("LLM-7")
def test_who_sees_budgets_sees_spending_and_nobody_of_another_tenant(
    caller: Caller, auditor: Person, developer: Person, stranger: Person
) -> None:
    spend(caller, 1_500_000)

    assert "1.50 USD" in auditor.client().get("/spending").content.decode()
    assert developer.client().get("/spending").status_code == 403
    assert "1.50 USD" not in stranger.client().get("/spending").content.decode()
    assert auditor.client().get("/spending?days=365").status_code == 422


@pytest.mark.req("LLM-7")
def test_the_question_walks_the_index_of_the_tenants_costs(caller: Caller, foreign_caller: Caller) -> None:
    spend(foreign_caller, 10, times=2000)
    spend(caller, 10, days=20, times=500)
    spend(caller, 10, times=50)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE invocations_callcost")
    since = cost_sums.begin_of(7, database_time())
    rows = CallCost.objects.filter(tenant_id=caller.by.tenant_id, made_at__gte=since, currency="USD")

    plan = rows.values("tool").annotate(sum=Sum("micros")).order_by().explain()

    assert "call_cost_newest" in plan, plan
    assert "Seq Scan" not in plan, plan


@pytest.mark.req("LLM-7")
def test_past_use_beside_a_budget_is_of_whom_it_is_for_and_says_where_it_is_cut(
    caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_caller(operator.by, "clerk")
    spend(caller, 100, days=3)
    for days in range(3):
        spend(other, 7, days=days)
    monkeypatch.setattr(past_use, "MAX_CALLS", 2)

    def load(agent: Caller | None) -> tuple[int, bool]:
        found = load_past_use(
            tenant_id=operator.by.tenant_id,
            dimension="money",
            currency="USD",
            now=database_time(),
            agent_id=agent.agent.pk if agent else None,
        )
        assert found is not None
        return sum(each.amount for each in found.days), found.cut_at is not None

    assert load(caller) == (100, False)
    assert load(None) == (14, True)
    page = operator.client().get("/budgets/new", {"scope": "tenant", "dimension": "money"}).content.decode()
    assert "Only those count that were made since" in page
