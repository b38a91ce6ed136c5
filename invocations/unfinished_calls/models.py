"""Unfinished call model: what the queue looks at, of each call that has begun and not ended.

The row of the call says the same and is the truth; the database itself keeps these after it
(:mod:`invocations.unfinished_calls.triggers`). What changes while a call waits and runs would, in an index of the wide table, have
PostgreSQL write all of its indexes anew.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class UnfinishedCall(models.Model):
    """One call that waits for a person or a worker, or runs. Nothing but the database writes these rows."""

    id = models.UUIDField(primary_key=True, editable=False)  # the call's
    tenant_id = models.UUIDField()
    state = models.CharField(max_length=16)
    work_class = models.CharField(max_length=8)
    of_model = models.BooleanField()  # no worker runs it
    held = (
        models.BooleanField()
    )  # the state, as what most calls never change: no claim reads those that wait for a person
    serial_key = models.CharField(max_length=128, blank=True)  # of which calls one runs at a time; empty: any number
    running_key = models.CharField(max_length=128, blank=True)  # the same while it runs
    overdue_at = models.DateTimeField(
        null=True
    )  # when it is closed if nothing becomes of it: see invocations/queue/sweeper.py
    notified_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            # Empty while a call waits: a row whose key stays so is written without its indexes.
            models.UniqueConstraint(
                fields=["tenant_id", "running_key"],
                condition=~Q(running_key=""),
                name="unfinished_call_serial_key_runs_once",
            ),
        ]
        # By the state itself a claim and an end would write entries into all indexes.
        indexes = [models.Index(fields=["id"], name="unfinished_call_not_held", condition=Q(held=False))]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


def build_unfinished_filter(**which: object) -> Q:
    """Calls that have not ended, found by their narrow rows: of the wide table no index says it."""
    return Q(finished_at=None, pk__in=UnfinishedCall.objects.filter(**which).values("pk"))
