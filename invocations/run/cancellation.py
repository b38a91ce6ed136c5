"""Cancellation: a call that waits is taken back, and the wish to end one that runs reaches the worker that runs it.

That wish stands in the row and is a fact; a message on the wire makes it quick. Who misses the message sees the row with the next
heartbeat.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from access.consents.services import withdraw_request
from access.models import Consent
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.calls import CallAttempt
from invocations.approvals.held_calls import log_wait
from invocations.end.end_record import end_call
from invocations.end.endings import Ending
from invocations.models import Invocation, State
from invocations.problems import CallCancelled
from invocations.run.lease_heartbeat import end_run
from kernel.problems import Conflict

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from kernel.principal import Principal

log = logging.getLogger("toolhub.worker")
CHANNEL = "toolhub:cancel"
_PATIENCE_S = 1.0


@transaction.atomic
def cancel_call(*, invocation_id: UUID, by: Principal) -> Invocation:
    """Take back a call that waits for a person or a worker; have one ended that runs."""
    invocation = Invocation.objects.visible_to(by).select_related("version__tool").get(pk=invocation_id)
    consent: Consent | None = None
    if invocation.state == State.HELD and invocation.consent_id is not None:
        consent = Consent.objects.select_for_update().get(pk=invocation.consent_id)  # as a decision does: consent first
    when = "before it ran again; its first run was cut off" if invocation.was_lost else "before it started"
    ending = Ending(
        state=State.CANCELLED,
        problem=CallCancelled(f"This call was cancelled {when}."),
        ran=invocation.attempt > 0,
        steps=log_wait(invocation, "").steps if invocation.state == State.HELD else [],
    )
    waits = Q(state__in=[State.HELD, State.QUEUED])
    if not end_call(invocation, ending, actor=by, attempt=invocation.attempt, only=waits):
        invocation.refresh_from_db()
        if request_cancellation(invocation=invocation, by=by) or invocation.state == State.RUNNING:
            return invocation
        raise Conflict(
            f"This call is {invocation.state}; only one that has not ended can be cancelled.",
            details={"state": invocation.state},
        )
    if consent and not Invocation.objects.filter(consent_id=consent.pk, state=State.HELD).exists():
        withdraw_request(consent, by=by)
    invocation.refresh_from_db()
    return invocation


@transaction.atomic
def request_cancellation(*, invocation: Invocation, by: Principal) -> bool:
    """Have a running call ended. False when it does not run, or somebody has asked already."""
    asked = Invocation.objects.filter(pk=invocation.pk, state=State.RUNNING, cancel_asked_at=None)
    if not asked.update(cancel_asked_at=datetime.now(UTC)):
        return False
    evidence.record(
        kind=Kind.INVOCATION_CANCEL_ASKED,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=invocation.pk,
        tool=invocation.tool,
        data=CallAttempt(attempt=invocation.attempt),
    )
    transaction.on_commit(partial(_publish_cancellation, invocation.pk))
    return True


def _publish_cancellation(invocation_id: UUID) -> None:
    if not settings.TOOLHUB_REDIS_URL:
        end_run(invocation_id)
        return
    try:
        with redis.Redis.from_url(settings.TOOLHUB_REDIS_URL, socket_connect_timeout=2, socket_timeout=5) as client:
            client.publish(CHANNEL, invocation_id.bytes)
    except redis.RedisError as error:
        log.warning("The worker is not told and sees by itself that a call is to end: %s", error)


def _messages(stop: threading.Event) -> Iterator[UUID]:
    with (
        redis.Redis.from_url(settings.TOOLHUB_REDIS_URL, socket_connect_timeout=2, socket_timeout=5) as client,
        client.pubsub(ignore_subscribe_messages=True) as pubsub,
    ):
        pubsub.subscribe(CHANNEL)
        while not stop.is_set():
            message = pubsub.get_message(timeout=_PATIENCE_S)
            if message is not None and len(message["data"]) == 16:
                yield UUID(bytes=message["data"])


def listen_for_cancellations(stop: threading.Event) -> None:
    """Listen until told to stop; a worker of the production shape runs this in a thread. Without Redis there is nothing to hear."""
    if not settings.TOOLHUB_REDIS_URL:
        stop.wait()
    while not stop.is_set():
        try:
            for invocation_id in _messages(stop):
                end_run(invocation_id)
        except redis.RedisError as error:
            log.warning("Redis does not answer; runs are cancelled with their heartbeat: %s", error)
            stop.wait(_PATIENCE_S)
        except Exception:
            log.exception("A wish to cancel was not followed at once")
