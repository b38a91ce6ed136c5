"""Overview: does a person see what needs them and how calls go, and does each figure lead to what it counts?"""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from access.consents.services import request_consent
from access.halts import services as halts
from access.models import Reach
from invocations.call_hours.rollup import count_due_hours
from invocations.models import State
from registry.models import ToolVersion
from tests.conftest import make_caller
from tests.support.made_calls import ECHO, make_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

KEY = re.compile(r'<a href="([^"]+)">\s*<span class="sc-dot" data-o="(\w+)".*?data-total="(\d+)"', re.DOTALL)
CELL = re.compile(r'<td class="num">\s*<a href="([^"]+)">(\d+)</a>')


def read(person: Person, **query: str) -> str:
    response = person.client().get(reverse("overview"), query)
    assert response.status_code == 200
    return str(response.content.decode())


def count_listed(person: Person, url: str) -> int:
    response = person.client().get(unescape(url))
    assert response.status_code == 200
    return len(response.context["page"].rows)


@pytest.fixture
def calls(caller: Caller) -> None:
    now = timezone.now()
    for ago, state, reason, times in (
        (0, State.SUCCEEDED, "", 5),
        (2, State.FAILED, "DOMAIN.OUT_OF_STOCK", 4),
        (2, State.FAILED, "TOOL.EXECUTION_FAILED", 2),
        (9, State.DENIED, "POLICY.DENIED", 3),
        (90, State.OUTCOME_UNKNOWN, "CALL.OUTCOME_UNKNOWN", 1),
    ):
        make_calls(caller, now - timedelta(hours=ago), state=state, reason=reason, times=times)


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("rolled_up", [False, True])
@pytest.mark.parametrize(("period", "unknown"), [("24h", 0), ("7d", 1)])
def test_each_figure_and_each_part_of_the_chart_leads_to_the_calls_that_it_counts(
    rolled_up: bool, period: str, unknown: int, calls: None, operator: Person
) -> None:
    if rolled_up:
        count_due_hours(timezone.now())

    page = read(operator, period=period)

    sums = {tone: (url, int(total)) for url, tone, total in KEY.findall(page)}
    assert {tone: total for tone, (_, total) in sums.items()} == {
        "ok": 5,
        "said": 4,
        "denied": 3,
        "bad": 2,
        "unknown": unknown,
    }
    assert len(CELL.findall(page.partition("</figure>")[0])) == 4 + unknown
    busiest_and_parts = CELL.findall(page)
    for url, total in [*sums.values(), *((url, int(total)) for url, total in busiest_and_parts)]:
        assert count_listed(operator, url) == total, url


@pytest.mark.req("CARD-3")
def test_what_a_tool_refuses_lawfully_is_not_called_failed(caller: Caller, operator: Person) -> None:
    make_calls(caller, timezone.now(), state=State.FAILED, reason="DOMAIN.OUT_OF_STOCK")

    client = operator.client()
    for page in ("overview", "invocations"):
        rows = client.get(reverse(page)).content.decode().rpartition("<tbody data-rows>")[2]
        assert "Refused by the tool" in rows
        assert 'data-tone="bad"' not in rows


def test_what_waits_is_named_with_the_time_at_which_it_expires(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    enable(side_effect="Write", consent={"required": True})
    grant()
    consent = request_consent(tool=ECHO, versions="^1", purpose="Order for Ada.", validity_s=3600, by=caller.by)

    waiting = read(operator).partition('id="needs-h"')[2].partition("</section>")[0]

    assert reverse("consent", args=[consent.pk]) in waiting
    assert ECHO in waiting
    assert "Order for Ada." in waiting
    assert "expires <time" in waiting


def test_what_somebody_else_must_decide_is_not_said_to_need_one(
    enable: Callable[..., Tool], submit: Callable[..., Any], operator: Person
) -> None:
    enable(side_effect="Write", consent={"required": True})
    mine = make_caller(operator.by, "own", scopes=("consents:request",))
    consent = request_consent(tool=ECHO, versions="^1", purpose="Order.", validity_s=3600, by=mine.by)
    version = submit(version="1.0.1", side_effect="Write", consent={"required": True})
    assert reverse("review", args=[version.pk]) in read(operator)

    ToolVersion.objects.filter(pk=version.pk).update(submitted_by=operator.by.id)
    page = read(operator)

    assert reverse("consent", args=[consent.pk]) not in page
    assert reverse("review", args=[version.pk]) not in page


def test_who_may_decide_nothing_is_not_told_that_something_needs_them(
    enable: Callable[..., Tool], caller: Caller, auditor: Person
) -> None:
    make_calls(caller, timezone.now(), state=State.OUTCOME_UNKNOWN, reason="CALL.OUTCOME_UNKNOWN")

    assert "needs-h" not in read(auditor)


def test_what_is_stopped_or_paused_stands_among_the_unhealthy(enable: Callable[..., Tool], operator: Person) -> None:
    enable()
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="it leaks", by=operator.by)

    card = read(operator).partition('id="unhealthy-h"')[2]

    assert "Stopped</span>" in card
    assert "it leaks" in card


def test_another_period_is_refused_in_words(operator: Person) -> None:
    response = operator.client().get(reverse("overview"), {"period": "a year"})

    assert response.status_code == 422
    assert "24 hours (24h) or 7 days (7d)" in response.content.decode()


@pytest.mark.req("TOOLS-22")
def test_another_tenant_s_calls_are_in_no_figure(calls: None, stranger: Person) -> None:
    assert {int(total) for _, _, total in KEY.findall(read(stranger, period="7d"))} == {0}
