"""One clock of calls: does what one host gives for a time last as long on another whose clock is wrong: consents, keys, links,
hosts?

The process of such a host is this one, with all its clocks moved (:mod:`tests.support.clocks`).
"""

from __future__ import annotations

import datetime as datetimes
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from opentelemetry.metrics import CallbackOptions

from access.consents import services as consents
from access.models import ApiKey, Consent
from evidence.integrity import verifier
from evidence.integrity.verifier import advance_next as verify_next
from evidence.integrity.verifier import begin_passes
from evidence.models import Anchor, Verification
from evidence.witnesses import anchors
from invocations.artifacts import links
from invocations.artifacts.problems import ArtifactLinkExpired
from invocations.metrics import hub_gauges
from invocations.models import Invocation, SandboxHost, State
from invocations.queue.claims import claim_call
from invocations.sandbox_hosts import reports
from kernel import names
from kernel.ids import encode, new_id
from tests.support.calls import row_of, writer
from tests.support.clocks import AHEAD, BEHIND, SLACK, clock_moved, true_time
from tests.support.evidence_logs import seal_everything, signing_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"


@pytest.fixture(autouse=True)
def leases_that_last(settings: Any) -> None:
    """No lease ends within a test, however busy the machine is: what is asked is whose clock ends it."""
    settings.TOOLHUB_LEASE_S = 300


