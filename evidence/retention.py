"""Retention: how long values are kept, and what takes them away then.

A tenant sets days for each class of values; without, they stay. A keeper removes what is older, in batches, and each batch is a fact
in its transaction. Facts themselves are kept for ever.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import DatabaseError, transaction

from evidence import services as evidence
from evidence.erasures.holders import AFTERWARDS, CLASSES
from evidence.kinds import Kind
from evidence.leaves.custody import AppliedRetention, RetentionTimes
from evidence.models import Retention
from kernel.database.connections import database_time, release_connection
from kernel.database.overwritten_pages import drop_overwritten_pages, note_removal
from kernel.ids import encode
from kernel.loops import repeat_work
from kernel.principal import Principal
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from uuid import UUID

log = logging.getLogger("toolhub.retention")
EVERY_S = 1800.0  # a pass looks through all that is kept
BATCH = 1000
LEAST_DAYS, MOST_DAYS = 1, 36_500  # an answer can be asked for again with its Idempotency-Key for a day


def load_times(tenant_id: UUID) -> dict[str, int | None]:
    """Days by class; None: kept."""
    said = dict(Retention.objects.filter(tenant_id=tenant_id).values_list("name", "days"))
    return {name: said.get(name) for name in CLASSES}


def check_times(days: Mapping[str, int | None]) -> None:
    for name, number in days.items():
        if name not in CLASSES:
            raise SchemaInvalid.at(f"/{name}", f"There is no such class. The classes are {', '.join(CLASSES)}.")
        if number is not None and not LEAST_DAYS <= number <= MOST_DAYS:
            raise SchemaInvalid.at(f"/{name}", f"Keep them for {LEAST_DAYS} to {MOST_DAYS:,} days, or without an end.")


@transaction.atomic
def set_retention(*, days: Mapping[str, int | None], by: Principal) -> dict[str, int | None]:
    """Set the times of the classes that are named; None: kept without an end. Returns all."""
    check_times(days)
    before = load_times(by.tenant_id)
    changed = {name: number for name, number in days.items() if before[name] != number}
    for name, number in changed.items():
        mine = Retention.objects.filter(tenant_id=by.tenant_id, name=name)
        if number is None:
            mine.delete()
        elif not mine.update(days=number):
            Retention.objects.create(tenant_id=by.tenant_id, name=name, days=number)
    if changed:
        evidence.record(
            kind=Kind.RETENTION_SET,
            subject=encode("ten", by.tenant_id),
            actor=by,
            data=RetentionTimes(before={name: before[name] for name in changed}, days=changed),
        )
    return load_times(by.tenant_id)


@transaction.atomic
def apply_retention(*, retention: Retention) -> int:
    """Remove the next batch of what is older than it may become; returns how many went."""
    until = database_time() - timedelta(days=retention.days)
    gone = CLASSES[retention.name].remove(retention.tenant_id, until, BATCH)
    if gone:
        evidence.record(
            kind=Kind.RETENTION_APPLIED,
            subject=encode("ten", retention.tenant_id),
            actor=Principal.system("retention", tenant_id=retention.tenant_id),
            data=AppliedRetention(class_=retention.name, count=gone, until=until.isoformat(timespec="seconds")),
        )
    return gone


def apply_due_retention() -> None:
    """Remove what is old now. A class that cannot be removed holds up no other."""
    for retention in Retention.objects.filter(name__in=CLASSES).order_by("id"):
        try:
            while apply_retention(retention=retention):
                note_removal()
                release_connection()
        except DatabaseError:
            raise
        except Exception:
            log.exception("Old %s of %s go with the next pass", retention.name, encode("ten", retention.tenant_id))
    for forget in AFTERWARDS:
        while forget():
            note_removal()
            release_connection()
    drop_overwritten_pages()  # where it cannot, erasures try again


def run_retention(stop: threading.Event) -> None:
    """Remove what is old until told to stop."""
    repeat_work(apply_due_retention, stop, every_s=EVERY_S, what="What is old was not removed", log=log)
