"""Overview: does a person see what needs them and how calls go, and does each figure lead to what it counts?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse
from django.utils import timezone

from access.consents.services import request_consent
from access.display.services import set_display
from access.halts import services as halts
from access.models import Reach
from invocations.call_hours.rollup import count_due_hours
from invocations.models import Invocation, State
from registry.models import ToolVersion
from tests.conftest import make_caller
from tests.support.made_calls import ECHO, make_calls
from toolhub.overview.call_figures import PERIODS

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
        (90, State.OUTCOME_UNKNOWN, "SANDBOX.WORKER_LOST", 1),
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
    make_calls(caller, timezone.now(), state=State.OUTCOME_UNKNOWN, reason="SANDBOX.WORKER_LOST")

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


def cut_week(zone: str, now: datetime) -> list[datetime]:
    return [edge.astimezone(ZoneInfo(zone)) for edge in PERIODS["7d"].cut(now, ZoneInfo(zone))]


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Shanghai", "America/Los_Angeles"])
def test_a_week_is_today_and_the_six_days_before_it_in_quarters_of_the_reader_s_days(zone: str) -> None:
    now = datetime(2026, 11, 29, 13, 20, tzinfo=UTC)
    today = now.astimezone(ZoneInfo(zone)).date()

    edges = cut_week(zone, now)

    assert edges[0].date() == today - timedelta(days=6)
    assert {(edge.hour, edge.minute) for edge in edges} == {(0, 0), (6, 0), (12, 0), (18, 0)}
    assert edges[-2] <= now < edges[-1]
    assert edges[-1] - edges[-2] == timedelta(hours=6)


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(("zone", "minutes"), [("Asia/Kolkata", 30), ("Asia/Kathmandu", 45)])
def test_where_hours_do_not_begin_with_those_of_utc_columns_begin_at_the_next_whole_one(
    zone: str, minutes: int
) -> None:
    edges = cut_week(zone, datetime(2026, 11, 29, 13, 20, tzinfo=UTC))

    assert {(edge.hour, edge.minute) for edge in edges} == {(hour, minutes) for hour in (0, 6, 12, 18)}
    assert all(edge.astimezone(UTC).minute == 0 for edge in edges)


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize(
    ("zone", "now", "hours"),
    [
        ("Europe/Berlin", datetime(2026, 3, 31, 12, tzinfo=UTC), 5),  # on the 29th clocks were set forward
        ("Europe/Berlin", datetime(2026, 10, 27, 12, tzinfo=UTC), 7),  # on the 25th back
        ("America/Santiago", datetime(2026, 9, 8, 12, tzinfo=UTC), 5),  # at midnight
    ],
)
def test_a_quarter_in_which_clocks_are_changed_is_longer_or_shorter_and_moves_no_other(
    zone: str, now: datetime, hours: int
) -> None:
    edges = cut_week(zone, now)

    lengths = [
        (later - earlier).total_seconds() / 3600 for earlier, later in pairwise(e.astimezone(UTC) for e in edges)
    ]
    assert sorted(set(lengths)) == sorted({6.0, float(hours)})
    assert lengths.count(hours) == 1


@pytest.mark.req("CARD-6")
def test_the_page_says_which_days_are_shown(operator: Person) -> None:
    assert "from midnight to midnight (UTC)" in read(operator, period="7d")
    assert "Today and the six days before" not in read(operator)

    set_display(time_zone="Asia/Kolkata", user=operator.user)

    assert "so these days begin at 00:30 in your time zone (Asia/Kolkata)" in read(operator, period="7d")


@pytest.mark.req("CARD-6")
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/Los_Angeles"])
def test_the_figures_of_a_week_are_those_of_their_lists_in_every_zone(zone: str, calls: None, operator: Person) -> None:
    count_due_hours(timezone.now())
    set_display(time_zone=zone, user=operator.user)

    page = read(operator, period="7d")

    for url, total in CELL.findall(page.partition("</figure>")[0]):
        assert count_listed(operator, url) == int(total), url


def test_what_waits_says_for_how_long(submit: Callable[..., Any], operator: Person) -> None:
    version = submit()
    ToolVersion.objects.filter(pk=version.pk).update(submitted_at=timezone.now() - timedelta(minutes=3, seconds=5))

    waiting = read(operator).partition('id="needs-h"')[2].partition("</section>")[0]

    assert re.search(r"<time [^>]*>waiting for 3 min</time>", waiting)


def test_half_and_95_of_100_lead_to_the_calls_that_took_longer(caller: Caller, operator: Person) -> None:
    now = timezone.now()
    for ms in (*range(10, 200, 10), 5000):
        call = make_calls(caller, now - timedelta(minutes=5))[0]
        Invocation.objects.filter(pk=call.pk).update(finished_at=call.created_at + timedelta(milliseconds=ms))

    page = operator.client().get(reverse("overview"))

    assert 1 <= count_listed(operator, page.context["p95_url"]) < count_listed(operator, page.context["p50_url"]) < 20
    assert page.context["p95_url"].replace("&", "&amp;") in page.content.decode()
