"""Verifier: how it gets along.

Piece by piece, each claimed with a compare-and-set, so that any number of keepers share the work and the next goes on where one was
killed. A pass without ``asked_by`` begins at the first leaf, follows its log, and after a day ends and is followed by another.
What is found is a fact in the transaction that notes it.
"""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F, Q

from evidence import services as evidence
from evidence.archives.leaves import ArchivedBundles, BundlesLacking
from evidence.integrity import log_tail, rows
from evidence.integrity.alarms import find_damaged
from evidence.integrity.commitments import missing_values, mistyped_values
from evidence.integrity.findings import FindingCode, IntegrityFinding, finding_key
from evidence.integrity.rollback_detection import continues_from, kept_note, verify_against_kept
from evidence.integrity.tree_walk import TreeWalk
from evidence.kinds import Kind
from evidence.leaves.base import ABSENT
from evidence.leaves.custody import VerificationResult
from evidence.models import GLOBAL_LOG, Fact, Log, Verification, VerificationState
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.problems import InvalidEvidence
from kernel import names
from kernel.database.connections import database_now, database_time, one_snapshot
from kernel.database.tenancy import NO_TENANT
from kernel.ids import new_id
from kernel.leases import renew_lease
from kernel.observability.telemetry import PROCESS, get_meter
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from uuid import UUID

T = TypeVar("T")
logger = logging.getLogger("toolhub.verifier")
CLAIMED_FOR = timedelta(minutes=2)
AGAIN_AFTER = timedelta(seconds=20)  # at the end of its log, until there is more
MOST_FINDINGS = 100  # of each code are listed, the first ones
SETTLED_AFTER = timedelta(minutes=5)  # by then a fact is in the log, or waits in vain
MOST_RACES = 10  # lost against keepers, one after another

_found = get_meter().create_counter(names.METRIC_FINDINGS, description="What the verifier found wrong with logs")
_verified = get_meter().create_counter(names.METRIC_VERIFIED, description="Leaves that the verifier has read")


def offer_counters() -> None:
    """Have the counters there before there is anything to count: what appears with its first finding has not increased."""
    _verified.add(0)
    for code in FindingCode:
        _found.add(0, {"code": str(code)})


def verify_whole(log: Log) -> Iterator[IntegrityFinding]:
    """All of a log in one go, noting nothing: for the command and for tests.

    Raises :class:`ArchivedFactUnavailable` at the end, when all else was looked at, if the archive did not answer for some leaves.
    """
    walk, ended = TreeWalk(log), False
    while not ended:
        kept = kept_note() if log.pk == GLOBAL_LOG else ""
        found, ended = _look_at_once(log.pk, partial(_go_on, walk, kept))
        yield from found
    last: UUID | None = None
    more = True
    while more:
        found, last, more = rows.unlisted_facts(log.pk, last, None)
        yield from found
    yield from rows.wrong_pending(log.pk)
    if walk.unread:
        raise ArchivedFactUnavailable(f"The archive does not answer; {walk.unread} leaves were not verified.")


def _look_at_once(tenant_id: UUID, look: Callable[[ArchivedBundles], T]) -> T:
    """Look at a piece in one snapshot: whatever is held against something else was read at the same moment. Of each piece, not of the
    whole: a log of millions takes minutes. No snapshot stays open while an archive takes its time.
    """
    archive = ArchivedBundles(tenant_id)
    while True:
        try:
            with one_snapshot():
                return look(archive)
        except BundlesLacking:
            archive.read_lacking()


def _go_on(walk: TreeWalk, kept: str, archive: ArchivedBundles) -> tuple[list[IntegrityFinding], bool]:
    """What the next piece of a log has, and whether it is the last one."""
    walk.log = Log.objects.filter(pk=walk.tenant_id).first() or walk.log
    found = _piece(walk, walk.log.size, archive)
    ended = walk.position >= walk.log.size
    return [*found, *(_end(walk, kept) if ended else [])], ended


