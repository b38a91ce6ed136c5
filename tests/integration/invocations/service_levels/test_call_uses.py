"""Call uses: does the catalogue say how often tools are called and fail, and lead to those calls?"""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import timezone

from access.roles import Role
from invocations.models import State
from invocations.service_levels.call_uses import load_tool_uses
from tests.conftest import make_person
from tests.support.made_calls import ECHO, make_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
CELL = re.compile(r'<td class="num">\s*<a href="(/invocations[^"]+)">(\d+)</a>')


@pytest.fixture
def calls(caller: Caller) -> None:
    now = timezone.now()
    for hours_ago, state, reason, times in (
        (1, State.SUCCEEDED, "", 4),
        (30, State.FAILED, "TOOL.EXECUTION_FAILED", 3),
        (30, State.FAILED, "DOMAIN.OUT_OF_STOCK", 2),
        (24 * 9, State.SUCCEEDED, "", 1),
    ):
        make_calls(caller, now - timedelta(hours=hours_ago), state=state, reason=reason, times=times)


@pytest.mark.req("CARD-3")
def test_the_catalogue_counts_the_calls_of_a_week_and_leads_to_them(
    calls: None, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()
    client = operator.client()

    found = CELL.findall(client.get(reverse("tools")).content.decode())

    assert [int(count) for _, count in found] == [9, 3]
    for url, count in found:
        assert len(client.get(unescape(url)).context["page"].rows) == int(count)


def test_who_may_not_see_calls_sees_no_figures_of_them(
    calls: None, tenant: Tenant, enable: Callable[..., Tool], stranger: Person
) -> None:
    enable()
    developer = make_person(tenant, "dora", Role.DEVELOPER)

    page = developer.client().get(reverse("tools")).content.decode()

    assert ("Calls, 7 days" in page) is developer.by.may("invocations.view")
    assert load_tool_uses([ECHO], by=stranger.by) == {}


@pytest.mark.req("CARD-3")
def test_the_page_of_a_tool_leads_to_its_calls_and_to_the_slow_ones(
    calls: None, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()

    page = operator.client().get(reverse("tool", args=[ECHO])).content.decode()

    card = page.partition('aria-labelledby="figures-h"')[2].partition("</section>")[0]
    assert re.search(r">9</a>", card)
    assert "outcome=faulty" in card
    assert "took%3A%3E" in card
