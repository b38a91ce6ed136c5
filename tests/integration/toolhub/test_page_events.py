"""Page events: does an open page hear of what has changed and of nothing else, and only as long as its person may see it?"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from access.budgets.services import set_budget
from access.members import services as members
from access.models import Tenant
from access.roles import Role
from evidence.exports.services import make_export
from evidence.kinds import Kind
from evidence.models import ExportJob, ExportState
from invocations.replays.models import Replay, ReplayState
from invocations.trials.services import request_trial
from tests.conftest import make_person
from tests.support.evidence_logs import seal_everything, signing_with
from toolhub.page_events import feeds, pages
from toolhub.page_events.feeds import Listener, TenantFeed
from toolhub.page_events.pages import stream_topics
from toolhub.page_events.progress import READERS
from toolhub.page_events.sessions import find_principal
from toolhub.page_events.topics import BY_NOUN, PERMISSIONS, find_topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person

ECHO = "sample.tools.echo"
ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("access", "evidence", "invocations", "registry", "templates", "toolhub")


def listen(person: Person) -> Listener:
    """A stream of somebody who has just signed in."""
    key = person.client().session.session_key
    assert key
    found = find_principal(key)
    assert found
    return Listener(key, found.principal, found.session_data)


@pytest.fixture
def feed(tenant: Tenant) -> TenantFeed:
    """It has looked once: what there was before it is no news."""
    found = TenantFeed(tenant.pk)
    found.look(())
    return found


def look(feed: TenantFeed, *listeners: Listener) -> None:
    """One look, and what comes of it for these."""
    feed.listeners |= set(listeners)
    news = feed.look({each.session_key for each in feed.listeners})
    feed.tell(news, feeds.find_principals(feed.list_doubtful(news)))


def test_every_topic_has_a_permission_and_something_that_is_news_of_it() -> None:
    told = {"facts"}.union(READERS, *BY_NOUN.values())

    assert told == set(PERMISSIONS)
    assert {kind.partition(".")[0] for kind in Kind.values} >= set(BY_NOUN)


def test_pages_ask_for_topics_that_there_are() -> None:
    templates = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.html")]
    asked = {
        word
        for path in templates
        for found in re.findall(r'data-live="([^"]*)"', path.read_text())
        for word in found.split()
    }

    assert (
        {"approvals", "calls", "erasures", "exports", "halts", "replays", "trials", "verifications"}
        <= asked
        <= set(PERMISSIONS)
    )


def test_a_call_is_news_once(
    feed: TenantFeed, operator: Person, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    listener = listen(operator)
    look(feed, listener)
    listener.pending.clear()

    caller.invoke(ECHO, {"text": "x"})
    look(feed)
    heard, listener.pending = listener.pending, set()
    look(feed)

    assert {"calls", "facts"} <= heard
    assert listener.pending == set()


def change_something(person: Person) -> None:
    set_budget(scope="tenant", dimension="calls", amount=1000, by=person.by)


def test_news_of_another_tenant_is_none(feed: TenantFeed, foreign_tenant: Tenant, operator: Person) -> None:
    listener = listen(operator)
    stranger = make_person(foreign_tenant, "stranger", Role.OWNER)
    look(feed, listener)
    listener.pending.clear()

    change_something(stranger)
    look(feed)

    assert listener.pending == set()


def test_a_person_hears_only_of_what_they_may_see(feed: TenantFeed, tenant: Tenant, operator: Person) -> None:
    dana = listen(make_person(tenant, "dana", Role.DEVELOPER))
    olivia = listen(operator)
    look(feed, dana, olivia)

    change_something(operator)
    look(feed)

    assert olivia.pending == {"budgets", "facts"}
    assert dana.pending == set()


def test_a_reviewer_hears_of_trials_and_of_no_other_replay(
    feed: TenantFeed, tenant: Tenant, submit: Callable[..., ToolVersion]
) -> None:
    rita = make_person(tenant, "rita", Role.REVIEWER)
    version = submit()
    listener = listen(rita)
    look(feed, listener)
    listener.pending.clear()

    row = request_trial(version_id=version.pk, arguments={"text": "x"}, by=rita.by)
    look(feed)
    asked, listener.pending = listener.pending, set()
    look(feed)
    Replay.objects.filter(pk=row.pk).update(state=ReplayState.RUNNING)
    look(feed)

    assert "trials" in asked
    assert "replays" not in asked
    assert listener.pending == {"trials"}  # that it runs now is no fact


def test_how_far_an_export_is_is_news_without_a_fact(feed: TenantFeed, operator: Person) -> None:
    listener = listen(operator)
    change_something(operator)
    with signing_with():
        seal_everything()
    job = make_export(format="jsonl", by=operator.by)
    look(feed, listener)
    listener.pending.clear()

    ExportJob.objects.filter(pk=job.pk).update(state=ExportState.RUNNING, rows=1)
    look(feed)

    assert listener.pending == {"exports"}


def test_where_there_is_more_than_can_be_read_everything_is_news(
    feed: TenantFeed, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "MOST_FACTS", 1)
    listener = listen(operator)
    look(feed, listener)
    change_something(operator)

    look(feed)

    assert listener.pending == set(listener.topics)


def sign_out(person: Person, listener: Listener) -> None:
    Session.objects.filter(session_key=listener.session_key).delete()


def take_role(person: Person, listener: Listener) -> None:
    owner = make_person(Tenant.objects.get(pk=person.by.tenant_id), "oona", Role.OWNER)
    members.end_membership(user_id=person.user.pk, role=Role.OPERATOR, by=owner.by)


def change_password(person: Person, listener: Listener) -> None:
    person.user.set_password("another one")
    person.user.save()
    listener.asked_at -= feeds.ASK_AGAIN_S + 1


@pytest.mark.req("TOOLS-22")
@pytest.mark.parametrize("take_back", [sign_out, take_role, change_password])
def test_what_was_taken_back_ends_the_stream(
    feed: TenantFeed, operator: Person, tenant: Tenant, take_back: Callable[[Person, Listener], None]
) -> None:
    listener, other = listen(operator), listen(make_person(tenant, "oscar", Role.OPERATOR))
    look(feed, listener, other)
    assert not listener.is_over

    take_back(operator, listener)
    look(feed)

    assert listener.is_over
    assert not other.is_over


def test_a_stream_says_topics_and_ends_when_it_may_go_on_no_longer(operator: Person) -> None:
    listener = listen(operator)

    async def read() -> list[str]:
        stream = stream_topics(listener)
        found = [await anext(stream)]
        listener.tell({"calls", "facts", "nothing-of-theirs"})
        found.append(await anext(stream))
        listener.end()
        return found + [each async for each in stream]

    assert asyncio.run(read()) == ["retry: 2000\n\n", "data: calls facts\n\n"]
    assert feeds.count_streams(operator.by.id) == 0


def test_facts_of_no_topic_are_news_of_the_list_of_facts() -> None:
    assert find_topics({Kind.SNAPSHOT_READ}) == {"facts"}
    assert find_topics(()) == set()


@pytest.mark.django_db
def test_a_server_without_an_event_loop_has_no_streams(operator: Person) -> None:
    assert operator.client().get(reverse("page_events")).status_code == 204
    assert Client().get(reverse("page_events")).status_code == 302


@pytest.mark.django_db
def test_nobody_holds_more_streams_open_than_they_may(operator: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "find_event_loop", lambda request: True)
    monkeypatch.setattr(pages, "count_streams", lambda person: pages.MOST_STREAMS)

    answer = operator.client().get(reverse("page_events"))

    assert answer.status_code == 429


def test_counts_are_those_of_the_navigation(operator: Person) -> None:
    answer = operator.client().get(reverse("page_event_counts"))

    jobs = {"job.approvals": 0, "job.reviews": 0, "job.operations": 0}
    assert answer.json() == {"approvals": 0, "reviews": 0, "halts": 0} | jobs
    assert answer.headers["Cache-Control"] == "no-store"
