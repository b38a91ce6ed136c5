"""Erasures: how a person is forgotten without breaking the proof.

The wish is a row and a fact. A keeper first ends what goes on for the person, then destroys the key that all of the person's values
are under: from that commit nothing can be read, whatever else remains. After it the rows go in batches, each in a transaction of
its own, so an erasure that was interrupted goes on. Facts stay: they hold salted commitments, and the salts are gone.
"""

from __future__ import annotations

import logging
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from django.core import signing
from django.db import DatabaseError, IntegrityError, connection, transaction

from evidence import services as evidence
from evidence.erasures.free_text import (
    PersonNames,
    SealedMentions,
    check_names,
    check_names_nobody,
    count_mentions,
    forget_mentions,
)
from evidence.erasures.holders import HOLDERS, ErasureSubject, count_holdings
from evidence.exports.jobs import forget_opened_exports
from evidence.keys.subject_keys import destroy_key
from evidence.kinds import Kind
from evidence.leaves.custody import AskedErasure, FinishedErasure
from evidence.models import Erasure, ErasureState, Snapshot
from evidence.problems import ErasureNotConfirmed, RevealReasonTooShort
from kernel.database.connections import database_time, release_connection
from kernel.database.overwritten_pages import drop_overwritten_pages, note_removal
from kernel.ids import encode, new_id
from kernel.loops import Rest, repeat_work
from kernel.principal import Principal
from kernel.problems import Conflict, Problem, SchemaInvalid

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from uuid import UUID

log = logging.getLogger("toolhub.erasure")
EVERY_S = 2.0
PATIENCE = timedelta(seconds=60)  # for calls that are being ended; what they return later is not kept
BATCH = 500
SALT = "evidence.erasure"
CONFIRM_S = 900
MAX_USER_ID = 128
MAX_NAMES = 10
TEXTS = "texts"


def subject_of_user(user_id: str, *, tenant_id: UUID) -> str:
    """As calls name their person: a keyed hash within the tenant."""
    if not 0 < len(user_id) <= MAX_USER_ID:
        raise SchemaInvalid.at("/user_id", "Name the person by the `user_id` that callers send.")
    return evidence.compute_fingerprint(user_id.encode(), tenant_id=tenant_id)


def preview_erasure(*, user_id: str, by: Principal, names: Sequence[str] = ()) -> tuple[Counter[str], str]:
    """What an erasure would concern, and the word that confirms it; nothing is changed. ``names``: what else people write of them."""
    subject = subject_of_user(user_id, tenant_id=by.tenant_id)
    check_names(names)
    mentions = count_mentions(PersonNames([user_id, subject, *names]), tenant_id=by.tenant_id)
    found = count_holdings(ErasureSubject(by.tenant_id, subject)) + Counter({TEXTS: mentions})
    return found, signing.dumps(_looked_at(subject, names, by), salt=SALT)


def _looked_at(subject: str, names: Sequence[str], by: Principal) -> list[str]:
    """What the word of a preview stands for; of names only a keyed hash."""
    return [str(by.tenant_id), subject, evidence.compute_fingerprint("\0".join(names).encode(), tenant_id=by.tenant_id)]


def check_confirmed(confirm: str, *, subject: str, names: Sequence[str], by: Principal) -> None:
    try:
        said = signing.loads(confirm, salt=SALT, max_age=CONFIRM_S)
    except signing.BadSignature:
        said = None
    if said != _looked_at(subject, names, by):
        raise ErasureNotConfirmed()


def erase_subject(*, user_id: str, reason: str, confirm: str, by: Principal, names: Sequence[str] = ()) -> Erasure:
    """Have a person forgotten. ``confirm``: from :func:`preview_erasure`, so that nobody erases what they have not looked at.

    Texts that name the person go here: the names are in no row that a keeper could read later.
    """
    subject = subject_of_user(user_id, tenant_id=by.tenant_id)
    named = PersonNames([user_id, subject, *names])
    if len(reason.strip()) < evidence.MIN_REASON:
        raise RevealReasonTooShort()
    check_names_nobody(reason, named)
    check_confirmed(confirm, subject=subject, names=names, by=by)
    sealed = SealedMentions(named, tenant_id=by.tenant_id)
    sealed.look()
    asked = _ask(subject, named, sealed, reason=reason.strip(), by=by)
    note_removal()
    return asked


