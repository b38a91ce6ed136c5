"""Budget pages: do people see how full budgets are, and can they and programs set, raise and end them?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.budgets.ledger import CallUsage, settle_reservations
from access.budgets.lines import Demand
from access.budgets.services import set_budget
from access.models import Budget, BudgetWindow
from evidence.models import Fact
from tests.conftest import make_caller
from tests.support.budgets import DAY, TOOL, take
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.budgets.lines import BudgetLine
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

YEAR = 365 * DAY
REASON = {"reason": "because of a test"}


def spend(lines: Callable[..., list[BudgetLine]], demand: Demand, **spent: int) -> None:
    now = datetime.now(UTC)
    settle_reservations(invocation_id=take(lines(now), demand, now), spent=CallUsage(**spent))


# Programs.


@pytest.mark.req("TOOLS-29")
def test_a_budget_is_set_read_raised_and_ended_over_rest(
    caller: Caller, lines: Callable[..., list[BudgetLine]]
) -> None:
    body = {"scope": "tool", "tool": TOOL, "dimension": "cpu_ms", "amount": 1_000, "window_s": YEAR, **REASON}

    made = caller.post("/budgets", body)

    assert made.status_code == 201
    data = made.json()["data"]
    assert (data["scope"], data["tool"], data["amount"], data["state"]) == ("tool", TOOL, 1_000, "in_force")
    spend(lines, Demand(cpu_ms=900), cpu_ms=600)
    take(lines(datetime.now(UTC)), Demand(cpu_ms=100), datetime.now(UTC))
    current = caller.get(f"/budgets/{data['id']}").json()["data"]["current"]
    assert (current["used"], current["reserved"], current["remaining"], current["limit"]) == (600, 100, 300, 1_000)
    assert current["forecast"] is None or current["forecast"] >= 700

    raised = caller.post(f"/budgets/{data['id']}/raise", {"by_amount": 500, **REASON})
    assert raised.json()["data"]["current"]["limit"] == 1_500
    assert raised.json()["data"]["amount"] == 1_000

    ended = caller.post(f"/budgets/{data['id']}/end", REASON)
    assert (ended.json()["data"]["state"], ended.json()["data"]["current"]) == ("ended", None)
    assert_problem(caller.post(f"/budgets/{data['id']}/end", REASON), 409, "STATE.CONFLICT")
    kinds = Fact.objects.filter(subject=data["id"]).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["budget.set", "budget.set", "budget.ended"]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"dimension": "joules"}, "/dimension"),
        ({"scope": "hub"}, "/scope"),
        ({"scope": "manifest", "tool": TOOL}, "/scope"),
        ({"scope": "tool"}, "/tool"),
        ({"tool": TOOL}, "/tool"),
        ({"window_s": 0}, "/window_s"),
        ({"dimension": "concurrency", "window_s": 60}, "/window_s"),
        ({"dimension": "rate", "amount": 0}, "/amount"),
        ({"amount": -1}, "/amount"),
        ({"amount": 10**15 + 1}, "/amount"),
    ],
)
def test_a_budget_that_means_nothing_is_refused_at_its_field(
    changes: dict[str, Any], pointer: str, caller: Caller
) -> None:
    body = {"scope": "tenant", "dimension": "calls", "amount": 5} | changes

    problem = assert_problem(caller.post("/budgets", body), 422, "SCHEMA.VALIDATION_FAILED")

    assert [each["pointer"] for each in problem["error"]["details"]["findings"]] == [pointer]
    assert not Budget.objects.exists()


def test_the_list_is_filtered_by_what_is_left(
    caller: Caller, operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    what: dict[str, Any] = {"scope": "tenant", "window_s": YEAR, "by": operator.by}
    over = set_budget(dimension="calls", amount=1, **what)
    nearly = set_budget(dimension="cpu_ms", amount=100, **what)
    plenty = set_budget(dimension="bytes_out", amount=1_000, **what)
    rate = set_budget(dimension="rate", amount=5, **what)
    spend(lines, Demand(cpu_ms=80, bytes_out=10), cpu_ms=80, bytes_out=10)

    def found(query: str) -> set[str]:
        return {each["id"] for each in caller.get(f"/budgets{query}").json()["data"]["budgets"]}

    assert found("") == {each.wire_id for each in (over, nearly, plenty, rate)}
    assert found("?state=over") == {over.wire_id}
    assert found("?state=nearly") == {over.wire_id, nearly.wire_id}
    assert found("?dimension=rate") == {rate.wire_id}
    assert found("?state=ended") == found("?scope=agent") == set()
    assert_problem(caller.get("/budgets?state=full"), 422, "SCHEMA.VALIDATION_FAILED")


def test_an_agent_cannot_change_what_limits_it(caller: Caller, operator: Person) -> None:
    mine = set_budget(scope="agent", agent_id=caller.agent.pk, dimension="calls", amount=1, by=operator.by)
    body = {"scope": "agent", "agent": caller.agent.wire_id, "dimension": "calls", "amount": 999}

    answers = [
        caller.post("/budgets", body),
        caller.post(f"/budgets/{mine.wire_id}/raise", {"by_amount": 999, **REASON}),
        caller.post(f"/budgets/{mine.wire_id}/end", REASON),
    ]

    for answer in answers:
        assert_problem(answer, 403, "POLICY.SELF_APPROVAL")
    other = make_caller(operator.by, "other")
    assert other.post("/budgets", body).status_code == 201


@pytest.mark.req("TOOLS-22")
def test_budgets_of_another_tenant_are_not_found(caller: Caller, foreign_caller: Caller, operator: Person) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=1, by=operator.by)
    body = {"scope": "agent", "agent": caller.agent.wire_id, "dimension": "calls", "amount": 1}

    answers = [
        foreign_caller.get(f"/budgets/{budget.wire_id}"),
        foreign_caller.post(f"/budgets/{budget.wire_id}/raise", {"by_amount": 1, **REASON}),
        foreign_caller.post(f"/budgets/{budget.wire_id}/end", REASON),
        foreign_caller.post("/budgets", body),
    ]

    for answer in answers:
        assert_problem(answer, 404, "RESOURCE.NOT_FOUND")
    assert foreign_caller.get("/budgets").json()["data"]["budgets"] == []


def test_a_key_needs_the_scope(operator: Person) -> None:
    reader = make_caller(operator.by, "reader", scopes=("budgets:read",))

    assert reader.get("/budgets").status_code == 200
    assert_problem(
        reader.post("/budgets", {"scope": "tenant", "dimension": "calls", "amount": 1}), 403, "AUTH.FORBIDDEN"
    )


def test_what_the_manifest_limits_is_changed_by_nobody(
    caller: Caller, operator: Person, enable: Callable[..., Any], grant: Callable[..., Any], bell: Any
) -> None:
    grant()
    enable(limits={"concurrency": 1})
    caller.invoke(TOOL, {})
    budget = Budget.objects.get(scope="manifest")
    page = operator.client().get(reverse("budget", args=[budget.pk]))

    answer = caller.post(f"/budgets/{budget.wire_id}/end", REASON)

    assert_problem(answer, 409, "STATE.CONFLICT")
    assert page.status_code == 200
    assert reverse("budget_end", args=[budget.pk]) not in page.content.decode()


# People.


def test_a_person_sets_a_budget_of_money_in_the_currency(operator: Person) -> None:
    form = {"scope": "tenant", "dimension": "money", "amount": "12.50", "window_s": "86400", "reason": "a start"}

    answer = operator.client().post(reverse("budget_new"), form)

    budget = Budget.objects.get()
    assert answer.headers["Location"] == reverse("budget", args=[budget.pk])
    assert (budget.amount, budget.set_by) == (12_500_000, operator.by.id)
    page = operator.client().get(answer.headers["Location"]).content.decode()
    assert "12.50" in page
    assert 'value="12.5"' in page


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"dimension": "calls", "amount": "1.5"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"scope": "agent"}, "agent"),
        ({"scope": "tool"}, "tool"),
        ({"dimension": "rate", "amount": "0"}, "amount"),
    ],
)
def test_a_form_that_cannot_be_meant_keeps_what_was_typed(
    changes: dict[str, str], field: str, operator: Person
) -> None:
    form = {"scope": "tenant", "dimension": "calls", "amount": "7", "window_s": "3600", "reason": "typed with care"}

    answer = operator.client().post(reverse("budget_new"), form | changes)

    assert answer.status_code == 422
    assert field in answer.context["form"].errors
    assert "typed with care" in answer.content.decode()
    assert not Budget.objects.exists()


def test_calls_at_the_same_time_need_no_window(operator: Person) -> None:
    form = {"scope": "tenant", "dimension": "concurrency", "amount": "3", "window_s": "60"}

    operator.client().post(reverse("budget_new"), form)

    assert Budget.objects.get().window_s == 0


def test_the_list_shows_what_is_used_and_which_calls_a_full_budget_refuses(
    operator: Person, caller: Caller, lines: Callable[..., list[BudgetLine]]
) -> None:
    set_budget(scope="agent", agent_id=caller.agent.pk, dimension="calls", amount=1, window_s=YEAR, by=operator.by)
    set_budget(scope="tenant", dimension="cpu_ms", amount=1_000, window_s=YEAR, by=operator.by)
    set_budget(scope="tenant", dimension="rate", amount=9, window_s=60, by=operator.by)
    spend(lines, Demand(cpu_ms=500), cpu_ms=250)

    page = operator.client().get(reverse("budgets"))

    text = page.content.decode()
    assert page.status_code == 200
    assert f"Every call of {caller.agent.name} is refused." in text
    assert "25 %" in text
    assert [each.level for each in page.context["rows"]] == ["", "", "over"]
    assert "style=" not in text
    fragment = operator.client().get(reverse("budgets"), headers={"HX-Request": "true", "HX-Target": "rows"})
    assert fragment.content.decode().lstrip().startswith('<section id="rows"')
    assert operator.client().get(reverse("budgets") + "?state=x").status_code == 422


def test_a_person_changes_raises_and_ends_a_budget(operator: Person, lines: Callable[..., list[BudgetLine]]) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=10, window_s=YEAR, by=operator.by)
    client = operator.client()
    spend(lines, Demand())

    def post(name: str, **form: str) -> int:
        return client.post(reverse(name, args=[budget.pk]), form).status_code

    assert post("budget_edit", amount="4", **REASON) == 302
    assert post("budget_raise", amount="2", **REASON) == 302
    budget.refresh_from_db()
    window = BudgetWindow.objects.get()
    assert (budget.amount, window.used, window.raised) == (4, 1, 2)
    for name in ("budget_edit", "budget_raise", "budget_end"):
        assert post(name) == 422
    assert post("budget_raise", amount="0", **REASON) == 422
    assert post("budget_end", **REASON) == 302
    assert post("budget_end", **REASON) == 409
    page = client.get(reverse("budget", args=[budget.pk])).content.decode()
    assert "Ended" in page
    assert reverse("budget_end", args=[budget.pk]) not in page


def test_somebody_who_only_sees_gets_no_buttons(auditor: Person, operator: Person) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=10, by=operator.by)
    client = auditor.client()

    pages = [client.get(reverse("budgets")), client.get(reverse("budget", args=[budget.pk]))]

    assert [page.status_code for page in pages] == [200, 200]
    for page in pages:
        assert "budgets/new" not in page.content.decode()
        assert 'name="amount"' not in page.content.decode()


def test_the_overview_says_that_a_budget_is_nearly_used_up(
    operator: Person, lines: Callable[..., list[BudgetLine]]
) -> None:
    set_budget(scope="tenant", dimension="cpu_ms", amount=100, window_s=YEAR, by=operator.by)
    set_budget(scope="tenant", dimension="concurrency", amount=1, window_s=0, by=operator.by)
    address = reverse("budgets") + "?state=nearly"

    before = operator.client().get(reverse("overview")).content.decode()
    take(lines(datetime.now(UTC)), Demand(cpu_ms=80), datetime.now(UTC))
    after = operator.client().get(reverse("overview")).content.decode()

    assert address not in before
    assert address in after


@pytest.mark.req("TOOLS-22")
def test_people_of_another_tenant_find_no_budget_and_change_none(operator: Person, stranger: Person) -> None:
    budget = set_budget(scope="tenant", dimension="calls", amount=10, by=operator.by)
    form = {"amount": "1", **REASON}

    actions = ("budget_edit", "budget_raise", "budget_end")
    answers = [
        stranger.client().get(reverse("budget", args=[budget.pk])),
        *(stranger.client().post(reverse(name, args=[budget.pk]), form) for name in actions),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    budget.refresh_from_db()
    assert (budget.amount, budget.ended_at) == (10, None)
    assert budget.wire_id not in stranger.client().get(reverse("budgets")).content.decode()