def _piece(walk: TreeWalk, stop: int, archive: ArchivedBundles) -> list[IntegrityFinding]:
    found = walk.go_on(stop, archive)
    return [
        *found,
        *rows.broken_pairs(walk.tenant_id, walk.pairs),
        *rows.wrong_commitments(walk.tenant_id, walk.pairs, _suspects(walk.tenant_id), archive),
        *missing_values(walk.tenant_id, walk.committed, archive),
        *mistyped_values(walk.tenant_id, walk.committed),
    ]


def _suspects(tenant_id: UUID) -> rows.Suspects:
    listed: set[int] = set()
    complete = True
    for row in find_damaged(tenant_id):
        wrong = {each["index"] for each in row.findings if each["code"] == FindingCode.COMMITMENT_WRONG}
        complete = complete and not (wrong and row.found > len(row.findings))
        listed |= wrong
    return rows.Suspects(frozenset(listed), complete)


def _end(walk: TreeWalk, kept: str) -> list[IntegrityFinding]:
    """In the same snapshot as the last piece. ``kept``: what the file had before that began."""
    return log_tail.verify_log_tail(walk) + (verify_against_kept(kept) if walk.tenant_id == GLOBAL_LOG else [])


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
                advance_verification(row)
            except Exception as error:
                _note_failure(row, error)
                raise
            return row
    return None


def _note_failure(row: Verification, error: Exception) -> None:
    """It is tried again soon. Who looks is told when that has been in vain a few times (:mod:`evidence.integrity.alarms`)."""
    mine = Verification.objects.filter(pk=row.pk, lease_until=row.lease_until)
    with contextlib.suppress(DatabaseError):  # the error that is raised says the same
        mine.update(stopped_by=type(error).__name__[:64], lease_until=database_time() + AGAIN_AFTER)


@dataclass(slots=True)
class PieceResult:
    """What one piece of a verification came to. ``at_end``: what is asked again with each look at the end of the log.

    ``again``: after how long it goes on, unless at once. ``unread``: leaves for which the archive did not answer; it goes on at the
    piece with them.
    """

    found: list[IntegrityFinding]
    at_end: list[IntegrityFinding] = field(default_factory=list)
    ends: bool = False
    again: timedelta | None = None
    unread: int = 0


def advance_verification(row: Verification) -> None:
    """One piece of a claimed verification."""
    kept = kept_note() if row.tenant_id == GLOBAL_LOG else ""
    with renew_lease(lambda: _renew(row), every_s=CLAIMED_FOR.total_seconds() / 4):
        look = _look_at_once(row.tenant_id, partial(_look, row, kept))
    row.tries = row.tries + 1 if look.unread else 0
    row.stopped_by = ArchivedFactUnavailable.__name__ if look.unread else ""
    if look.unread:
        logger.warning("%s stands at leaf %s: the archive does not answer for %s", row, row.position, look.unread)
    _note(row, look.found, look.at_end, end=look.ends, again=look.again)


def _renew(row: Verification) -> bool:
    """Its lease says whose it is: nobody else of this process writes the row meanwhile."""
    until = database_time() + CLAIMED_FOR
    mine = Verification.objects.filter(pk=row.pk, state=VerificationState.RUNNING, lease_until=row.lease_until)
    if not mine.update(lease_until=until):
        return False
    row.lease_until = until
    return True