@transaction.atomic
def _ask(subject: str, named: PersonNames, sealed: SealedMentions, *, reason: str, by: Principal) -> Erasure:
    concerns = count_holdings(ErasureSubject(by.tenant_id, subject))
    id = new_id()
    wire_id = encode("era", id)
    texts = +Counter({TEXTS: forget_mentions(named, sealed, tenant_id=by.tenant_id, erasure=wire_id)})
    try:
        with transaction.atomic():
            erasure = Erasure.objects.create(
                id=id,
                tenant_id=by.tenant_id,
                subject=subject,
                reason=reason[:500],
                asked_by=by.id,
                asked_at=database_time(),
                counts=texts,
            )
    except IntegrityError as error:
        raise Conflict("This person is being erased already.", remedy="Look at the list of erasures.") from error
    evidence.record(
        kind=Kind.ERASURE_ASKED,
        subject=erasure.wire_id,
        actor=by,
        data=AskedErasure(concerns=dict(concerns + texts), names_words=True),
    )
    return erasure


# The keeper's part.


def _who(erasure: Erasure) -> ErasureSubject:
    return ErasureSubject(erasure.tenant_id, erasure.subject, erasure.key, erasure.wire_id)


def _system(erasure: Erasure) -> Principal:
    return Principal.system("erasure", tenant_id=erasure.tenant_id)


def advance_erasure(erasure_id: UUID) -> bool:
    """The next step of an erasure; false when there is none, or not yet."""
    erasure = Erasure.objects.select_related("key").get(pk=erasure_id)
    if erasure.state == ErasureState.ASKED:
        open_ones = [_end_open(number, erasure) for number in range(len(HOLDERS))]
        if any(open_ones) and database_time() < erasure.asked_at + PATIENCE:
            return False
    goes_on = _step(erasure_id)
    note_removal()
    return goes_on


def _end_open(number: int, erasure: Erasure) -> bool:
    try:
        return HOLDERS[number].end_open(_who(erasure), by=_system(erasure))
    except Problem as problem:  # somebody else has ended it at this moment
        log.info("%s: %s", erasure.wire_id, problem.reason)
        return True


@transaction.atomic
def _step(erasure_id: UUID) -> bool:
    """One keeper at a time: the row is locked, and a keeper that finds it locked leaves it alone."""
    rows = Erasure.objects.exclude(state=ErasureState.DONE)
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(skip_locked=True, of=("self",))
    erasure = rows.filter(pk=erasure_id).first()
    if erasure is None:
        return False
    if erasure.state == ErasureState.ASKED:
        _destroy(erasure)
    else:
        _remove(erasure)
    return erasure.state != ErasureState.DONE


def _destroy(erasure: Erasure) -> None:
    erasure.key = destroy_key(tenant_id=erasure.tenant_id, subject=erasure.subject)
    erasure.erased_at, erasure.state = erasure.key.destroyed_at, ErasureState.ERASING
    erasure.save(update_fields=["key", "erased_at", "state"])
    forget_opened_exports(erasure.tenant_id)
    evidence.record(kind=Kind.SUBJECT_ERASED, subject=erasure.wire_id, actor=_system(erasure), at=erasure.erased_at)


def _remove(erasure: Erasure) -> None:
    """The next batch. When nothing is left the person's hash goes from the erasure too."""
    gone = Counter[str]()
    for holder in HOLDERS:
        gone += holder.remove(_who(erasure), limit=BATCH)
    if not gone:
        left = Snapshot.objects.filter(subject_key=erasure.key).values("pk")[:BATCH]  # of replays and the like
        gone["values"] = Snapshot.objects.filter(pk__in=list(left.values_list("pk", flat=True))).delete()[0]
    erasure.counts = dict(Counter(erasure.counts) + gone)
    if not +gone:
        erasure.state, erasure.subject, erasure.finished_at = ErasureState.DONE, "", database_time()
        said = FinishedErasure(removed=erasure.counts, asked_by=erasure.asked_by, names_words=True)
        evidence.record(
            kind=Kind.ERASURE_FINISHED, subject=erasure.wire_id, actor=_system(erasure), outcome="succeeded", data=said
        )
    erasure.save(update_fields=["state", "subject", "finished_at", "counts"])


def advance_erasures() -> Rest | None:
    """Take every erasure as far as it goes now. One that cannot go on holds up no other. What is removed leaves the log of the
    database's file too: while somebody keeps it there, the next pass waits for no news.
    """
    for erasure_id in Erasure.objects.exclude(state=ErasureState.DONE).order_by("id").values_list("pk", flat=True):
        try:
            while advance_erasure(erasure_id):
                release_connection()
        except DatabaseError:
            raise
        except Exception:
            log.exception("%s goes on with the next pass", encode("era", erasure_id))
    return None if drop_overwritten_pages() else Rest(EVERY_S)


def run_erasures(stop: threading.Event) -> None:
    """Erase until told to stop."""
    repeat_work(advance_erasures, stop, every_s=EVERY_S, what="Erasures did not go on", log=log)
