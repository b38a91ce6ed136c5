"""One clock: when the clock of one host is wrong, does it take nothing from the others, and keep nothing from them?

The process of such a host is this one, with all its clocks moved (:mod:`tests.support.clocks`), on rows that others
have written by the database's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import transaction

from access.consents import services as consents
from access.models import Consent, Delivery
from access.notifications import channels
from access.notifications.services import notify_channels
from access.roles import Role
from evidence.deliveries.signing_secrets import load_secrets
from evidence.erasures import services as erasures
from evidence.exports.jobs import _claim as claim_export
from evidence.exports.jobs import advance_next as export_next
from evidence.exports.services import make_export
from evidence.integrity.alarms import list_alarms
from evidence.integrity.verifier import advance_next as verify_next
from evidence.integrity.verifier import begin_passes
from evidence.log.state import log_state
from evidence.models import ExportJob, SinkSecret, Verification
from evidence.sinks import services as sinks
from evidence.sinks.services import make_sink, resume_sink
from invocations.callbacks import services as callbacks
from invocations.callbacks.models import CallbackDelivery, CallbackSecret
from invocations.callbacks.services import make_endpoint, redeliver_callback
from invocations.models import Invocation, State
from invocations.queue import sweeper
from invocations.replays import worker
from invocations.replays.services import replay_call
from registry.dependencies import states
from registry.models import Dependencies
from registry.versions import services as registry
from tests.conftest import make_person
from tests.support.calls import row_of, writer
from tests.support.clocks import AHEAD, BEHIND, SLACK, clock_moved, true_time
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db(transaction=True)
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"


@pytest.fixture(autouse=True)
def leases_that_last(settings: Any) -> None:
    """No lease ends within a test, however busy the machine is: what is asked is whose clock ends it."""
    settings.TOOLHUB_LEASE_S = 300


def lease_s() -> timedelta:
    return timedelta(seconds=settings.TOOLHUB_LEASE_S)


@pytest.mark.req("TOOLS-15")
def test_a_keeper_whose_clock_is_ahead_takes_no_piece_of_a_living_one(
    operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signing_with():
        seal_everything()
        job = make_export(format="jsonl", by=operator.by)
        begin_passes()
    assert claim_export(job) is not None
    Verification.objects.update(lease_until=true_time() + lease_s())

    with clock_moved(monkeypatch, AHEAD):
        assert export_next() is None
        assert verify_next() is None


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_lease_lasts_as_long_as_it_should_whatever_the_clock_of_who_takes_it(
    by: timedelta, operator: Person, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any],
    bell: Bell, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    writer(enable)
    grant()
    done = row_of(caller.invoke(WRITE, {"text": "x"}))
    replay = replay_call(invocation_id=done.pk, reason="to see it again", by=operator.by)
    with signing_with():
        seal_everything()
        job = make_export(format="jsonl", by=operator.by)

    with clock_moved(monkeypatch, by):
        assert worker.claim_replay() is not None
        assert claim_export(job) is not None

    replay.refresh_from_db()
    lease = ExportJob.objects.get(pk=job.pk).lease_until
    assert replay.lease_until is not None
    assert lease is not None
    assert timedelta() < replay.lease_until - true_time() <= worker.LEASE + SLACK
    assert timedelta() < lease - true_time() <= lease_s() + SLACK


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_call_waits_as_long_as_it_should_whatever_the_clock_of_who_took_it(
    by: timedelta, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    enable()
    grant()
    bell.answers = False

    with clock_moved(monkeypatch, by):
        call = row_of(caller.invoke(ECHO, {"text": "x"}, idempotency_key="k", headers={"Prefer": "respond-async"}))

    assert call.queue_deadline_at is not None
    assert call.key_until is not None
    waits = timedelta(seconds=settings.TOOLHUB_ASYNC_QUEUE_WAIT_S)
    assert timedelta() < call.queue_deadline_at - true_time() <= waits + SLACK
    assert abs(call.key_until - true_time() - timedelta(hours=24)) < SLACK
    assert sweeper.close_overdue_calls() == 0
    assert Invocation.objects.get(pk=call.pk).state == State.QUEUED


@pytest.mark.req("TOOLS-15")
def test_a_sweeper_whose_clock_is_ahead_ends_no_consent(
    caller: Caller, operator: Person, enable: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(enable)
    asked = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)

    with clock_moved(monkeypatch, AHEAD):
        assert consents.expire_consents() == 0
    assert Consent.objects.get().state == "approved"


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_what_waits_to_be_sent_is_due_at_once_whatever_the_clock_of_who_wrote_it(
    by: timedelta, caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    enable()
    grant()
    channels.set_notification(channel="email", target="ann@example.org", events=["halt.thrown"], by=operator.by)
    make_endpoint(agent_id=caller.by.agent(), name="done", url="https://example.org/hook", by=operator.by)

    with clock_moved(monkeypatch, by):
        with transaction.atomic():
            notify_channels("halt.thrown", subject="hlt_x", body={"tool": ECHO}, tenant_id=operator.by.tenant_id)
        caller.invoke(ECHO, {"text": "x"}, callback="done")
        sink, _ = make_sink(name="siem", channel="webhook", url="https://example.org/events", by=operator.by)

    rows = (Delivery.objects.get(), CallbackDelivery.objects.get(), sink)
    assert all(row.next_attempt_at and abs(row.next_attempt_at - true_time()) < SLACK for row in rows)
    with clock_moved(monkeypatch, by):
        channels.redeliver_message(delivery_id=rows[0].pk, by=operator.by)
        redeliver_callback(delivery_id=rows[1].pk, by=operator.by)
        resume_sink(sink_id=sink.pk, by=operator.by)
    for row in rows:
        row.refresh_from_db()
        assert row.next_attempt_at is not None
        assert abs(row.next_attempt_at - true_time()) < SLACK


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_secret_overlaps_as_long_as_it_should_whatever_the_clock_of_who_changed_it(
    by: timedelta, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _ = make_endpoint(agent_id=caller.by.agent(), name="done", url="https://example.org/hook", by=operator.by)
    sink, _ = make_sink(name="siem", channel="webhook", url="https://example.org/events", by=operator.by)

    with clock_moved(monkeypatch, by):
        callbacks.rotate_secret(endpoint_id=hook.pk, overlap=timedelta(hours=1), by=operator.by)
        sinks.rotate_secret(sink_id=sink.pk, overlap=timedelta(hours=1), by=operator.by)
        assert len(load_secrets(sink.secrets, tenant_id=sink.tenant_id)) == 2

    ends = [rows.get(ends_at__isnull=False).ends_at for rows in (CallbackSecret.objects, SinkSecret.objects)]
    assert all(end and abs(end - true_time() - timedelta(hours=1)) < SLACK for end in ends)


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_a_host_whose_clock_is_wrong_raises_no_alarm_and_signs_for_others_in_time(
    by: timedelta, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signing_with():
        with clock_moved(monkeypatch, by):
            seal_everything()
            assert list_alarms(operator.by.tenant_id) == []
        assert log_state(operator.by.tenant_id).signed_at is not None
        assert list_alarms(operator.by.tenant_id) == []
        assert not log_state().wrong


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("by", [AHEAD, BEHIND])
def test_an_erasure_is_patient_for_a_minute_whatever_the_clock_of_who_asked(
    by: timedelta, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = make_person(tenant, "olga", Role.OWNER).by
    _, confirm = erasures.preview_erasure(user_id="user-4711", by=owner)
    with clock_moved(monkeypatch, by):
        row = erasures.erase_subject(
            user_id="user-4711", reason="The person has asked for it.", confirm=confirm, by=owner
        )

    assert abs(row.asked_at - true_time()) < SLACK


@pytest.mark.req("TOOLS-15")
def test_a_builder_whose_clock_is_ahead_takes_no_build_of_a_living_one(
    developer: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = manifest(
        "needy", implementation={"module": "sample.tools", "entry": "echo"}, dependencies=["first==1.0"]
    )
    registry.submit_version(document=document, by=developer.by)
    assert states.claim_next() is not None

    with clock_moved(monkeypatch, AHEAD):
        assert states.claim_next() is None
    assert Dependencies.objects.get().attempt == 1
