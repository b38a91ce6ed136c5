"""Cut lists: does a page that does not show all of a list say so, or lead on to the rest?"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from django.urls import reverse
from django.utils import timezone

from access.consents import pages as consent_pages
from access.grants.requests import request_grant
from access.halts import pages as halt_pages
from access.halts.services import throw_halt
from access.models import Reach
from access.services import create_key
from invocations.replays import pages as replay_pages
from invocations.replays.models import Replay, Rerun, What
from kernel.http.pagination import PAGE_SIZE
from kernel.principal import Principal
from tests.conftest import make_caller
from tests.support.made_calls import ECHO, make_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
NEXT = re.compile(r'<a class="btn" rel="next" href="([^"]+)"')


def see(person: Person, url: str) -> str:
    answer = person.client().get(url)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_kill_switches_beyond_those_that_are_shown_are_said(
    operator: Person, caller: Caller, enable: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    enable()
    throw_halt(reach=Reach.TOOL, target=ECHO, reason="because of a test", by=operator.by)
    throw_halt(reach=Reach.AGENT, target=caller.agent.wire_id, reason="because of a test", by=operator.by)
    said = "There are more; these are the newest."
    assert said not in see(operator, reverse("halts"))

    monkeypatch.setattr(halt_pages, "MOST_THROWN", 1)

    assert said in see(operator, reverse("halts"))


def test_requests_for_grants_beyond_those_that_are_shown_are_said(
    tenant: Tenant, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second"):
        asks = make_caller(Principal.system("test", tenant_id=tenant.pk), name)
        request_grant(agent_id=asks.agent.pk, tools=ECHO, purpose="to be tested", by=asks.by)
    said = "There are more; these have waited longest."
    assert said not in see(operator, reverse("approvals"))

    monkeypatch.setattr(consent_pages, "MAX_WAITING", 1)

    assert said in see(operator, reverse("approvals"))


def read_all(person: Person, url: str, pattern: str) -> list[str]:
    """What the pages of a list show, one after another."""
    found, to = [], url
    while to:
        page = see(person, to)
        found += re.findall(pattern, page)
        further = NEXT.search(page)
        to = urljoin(url, further[1].replace("&amp;", "&")) if further else ""
    return found


def test_each_key_of_an_agent_is_on_one_of_the_pages(caller: Caller, operator: Person) -> None:
    system = Principal.system("test", tenant_id=operator.by.tenant_id)
    made = [create_key(agent=caller.agent, by=system)[0].lookup for _ in range(PAGE_SIZE + 2)]

    shown = read_all(operator, reverse("agent", args=[caller.agent.pk]), r'<span class="mono">(\w+)…</span>')

    assert shown[: len(made)] == made[::-1]


def test_each_version_of_a_tool_is_on_one_of_the_pages(
    operator: Person, developer: Person, submit: Callable[..., ToolVersion]
) -> None:
    made = [submit(version=f"1.{minor}.0").pk for minor in range(PAGE_SIZE + 2)]
    addresses = [reverse("version", args=[pk]) for pk in reversed(made)]

    for person, name in ((operator, "tool_versions"), (developer, "submitted_tool")):
        url = reverse(name, args=[ECHO])
        assert read_all(person, url, r'<a (?:class="hit" data-row )?href="(/versions/[^"]+)"') == addresses


def test_calls_of_a_replay_that_do_not_match_come_first_among_those_that_are_shown(
    caller: Caller, operator: Person, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    replay = Replay.objects.create(
        tenant_id=operator.by.tenant_id,
        what=What.RUNS,
        since=now - timedelta(hours=1),
        until=now,
        state="done",
        finished_at=now,
        notified_at=now,
        created_at=now,
        asked_by=auditor.by.id,
    )
    calls = make_calls(caller, now, times=3)
    for call, verdict in zip(calls, ("match", "match", "differs"), strict=True):
        Rerun.objects.create(replay=replay, invocation=call, number=1, verdict=verdict, version="1.0.0", created_at=now)
    said = "There are more; those that do not match come first."
    assert said not in see(auditor, reverse("replay", args=[replay.pk]))

    monkeypatch.setattr(replay_pages, "MOST_SHOWN", 1)

    page = see(auditor, reverse("replay", args=[replay.pk]))
    assert said in page
    assert reverse("replay_call", args=[replay.pk, calls[-1].pk]) in page
