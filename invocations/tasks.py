"""Celery's end of the queue: unpack, call one service."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from invocations.replays import worker
from invocations.run import execution
from kernel.fault_injection import inject_fault
from kernel.names import RUN_INVOCATION, RUN_REPLAYS


@shared_task(name=RUN_INVOCATION, acks_late=True, ignore_result=True)
def run_invocation(*, invocation_id: str = "") -> None:
    """Run what waits. ``invocation_id`` is the call that this was sent for; it need not be the one whose turn it is."""
    del invocation_id
    close_old_connections()
    inject_fault("message.heard")
    execution.run_queued_calls()


@shared_task(name=RUN_REPLAYS, acks_late=True, ignore_result=True)
def run_replays() -> None:
    """Go through a piece of what waits."""
    close_old_connections()
    worker.run_next_batch()
