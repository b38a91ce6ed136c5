"""Replay pages: do people find in the console and over REST what a replay has found, and only who may reveal values sees them?"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.urls import reverse

from evidence.keys.subject_keys import destroy_key
from evidence.models import Fact, Snapshot
from invocations.replays import batches
from invocations.replays import rerun as replays_rerun
from invocations.replays.models import Replay
from tests.support.calls import row_of
from tests.support.replays import WHY, replay, replayed_tool, work_through

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


@pytest.fixture
def stamped(caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell) -> Invocation:
    """A call whose replay differs."""
    enable(**replayed_tool("stamps"))
    grant()
    return row_of(caller.invoke("sample.tools.stamps", {"text": "of-a-person"}))


@pytest.mark.req("TOOLS-28")
def test_a_call_is_replayed_from_its_page_with_a_reason(
    stamped: Invocation, auditor: Person, developer: Person
) -> None:
    client, to = auditor.client(), reverse("replay_new", args=[stamped.pk])

    assert to in client.get(reverse("invocation", args=[stamped.pk])).content.decode()
    assert to not in developer.client().get(reverse("invocation", args=[stamped.pk])).content.decode()
    assert client.post(to, {"reason": "short"}).status_code == 422
    asked = client.post(to, {"reason": WHY})
    row = Replay.objects.get()
    assert asked.headers["Location"] == reverse("replay", args=[row.pk])
    assert 'hx-trigger="live" hx-select="#replay"' in client.get(asked.headers["Location"]).content.decode()
    work_through()
    page = client.get(asked.headers["Location"]).content.decode()
    assert 'data-tone="bad"' in page
    assert 'hx-select="#replay"' not in page
    assert "of-a-person" not in page


@pytest.mark.req("TOOLS-28")
def test_both_sides_are_shown_to_whoever_may_reveal_them_once_it_is_a_fact(
    stamped: Invocation, auditor: Person, operator: Person
) -> None:
    row = replay(stamped, by=auditor.by)
    page, values = (reverse(name, args=[row.pk, stamped.pk]) for name in ("replay_call", "replay_values"))
    client = auditor.client()

    before = client.get(page).content.decode()
    refused = client.post(values, {"reason": "short"})
    shown = client.post(values, {"reason": WHY}).content.decode()

    assert "of-a-person" not in before
    assert refused.status_code == 422
    assert all(text in shown for text in ("of-a-person", "/data/at", "/data/id"))
    assert Fact.objects.filter(kind="snapshot.read", actor_id=auditor.by.id).count() == 1
    assert operator.client().post(values, {"reason": WHY}).status_code == 403


@pytest.mark.req("TOOLS-28")
def test_a_period_is_asked_for_followed_and_listed(stamped: Invocation, auditor: Person) -> None:
    client, today = auditor.client(), datetime.now(UTC).date().isoformat()
    wish = {"what": "facts", "since": today, "until": today, "most": "10", "reason": WHY}

    backwards = client.post(reverse("replay_period"), wish | {"until": "2001-01-01"})
    asked = client.post(reverse("replay_period"), wish)
    work_through()

    assert backwards.status_code == 422
    row = Replay.objects.get()
    assert (row.state, row.result["counts"]) == ("ended", {"equal": 1})
    page = client.get(asked.headers["Location"]).content.decode()
    assert re.search(rf'<dd>\s*<span title="{auditor.by.id}">', page)
    assert reverse("fact", args=[Fact.objects.get(kind="replay.ended").pk]) in page
    listed = client.get(reverse("replays") + "?state=ended").content.decode()
    assert reverse("replay", args=[row.pk]) in listed
    assert reverse("replay", args=[row.pk]) not in client.get(reverse("replays") + "?state=queued").content.decode()


@pytest.mark.req("TOOLS-28")
def test_people_replay_over_rest(stamped: Invocation, auditor: Person, caller: Caller) -> None:
    client, call = auditor.client(), f"/api/v1/invocations/{stamped.wire_id}"
    now = datetime.now(UTC)

    asked = client.post(f"{call}/replays", {"reason": WHY}, content_type="application/json")
    work_through()
    done = client.get(asked.headers["Location"]).json()["data"]
    calls = client.get(f"{asked.headers['Location']}/calls").json()["data"]["calls"]
    period = {
        "what": "decisions",
        "since": (now - timedelta(hours=1)).isoformat(),
        "until": (now + timedelta(hours=1)).isoformat(),
        "reason": WHY,
    }
    other = client.post("/api/v1/replays", period, content_type="application/json")
    ended = client.delete(other.headers["Location"])
    odd = client.post("/api/v1/replays", period | {"policy": "pol_x"}, content_type="application/json")

    assert asked.status_code == 202
    assert (done["state"], done["verdict"], done["invocation"]) == ("ended", "differs", stamped.wire_id)
    assert [(each["verdict"], each["differences"], each["runs"]) for each in calls] == [("differs", 2, 3)]
    assert client.get(f"{call}/reconstruction").json()["data"]["verdict"] == "equal"
    assert [each["id"] for each in client.get(f"{call}/replays").json()["data"]["replays"]] == [done["id"]]
    assert (other.status_code, ended.json()["data"]["state"]) == (202, "cancelled")
    assert odd.status_code == 422
    assert caller.get(f"/invocations/{stamped.wire_id}/replays").status_code == 403


@pytest.mark.req("TOOLS-28")
def test_what_a_replay_said_goes_with_the_person_whom_the_call_was_made_for(
    stamped: Invocation, auditor: Person
) -> None:
    row = replay(stamped, by=auditor.by)
    assert stamped.values_key is not None

    destroy_key(tenant_id=stamped.tenant_id, subject=stamped.values_key.subject)

    values = reverse("replay_values", args=[row.pk, stamped.pk])
    assert "of-a-person" not in auditor.client().post(values, {"reason": WHY}).content.decode()
    rerun = replay(stamped, by=auditor.by).reruns.get()
    assert (rerun.verdict, rerun.why in ("erased", "no_values")) == ("cannot", True)


@pytest.mark.req("TOOLS-28")
@pytest.mark.django_db(transaction=True)
def test_an_erasure_while_a_replay_runs_costs_its_values_and_not_the_replay(
    stamped: Invocation, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replays_rerun.rerun_call

    def forgotten_meanwhile(invocation: Invocation, **more: Any) -> Any:
        found = run(invocation, **more)
        assert stamped.values_key is not None
        with transaction.atomic():
            destroy_key(tenant_id=stamped.tenant_id, subject=stamped.values_key.subject)
        return found

    monkeypatch.setattr(batches, "rerun_call", forgotten_meanwhile)
    row = replay(stamped, by=auditor.by)

    assert (row.state, row.verdict) == ("ended", "differs")
    assert not Snapshot.objects.filter(kind="replay").exists()
