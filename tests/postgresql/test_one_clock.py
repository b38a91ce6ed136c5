"""When the clock of one host is wrong, does it take nothing from the others, and keep nothing from them?

The process of such a host is this one, with all its clocks moved, on rows that others have written by the database's.
"""

from __future__ import annotations

import datetime as datetimes
import importlib
import sys
from contextlib import contextmanager
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from access import consents
from access.models import Consent
from evidence.checking.running import advance_next as verify_next
from evidence.checking.running import begin_passes
from evidence.exports.making import make_export
from evidence.exports.running import _claim as claim_export
from evidence.exports.running import advance_next as export_next
from evidence.models import ExportJob, Verification
from invocations import sweeper
from invocations.models import Invocation, State
from invocations.replaying import working
from invocations.replaying.services import replay_call
from registry import services as registry
from registry.dependencies import states
from registry.models import Dependencies
from tests.calls import row_of, writer
from tests.logs import seal_everything, signing_with
from tests.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.calls import Bell
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.req("TOOLS-15")]
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
AHEAD, BEHIND = timedelta(hours=2), timedelta(hours=-2)
SLACK = timedelta(minutes=2)


@pytest.fixture(autouse=True)
def leases_that_last(settings: Any) -> None:
    """No lease ends within a test, however busy the machine is: what is asked is whose clock ends it."""
    settings.TOOLHUB_LEASE_S = 300


def true_time() -> datetimes.datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        found: datetimes.datetime = cursor.fetchone()[0]
    return found.astimezone(UTC)


@contextmanager
def clock_moved(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> Iterator[None]:
    """What our modules take for now, while the block lasts."""

    class Moved(datetimes.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetimes.datetime.now(tz) + by

    real = timezone.now
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: real() + by)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in ("access", "evidence", "invocations", "registry", "toolhub") and (
                getattr(module, "datetime", None) is datetimes.datetime
            ):
                patch.setattr(importlib.import_module(name), "datetime", Moved)
        yield


def lease_s() -> timedelta:
    return timedelta(seconds=settings.TOOLHUB_LEASE_S)


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
        assert working.claim() is not None
        assert claim_export(job) is not None

    replay.refresh_from_db()
    lease = ExportJob.objects.get(pk=job.pk).lease_until
    assert replay.lease_until is not None
    assert lease is not None
    assert timedelta() < replay.lease_until - true_time() <= working.LEASE + SLACK
    assert timedelta() < lease - true_time() <= lease_s() + SLACK


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
    assert sweeper.close_overdue() == 0
    assert Invocation.objects.get(pk=call.pk).state == State.QUEUED


def test_a_sweeper_whose_clock_is_ahead_ends_no_consent(
    caller: Caller, operator: Person, enable: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(enable)
    asked = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=asked.pk, reason="for a test", by=operator.by)

    with clock_moved(monkeypatch, AHEAD):
        assert consents.expire_consents() == 0
    assert Consent.objects.get().state == "approved"


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
