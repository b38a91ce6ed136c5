"""How does the verifier get along?

Piece by piece, each claimed with a compare-and-set, so that any number of keepers share the work and the next goes on where one was
killed. A pass without ``asked_by`` begins at the first leaf, follows its log, and after a day ends and is followed by another.
What is found is a fact in the transaction that notes it.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from evidence import services as evidence
from evidence.checking import ends, rows
from evidence.checking.commitments import missing_values
from evidence.checking.findings import Finding, Wrong
from evidence.checking.kept import against_kept
from evidence.checking.walking import Walk
from evidence.kinds import Kind
from evidence.models import GLOBAL_LOG, Fact, Log, Verification, VerificationState
from evidence.verify.problems import Refused
from toolhub.kernel.db import database_now, database_time, one_snapshot
from toolhub.kernel.ids import new_id
from toolhub.kernel.principal import Principal
from toolhub.kernel.telemetry import PROCESS, meter
from toolhub.kernel.tenancy import NO_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

logger = logging.getLogger("toolhub.verifier")
CLAIMED_FOR = timedelta(minutes=2)
AGAIN_AFTER = timedelta(seconds=20)  # at the end of its log, until there is more
MOST_FINDINGS = 100
SETTLED_AFTER = timedelta(minutes=5)  # by then a fact is in the log, or waits in vain

_found = meter().create_counter("toolhub.evidence.findings", description="What the verifier found wrong with logs")
_verified = meter().create_counter("toolhub.evidence.verified_leaves", description="Leaves that the verifier has read")


def verify_whole(log: Log) -> Iterator[Finding]:
    """All of a log in one go, noting nothing: for the command and for tests."""
    walk, ended = Walk(log), False
    while not ended:
        with one_snapshot():  # of each piece, not of the whole: a log of millions takes minutes
            walk.log = Log.objects.filter(pk=log.pk).first() or log
            found = _piece(walk, walk.log.size)
            if ended := walk.position >= walk.log.size:
                found += _end(walk)
        yield from found
    last: UUID | None = None
    more = True
    while more:
        found, last, more = rows.unlisted_facts(log.pk, last, None)
        yield from found
    yield from rows.wrong_pending(log.pk)


def _piece(walk: Walk, stop: int) -> list[Finding]:
    """The next leaves, in a snapshot: whatever is held against something else was read at the same moment."""
    found = walk.go_on(stop)
    return [
        *found,
        *rows.broken_pairs(walk.tenant_id, walk.pairs),
        *rows.wrong_commitments(walk.tenant_id, walk.pairs),
        *missing_values(walk.tenant_id, walk.committed),
    ]


def _end(walk: Walk) -> list[Finding]:
    """In the same snapshot as the last piece."""
    return ends.wrong_at_the_end(walk) + (against_kept() if walk.tenant_id == GLOBAL_LOG else [])


# The passes.


def begin_passes() -> int:
    """A continuous pass for each log that has none; returns how many were begun."""
    running = Verification.objects.filter(asked_by="", state=VerificationState.RUNNING).values("tenant_id")
    return sum(_begin(tenant_id) for tenant_id in Log.objects.exclude(pk__in=running).values_list("pk", flat=True))


def _begin(tenant_id: UUID) -> bool:
    try:
        with transaction.atomic():
            Verification.objects.create(tenant_id=tenant_id, begun_at=database_now())
    except IntegrityError:  # another keeper was faster
        return False
    return True


def advance_next() -> Verification | None:
    """One piece of what is due, those that somebody waits for first; None when nothing is."""
    now = database_time()
    due = Verification.objects.filter(Q(lease_until=None) | Q(lease_until__lte=now), state=VerificationState.RUNNING)
    for row in due.order_by(F("asked_by").desc(), F("lease_until").asc(nulls_first=True), "id")[:20]:
        until = now + CLAIMED_FOR
        mine = Verification.objects.filter(pk=row.pk, state=VerificationState.RUNNING, lease_until=row.lease_until)
        if mine.update(lease_until=until, checker=PROCESS, tries=F("tries") + 1, stopped_by=""):
            row.lease_until = until
            try:
                advance(row)
            except Exception as error:
                _note_failure(row, error)
                raise
            return row
    return None


def _note_failure(row: Verification, error: Exception) -> None:
    """It is tried again soon. Who looks is told when that has been in vain a few times (:mod:`evidence.checking.alarms`)."""
    mine = Verification.objects.filter(pk=row.pk, lease_until=row.lease_until)
    with contextlib.suppress(DatabaseError):  # the error that is raised says the same
        mine.update(stopped_by=type(error).__name__[:64], lease_until=timezone.now() + AGAIN_AFTER)


@dataclass(slots=True)
class Look:
    """What one piece of a verification came to. ``again``: after how long it goes on, unless at once."""

    found: list[Finding]
    ends: bool = False
    again: timedelta | None = None


def advance(row: Verification) -> None:
    """One piece of a claimed verification."""
    with one_snapshot():
        look = _look(row)
    row.tries = 0
    _note(row, look.found, end=look.ends, again=look.again)


def _look(row: Verification) -> Look:
    log = Log.objects.filter(pk=row.tenant_id).first()
    if log is None:
        return Look([Finding(Wrong.LOG_WRONG, None, "missing")], again=AGAIN_AFTER)
    stop = log.size if row.stop is None else row.stop
    if row.position > log.size or stop > log.size:
        return Look([Finding(Wrong.ROLLED_BACK, None, f"{log.size} leaves, and {row.position} were seen")], ends=True)
    try:
        walk = _walk(row, log)
    except Refused as error:  # no tiles to begin with
        return Look([Finding(Wrong.TILE_MISSING, row.position, str(error)[:200])], ends=True)
    before, found = walk.position, _piece(walk, stop)
    _verified.add(walk.position - before)
    row.position, row.frontier = walk.position, walk.state
    row.checkpoints += walk.checkpoints
    if walk.position < stop:
        return Look(found)
    if walk.position == log.size:
        found += _end(walk)
    settled = _newest_settled() if not row.asked_by else None
    more = False
    if row.start == 0:
        lost, row.last_fact_id, more = rows.unlisted_facts(log.pk, row.last_fact_id, settled)
        found += [*lost, *rows.wrong_pending(log.pk)]
    row.checked_at = timezone.now()
    ended = row.checked_at - row.begun_at >= timedelta(hours=settings.TOOLHUB_VERIFY_EVERY_HOURS)
    return Look(found, ends=not more and (bool(row.asked_by) or ended), again=None if more else AGAIN_AFTER)


def _walk(row: Verification, log: Log) -> Walk:
    if row.position == row.start and row.start:
        return Walk.begun_at(log, row.start)
    return Walk(log, position=row.position, state=bytes(row.frontier))


def _newest_settled() -> UUID:
    """The first id of that time: ids begin with the milliseconds since 1970."""
    newest = new_id()
    ms = int((database_time() - SETTLED_AFTER).timestamp() * 1000)
    return type(newest)(int=ms << 80)


@transaction.atomic
def _note(row: Verification, found: Iterable[Finding], *, end: bool = False, again: timedelta | None = None) -> None:
    """Write down how far it is and what was found, unless another keeper has taken it meanwhile."""
    mine = Verification.objects.filter(pk=row.pk, lease_until=row.lease_until, state=VerificationState.RUNNING)
    new, codes = _new_findings(row, found), {each["code"] for each in row.findings}
    row.found += len(new)
    row.findings = [*row.findings, *new][:MOST_FINDINGS]
    indexes = [each["index"] for each in row.findings if each["index"] is not None]
    row.first_bad = min(indexes, default=None)
    now = database_time()
    if end:
        row.state = VerificationState.FAILED if row.found else VerificationState.PASSED
        row.finished_at = now
    changes = ("position", "frontier", "checkpoints", "last_fact_id", "checked_at", "found", "findings", "first_bad")
    values = {name: getattr(row, name) for name in (*changes, "tries", "state", "finished_at")}
    if new:
        values |= {"found_at": database_now(), "closed_by": None}
    if not mine.update(**values, lease_until=now + again if again and not end else None):
        return
    for each in new:
        _found.add(1, {"code": str(each["code"])})
    if new:
        logger.error("%s: %s things are wrong, the first at leaf %s", row, row.found, row.first_bad)
    if {each["code"] for each in new} - codes:  # another kind of damage is news, though the log was damaged before
        _witness(row, Kind.VERIFICATION_FAILED)
    elif end and not row.found:
        _witness(row, Kind.VERIFICATION_PASSED)
        if row.is_whole:
            _close_others(row)


def _new_findings(row: Verification, found: Iterable[Finding]) -> list[dict[str, Any]]:
    known = {(each["code"], each["index"], each["detail"]) for each in row.findings}
    new = {(str(each.code), each.index, each.detail): each.to_json() for each in found}
    return [said for key, said in new.items() if key not in known]


def _close_others(row: Verification) -> None:
    """All of the log was looked at and nothing found: what was found before that began is not there, or not any more."""
    bad = Verification.objects.filter(tenant_id=row.tenant_id, found__gt=0, closed_by=None, found_at__lt=row.begun_at)
    for each in bad:
        if each.state == VerificationState.RUNNING and not each.asked_by:  # the next pass begins with none of it
            each.state, each.finished_at, each.lease_until = VerificationState.FAILED, timezone.now(), None
        each.closed_by = row
        each.save(update_fields=["state", "finished_at", "lease_until", "closed_by"])
        _witness(each, Kind.VERIFICATION_CLOSED, by=row.wire_id)


def note_findings(tenant_id: UUID, found: list[Finding]) -> None:
    """Add what was found otherwise to the running pass of a log."""
    if not found:
        return
    row = Verification.objects.filter(tenant_id=tenant_id, asked_by="", state=VerificationState.RUNNING).first()
    if row is None:
        _begin(tenant_id)
        row = Verification.objects.get(tenant_id=tenant_id, asked_by="", state=VerificationState.RUNNING)
    if _new_findings(row, found):
        _note(row, found, again=timedelta())


def _witness(row: Verification, kind: Kind, **more: str) -> Fact:
    """Of the global log, which has no facts, in the hub's own."""
    owner = NO_TENANT if row.tenant_id == GLOBAL_LOG else row.tenant_id
    data: dict[str, object] = {
        "log": Log.objects.filter(pk=row.tenant_id).values_list("origin", flat=True).first() or ""
    }
    data |= {"from": row.start, "to": row.position, "checkpoints": row.checkpoints}
    if row.found:
        data |= {"codes": sorted({each["code"] for each in row.findings}), "first_bad": row.first_bad}
    return evidence.record(
        kind=kind, subject=row.wire_id, actor=Principal.system("verifier", tenant_id=owner), data=data | more
    )