def _look(row: Verification, kept: str, archive: ArchivedBundles) -> PieceResult:
    log = Log.objects.filter(pk=row.tenant_id).first()
    if log is None:
        return PieceResult([], [IntegrityFinding(FindingCode.LOG_WRONG, None, "missing")], again=AGAIN_AFTER)
    stop = log.size if row.stop is None else row.stop
    if row.position > log.size or stop > log.size:
        return PieceResult([_rolled_back(row, log)], ends=True)
    try:
        walk = _walk(row, log)
    except InvalidEvidence as error:  # no tiles to begin with
        return PieceResult([IntegrityFinding(FindingCode.TILE_MISSING, row.position, str(error)[:200])], ends=True)
    before, found = walk.position, _piece(walk, stop, archive)
    if walk.unread:
        return PieceResult([], found, again=AGAIN_AFTER, unread=walk.unread)
    _verified.add(walk.position - before)
    row.position, row.frontier = walk.position, walk.state
    row.checkpoints += walk.checkpoints
    if walk.position < stop:
        return PieceResult(found)
    at_end = _end(walk, kept) if walk.position == log.size else []
    settled = _newest_settled() if not row.asked_by else None
    more = False
    if row.start == 0:
        lost, row.last_fact_id, more = rows.unlisted_facts(log.pk, row.last_fact_id, settled)
        found += lost
        at_end += rows.wrong_pending(log.pk)
    row.checked_at = database_time()
    ended = row.checked_at - row.begun_at >= timedelta(hours=settings.TOOLHUB_VERIFY_EVERY_HOURS)
    ends_now = not more and (bool(row.asked_by) or ended)
    return PieceResult(found, at_end, ends=ends_now, again=None if more else AGAIN_AFTER)


def _rolled_back(row: Verification, log: Log) -> IntegrityFinding:
    """With what was seen, so that a later look can tell whether the log goes on from there."""
    if row.position > log.size:
        walk = TreeWalk(log, position=row.position, state=bytes(row.frontier))
        seen = row.position, (walk.tiled or walk.made).root().hex()
        return IntegrityFinding(FindingCode.ROLLED_BACK, None, f"{row.position} leaves were seen", seen)
    return IntegrityFinding(FindingCode.ROLLED_BACK, None, f"{row.stop} leaves were there")


def _walk(row: Verification, log: Log) -> TreeWalk:
    if row.position == row.start and row.start:
        return TreeWalk.begun_at(log, row.start)
    return TreeWalk(log, position=row.position, state=bytes(row.frontier))


def _newest_settled() -> UUID:
    """The first id of that time: ids begin with the milliseconds since 1970."""
    newest = new_id()
    ms = int((database_time() - SETTLED_AFTER).timestamp() * 1000)
    return type(newest)(int=ms << 80)


@transaction.atomic
def _note(
    row: Verification,
    found: Sequence[IntegrityFinding],
    at_end: Sequence[IntegrityFinding] = (),
    *,
    end: bool = False,
    again: timedelta | None = None,
) -> bool:
    """Write down how far it is and what was found; false if another keeper has taken it meanwhile, which finds the same."""
    mine = Verification.objects.filter(pk=row.pk, lease_until=row.lease_until, state=VerificationState.RUNNING)
    listed = Counter(each["code"] for each in row.findings)
    new = _new_findings(row, found, at_end)
    row.found += len(new)
    row.findings = [*row.findings, *_first_of_each_code(new, Counter(listed))]
    indexes = [each["index"] for each in (*row.findings, *new) if each["index"] is not None]
    row.first_bad = min([*indexes, *([] if row.first_bad is None else [row.first_bad])], default=None)
    now = database_time()
    if end:
        row.state = VerificationState.FAILED if row.found else VerificationState.PASSED
        row.finished_at = now
    changes = ("position", "frontier", "checkpoints", "last_fact_id", "checked_at", "found", "findings", "first_bad")
    values = {name: getattr(row, name) for name in (*changes, "tries", "stopped_by", "state", "finished_at")}
    if new:
        values |= {"found_at": database_now(), "closed_by": None}
    if not mine.update(**values, lease_until=now + again if again and not end else None):
        if new and not Verification.objects.filter(pk=row.pk, state=VerificationState.RUNNING).exists():
            note_findings(row.tenant_id, [*found, *at_end])  # closed meanwhile: nobody looks at this piece again
        return False
    for each in new:
        _found.add(1, {"code": str(each["code"])})
    if new:
        logger.error("%s: %s things are wrong, the first at leaf %s", row, row.found, row.first_bad)
    if any(each["code"] not in listed for each in new):  # another kind is news, though the log was damaged before
        _witness(row, Kind.VERIFICATION_FAILED)
    elif end and not row.found:
        _witness(row, Kind.VERIFICATION_PASSED)
        if row.is_whole:
            _close_others(row)
    return True


