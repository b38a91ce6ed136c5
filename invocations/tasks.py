"""Celery's end of the queue: unpack, call one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from invocations import execution
from toolhub.kernel.names import RUN_INVOCATION


@shared_task(name=RUN_INVOCATION, acks_late=True, ignore_result=True)
def run_invocation(*, invocation_id: str) -> None:
    """Run one queued invocation. Safe to deliver twice: only one claim wins."""
    close_old_connections()
    execution.run_invocation(invocation_id=UUID(invocation_id))