def consented(caller: Caller, operator: Person, *, ends: timedelta) -> Consent:
    """A consent to the tool that writes, which ends then by the database's clock."""
    asked = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)
    Consent.objects.filter(pk=asked.pk).update(expires_at=true_time() + ends)
    return asked


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("by", "ends", "state"), [(AHEAD, timedelta(hours=1), "succeeded"), (BEHIND, timedelta(hours=-1), "denied")]
)
def test_a_consent_lasts_for_a_call_as_long_as_it_should_whatever_the_clock_of_who_accepts_it(
    by: timedelta, ends: timedelta, state: str, caller: Caller, operator: Person, enable: Callable[..., Tool],
    grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    consented(caller, operator, ends=ends)

    with clock_moved(monkeypatch, by):
        call = row_of(caller.invoke(WRITE, {"text": "x"}, idempotency_key="k"))

    assert call.state == state


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("by", "ends", "state"), [(AHEAD, timedelta(hours=1), "succeeded"), (BEHIND, timedelta(hours=-1), "cancelled")]
)
def test_a_consent_is_judged_before_the_run_by_the_clock_that_it_was_given_by(
    by: timedelta, ends: timedelta, state: str, caller: Caller, operator: Person, enable: Callable[..., Tool],
    grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    consent = consented(caller, operator, ends=timedelta(hours=1))
    bell.answers = False
    call = row_of(caller.invoke(WRITE, {"text": "x"}, idempotency_key="k", headers={"Prefer": "respond-async"}))
    Consent.objects.filter(pk=consent.pk).update(expires_at=true_time() + ends)

    with clock_moved(monkeypatch, by):
        bell.deliver()

    call.refresh_from_db()
    assert call.state == state


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_call_that_waited_for_a_person_goes_on_whatever_the_clock_of_who_decided(
    by: timedelta, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any],
    bell: Bell, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    held = row_of(caller.invoke(WRITE, {"text": "x"}, on_consent="hold", purpose="a test", idempotency_key="k"))
    assert held.state == State.HELD

    with clock_moved(monkeypatch, by):
        consents.approve_consent(
            consent_id=Consent.objects.get().pk, reason="for a test", mode="period", validity_s=600, by=operator.by
        )

    held.refresh_from_db()
    decided = Consent.objects.get()
    assert held.state == State.QUEUED
    assert decided.decided_at is not None
    assert abs(decided.decided_at - true_time()) < SLACK


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_what_is_asked_for_and_shown_of_a_consent_is_by_the_clock_of_the_database(
    by: timedelta, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    given = consented(caller, operator, ends=timedelta(hours=1) if by == AHEAD else timedelta(hours=-1))
    shown = "approved" if by == AHEAD else "expired"

    with clock_moved(monkeypatch, by):
        given.refresh_from_db()
        assert given.shown_state == shown
        listed = caller.get(f"/consents?state={shown}").json()["data"]["consents"]
        asked = caller.post("/consents", {"tool": WRITE, "purpose": "another", "validity_s": 600})

    assert [each["id"] for each in listed] == [given.wire_id]
    assert asked.status_code == 201
    ends = datetimes.datetime.fromisoformat(asked.json()["data"]["expires_at"])
    assert abs(ends - true_time() - consents.REQUEST_LIFETIME) < SLACK


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_key_works_as_long_as_it_should_whatever_the_clock_of_who_is_asked(
    by: timedelta, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ApiKey.objects.update(created_at=true_time() + 2 * BEHIND, expires_at=true_time() + by / 2)

    with clock_moved(monkeypatch, by):
        assert caller.get("/tools").status_code == (200 if by == AHEAD else 401)


@pytest.mark.req("TOOLS-15")
def test_a_verification_that_failed_is_tried_again_soon_whatever_the_clock_of_who_tried(
    operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signing_with():
        seal_everything()
        begin_passes()

    def breaks(*_: Any) -> None:
        raise ZeroDivisionError

    for by in (AHEAD, BEHIND):
        with clock_moved(monkeypatch, by), monkeypatch.context() as patch:
            patch.setattr(verifier, "advance_verification", breaks)
            with pytest.raises(ZeroDivisionError):
                verify_next()
        row = Verification.objects.exclude(stopped_by="").get()
        assert row.lease_until is not None
        assert timedelta() < row.lease_until - true_time() <= verifier.AGAIN_AFTER + SLACK
        Verification.objects.update(lease_until=None, stopped_by="")
        with clock_moved(monkeypatch, by), signing_with():
            while verify_next():
                pass
        assert all(abs(each.checked_at - true_time()) < SLACK for each in Verification.objects.all() if each.checked_at)
        Verification.objects.update(lease_until=None)


@pytest.mark.req("TOOLS-15")
def test_a_host_whose_clock_is_ahead_forgets_no_other_and_sees_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    SandboxHost.objects.create(name="another", seen_at=true_time(), snapshot={})
    stop = threading.Event()

    class Once(reports.Reporter):
        def look(self, now: datetimes.datetime) -> None:
            super().look(now)
            SandboxHost.objects.filter(name="another").update(snapshot={"seen": True})
            stop.set()

    monkeypatch.setattr(reports, "Reporter", Once)
    with clock_moved(monkeypatch, AHEAD):
        reports.run_reporter(stop)

    assert SandboxHost.objects.get(name="another").snapshot == {"seen": True}


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_witness_is_silent_by_the_clock_that_says_when_it_was_reached(
    by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    since = timedelta(0) if by == AHEAD else timedelta(hours=1)
    Anchor.objects.create(
        name="w",
        kind="witness",
        anchored_at=true_time() - since,
        next_attempt_at=true_time(),
        attempts=1,
        last_error="x",
    )

    with clock_moved(monkeypatch, by):
        assert bool(anchors.load_anchor_statuses()[0].alarm) == (by == BEHIND)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(("by", "ended"), [(timedelta(days=2), 0), (timedelta(days=-2), 2)])
def test_a_link_to_an_artifact_is_good_for_a_day_whatever_the_clock_of_who_is_asked(
    by: timedelta, ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Invocation(tenant_id=new_id(), agent_id=new_id(), finished_at=true_time() - timedelta(days=ended))
    id = new_id()
    query = dict(parse_qsl(urlsplit(links.build_artifact_link(encode("art", id), call)).query))

    with clock_moved(monkeypatch, by):
        if ended:
            with pytest.raises(ArtifactLinkExpired):
                links.check_link(id, query)
        else:
            assert links.check_link(id, query) == (call.tenant_id, call.agent_id)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_lease_is_overdue_by_the_clock_that_it_was_taken_by(
    by: timedelta, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    enable()
    grant()
    bell.answers = False
    caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"})
    assert claim_call() is not None
    overdue = by == BEHIND
    Invocation.objects.update(lease_until=true_time() + by / 2)

    with clock_moved(monkeypatch, by):
        found = hub_gauges._observed(hub_gauges.GAUGES[names.METRIC_LEASES][0], CallbackOptions())

    assert {(each.attributes or {})["state"]: each.value for each in found} == {
        "held": int(not overdue),
        "overdue": int(overdue),
    }