def _new_findings(
    row: Verification, found: Iterable[IntegrityFinding], at_end: Iterable[IntegrityFinding] = ()
) -> list[dict[str, Any]]:
    """What was not found before. Of a code of which no more are listed, what ``at_end`` has may be known, and is not counted."""
    known, listed = {finding_key(each) for each in row.findings}, Counter(each["code"] for each in row.findings)
    asked_again = [each for each in at_end if listed[str(each.code)] < MOST_FINDINGS]
    new: dict[tuple[str, int | None, str], dict[str, Any]] = {}
    for each in (*found, *asked_again):
        said = each.to_json()
        new.setdefault(finding_key(said), said)
    return [said for key, said in new.items() if key not in known]


def _first_of_each_code(new: Iterable[dict[str, Any]], listed: Counter[str]) -> Iterator[dict[str, Any]]:
    for each in new:
        listed[each["code"]] += 1
        if listed[each["code"]] <= MOST_FINDINGS:
            yield each


def _close_others(row: Verification) -> None:
    """All of the log was looked at and nothing found: what was found before that began is not there, or not any more."""
    for each in find_damaged(row.tenant_id).filter(found_at__lt=row.begun_at):
        if not row.asked_by and not _goes_on(each):
            continue
        # Only as it was read: what another keeper has found meanwhile, this look has not asked.
        same = Verification.objects.filter(pk=each.pk, closed_by=None, found_at=each.found_at, state=each.state)
        changes: dict[str, Any] = {"closed_by": row}
        if each.state == VerificationState.RUNNING and not each.asked_by:  # the next pass begins with none of it
            changes |= {"state": VerificationState.FAILED, "finished_at": database_time(), "lease_until": None}
        if same.update(**changes):
            _witness(each, Kind.VERIFICATION_CLOSED, by=row.wire_id)


def _goes_on(row: Verification) -> bool:
    """Whether the log has again all that a roll-back took. When it was put back for good, that is for people to say: they ask."""
    gone = [each.get("seen") for each in row.findings if each["code"] == FindingCode.ROLLED_BACK]
    if not gone:
        return True
    with one_snapshot():
        log = Log.objects.filter(pk=row.tenant_id).first()
        return log is not None and all(seen and continues_from(log, seen[0], bytes.fromhex(seen[1])) for seen in gone)


def note_findings(tenant_id: UUID, found: list[IntegrityFinding]) -> None:
    """Add what was found otherwise to the running pass of a log: nobody finds it again, so a lost race is run again."""
    if not found:
        return
    for _ in range(MOST_RACES):
        row = Verification.objects.filter(tenant_id=tenant_id, asked_by="", state=VerificationState.RUNNING).first()
        if row is None:
            _begin(tenant_id)
        elif not _new_findings(row, (), found) or _note(row, (), found, again=timedelta()):
            return
    codes = ", ".join(sorted({str(each.code) for each in found}))
    logger.error("What was found could not be noted, keepers were faster %s times: %s", MOST_RACES, codes)


def _witness(row: Verification, kind: Kind, *, by: str | None = None) -> Fact:
    """Of the global log, which has no facts, in the hub's own."""
    owner = NO_TENANT if row.tenant_id == GLOBAL_LOG else row.tenant_id
    data = VerificationResult(
        log=Log.objects.filter(pk=row.tenant_id).values_list("origin", flat=True).first() or "",
        from_=row.start,
        to=row.position,
        checkpoints=row.checkpoints,
        codes=sorted({each["code"] for each in row.findings}) if row.found else None,
        first_bad=row.first_bad if row.found else ABSENT,
        by=by,
    )
    return evidence.record(
        kind=kind, subject=row.wire_id, actor=Principal.system("verifier", tenant_id=owner), data=data
    )
