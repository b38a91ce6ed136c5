"""Sweeper: what repairs what a crash has left.

Messages that were never sent, calls that nobody picked up, leases that ran out. Every pass may run in any number of
processes at once: each repair is a compare-and-set, so one wins and the others write nothing.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.db.models import Q

from access.budgets import ledger
from access.consents.services import expire_consents
from invocations.approvals.held_calls import build_expiry_problem
from invocations.chains.models import CHAIN_OPEN, Chain
from invocations.end.end_record import end_call
from invocations.end.endings import Ending
from invocations.models import FINAL, Invocation, State
from invocations.problems import OutcomeUnknown, QueueTimeout, find_cut_remedy
from invocations.queue import outbox
from invocations.queue.retries import may_run_again, requeue_call
from invocations.replays.outbox import relay_waiting_replays
from invocations.request_tallies import record_tallies
from invocations.unfinished_calls import lost_rows
from invocations.unfinished_calls.models import UnfinishedCall
from kernel.database.connections import database_now
from kernel.ids import encode
from kernel.loops import repeat_work
from kernel.observability.log_context import note_for_log, noted_for_log
from kernel.principal import Principal
from kernel.problems import Problem

if TYPE_CHECKING:
    import threading
    from uuid import UUID

log = logging.getLogger("toolhub.sweeper")
SETTLED_BY = timedelta(minutes=5)
BATCH = 100


def is_overdue(row: Invocation, now: datetime) -> bool:
    """By what the database's clock should say: worth asking the database, which decides."""
    if row.state == State.QUEUED:
        return row.queue_deadline_at is not None and row.queue_deadline_at <= now
    if row.state == State.HELD:
        return row.held_until is not None and row.held_until <= now
    return row.state == State.RUNNING and row.lease_until is not None and row.lease_until <= now


def build_overdue_filter() -> Q:
    now = database_now()
    return (
        Q(state=State.QUEUED, queue_deadline_at__lte=now)
        | Q(state=State.HELD, held_until__lte=now)
        | Q(state=State.RUNNING, lease_until__lte=now)
    )


def close_overdue_call(invocation_id: UUID) -> bool:
    """Close one overdue call: one that nobody decided on has expired, one that nobody picked up has timed out. Of one that was
    started the outcome is unknown, and where its tool honours its key, it runs again.
    """
    invocation = Invocation.objects.for_work().filter(build_overdue_filter(), pk=invocation_id).first()
    if invocation is None:
        return False
    note_for_log(tenant=str(invocation.tenant_id))
    # A heartbeat that comes now wins: the call is only closed with the lease that was seen to have run out.
    seen = Q(state=invocation.state, lease_until=invocation.lease_until)
    if invocation.state == State.RUNNING and may_run_again(invocation):
        return requeue_call(invocation, because=OutcomeUnknown.reason, only=seen)
    if invocation.state == State.HELD:
        ending = Ending(state=State.EXPIRED, problem=build_expiry_problem({}), ran=False)
    elif invocation.state == State.QUEUED:
        ending = Ending(
            state=State.TIMED_OUT,
            problem=QueueTimeout(remedy="Try again later, or ask an operator for more workers."),
            ran=False,
        )
    else:
        ending = Ending(
            state=State.OUTCOME_UNKNOWN,
            problem=OutcomeUnknown(remedy=find_cut_remedy(invocation.version)),
        )
    actor = Principal.system("sweeper", tenant_id=invocation.tenant_id)
    won = end_call(invocation, ending, actor=actor, attempt=invocation.attempt, only=seen)
    if won:  # a worker that is alive sees it with its next heartbeat and ends the box; one that is not took it along
        log.warning("%s was closed as %s", invocation.wire_id, ending.state)
    return won


def close_overdue_calls() -> int:
    found = UnfinishedCall.objects.filter(overdue_at__lte=database_now()).values_list("pk", flat=True)[:BATCH]
    return sum(_close_if_possible(pk) for pk in list(found))


def _close_if_possible(invocation_id: UUID) -> bool:
    """One call that cannot be closed does not keep the others open."""
    with noted_for_log(call_id=encode("inv", invocation_id), tenant=""):
        try:
            return close_overdue_call(invocation_id)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            log.exception("%s cannot be closed and is tried again", encode("inv", invocation_id))
            return False


def settle_lost_budgets() -> int:
    """Budgets that are held for calls which have ended, or are not there, without having been settled. Only repair by hand in
    the database leaves any: a call's own transactions reserve and settle with it.
    """
    held = ledger.open_since(datetime.now(UTC) - SETTLED_BY, limit=BATCH)
    if not held:
        return 0
    going_on = set(Invocation.objects.filter(pk__in=held).exclude(state__in=FINAL).values_list("pk", flat=True))
    going_on |= set(Chain.objects.filter(pk__in=held, state__in=CHAIN_OPEN).values_list("pk", flat=True))
    lost = [each for each in held if each not in going_on]
    if lost:
        log.warning("The budgets of %s calls were not settled when they ended; they are now", len(lost))
    return ledger.settle_lost(lost)


def sweep_once() -> dict[str, int]:
    """One pass; what was done, by name."""
    done = {
        "closed": close_overdue_calls(),
        "resent": outbox.relay_due_messages(limit=BATCH),
        "replays_notified": relay_waiting_replays(),
        "consents_expired": expire_consents(limit=BATCH),
    }
    done["settled"] = settle_lost_budgets()
    done["narrow_rows_mended"] = lost_rows.watch.look()
    done["counted_witnessed"] = record_tallies(now=datetime.now(UTC), limit=BATCH)
    return done


def run_sweeper(stop: threading.Event) -> None:
    """Sweep until told to stop."""
    every_s, what = settings.TOOLHUB_SWEEP_INTERVAL_S, "A pass of the sweeper was not finished"
    repeat_work(sweep_once, stop, every_s=every_s, what=what, log=log, expected=(Problem,))
