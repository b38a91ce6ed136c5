"""Alarms: what somebody must look into, because the evidence is not as it should be or has fallen silent.

Asked when a page is shown and before a message is sent, and kept nowhere: an alarm is there as long as what it tells of.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import gettext, gettext_lazy

from evidence.integrity.findings import GRAVITY, FindingCode, finding_key
from evidence.log.state import SEALED_WITHIN, SIGNED_WITHIN, log_state
from evidence.models import GLOBAL_LOG, Verification, VerificationState
from evidence.witnesses.anchors import load_anchor_statuses
from kernel.database.connections import database_time
from kernel.database.tenancy import NO_TENANT, hub_wide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.utils.functional import _StrPromise

    from kernel.principal import Principal

DAMAGED, STUCK, ANCHOR = "damaged", "stuck", "anchor"
NOT_SEALED, NOT_SIGNED, NOT_VERIFIED = "not_sealed", "not_signed", "not_verified"
METERED = "metered"
MOST_TRIES = 3
SUBJECT_LETTERS = 128
TITLES: dict[str, str | _StrPromise] = {
    DAMAGED: gettext_lazy("The log does not verify"),
    STUCK: gettext_lazy("The verifier cannot read the log"),
    ANCHOR: gettext_lazy("A witness does not agree, or is silent"),
    NOT_SEALED: gettext_lazy("Facts are not sealed"),
    NOT_SIGNED: gettext_lazy("No checkpoint was signed recently"),
    NOT_VERIFIED: gettext_lazy("The log was not verified recently"),
    METERED: gettext_lazy("A provider reports other figures than before"),
}
SILENT = {NOT_SEALED, NOT_SIGNED, NOT_VERIFIED}
VERIFIED_WITHIN = timedelta(hours=6)  # with many logs their turn comes round slowly


# What every tenant's evidence stands on: it concerns all, though it is no tenant's.
SHARED: dict[UUID, str | _StrPromise] = {
    GLOBAL_LOG: gettext_lazy("the log of checkpoints, which all tenants share"),
    NO_TENANT: gettext_lazy("the hub's own log"),
}
# What modules above this one watch over, by tenant; they say so when they are loaded.
SOURCES: list[Callable[[UUID], list[Alarm]]] = []


@dataclass(frozen=True, slots=True)
class Alarm:
    """``subject`` is the same for as long as the alarm is about the same thing: one is told of it once. ``log``: whose it is.

    ``place``: among alarms of a kind, the gravest is the first.
    """

    kind: str
    subject: str
    since: datetime
    said: str
    log: UUID
    verification: Verification | None = None
    place: int = 0

    @property
    def title(self) -> str:
        title = str(TITLES[self.kind])
        if self.log not in SHARED:
            return title
        return gettext("%(title)s: %(log)s") % {"title": title, "log": SHARED[self.log]}


def list_alarms(tenant_id: UUID) -> list[Alarm]:
    """What whoever looks after a tenant's evidence must know, the gravest first: of its own log, and of those that all share."""
    own = _alarms_of_log(tenant_id)
    told = {each.kind for each in own} & SILENT  # one keeper that stands still is one thing to be told of
    found = [*own, *(each for each in shared_alarms() if each.kind not in told)]
    found += [each for find in SOURCES for each in find(tenant_id)]
    return sorted(found, key=lambda each: (list(TITLES).index(each.kind), each.place))


def shared_alarms() -> list[Alarm]:
    """Of the logs of the hub, and of those who keep its checkpoints outside."""
    found: list[Alarm] = []
    with hub_wide():
        for log in SHARED:
            told = {each.kind for each in found} & SILENT
            found += [each for each in _alarms_of_log(log) if each.kind not in told]
    for each in load_anchor_statuses():
        if each.alarm:
            since = each.anchor.refused_at or each.anchor.anchored_at or database_time()
            subject = f"anchor {since:%Y-%m-%dT%H:%M:%S} {each.anchor.name}"[:SUBJECT_LETTERS]
            found.append(Alarm(ANCHOR, subject, since, f"{each.anchor.name}: {each.alarm}", GLOBAL_LOG))
    return found


def _alarms_of_log(log: UUID) -> list[Alarm]:
    found = _damages(log)
    row = find_stuck().filter(tenant_id=log).order_by("pk").first()
    if row is not None:
        said = gettext(
            "It has tried %(tries)s times to continue from leaf %(leaf)s. %(error)s See the keeper's own log for details."
        )
        values = {"tries": row.tries, "leaf": row.position, "error": f"{row.stopped_by}." if row.stopped_by else ""}
        found.append(Alarm(STUCK, f"stuck {row.wire_id}", row.checked_at or row.begun_at, said % values, log, row))
    state, now = log_state(log), database_time()
    if state.oldest and now - state.oldest > SEALED_WITHIN:
        said = gettext("Facts are waiting to be sealed. Is a keeper running?")
        found.append(Alarm(NOT_SEALED, f"pending {state.oldest:%Y-%m-%dT%H:%M:%S}", state.oldest, said, log))
    elif state.signed_at and now - state.signed_at > SIGNED_WITHIN:
        said = gettext("A log is signed again every few minutes even if nothing happens. Is a keeper running?")
        found.append(Alarm(NOT_SIGNED, f"signed {state.signed_at:%Y-%m-%dT%H:%M:%S}", state.signed_at, said, log))
    looked_at = last_looked_at(log)
    if looked_at and now - looked_at > VERIFIED_WITHIN:
        said = gettext(
            "The continuous verifier has not reached it for hours. Is a keeper running, and does it keep up?"
        )
        found.append(Alarm(NOT_VERIFIED, f"verified {looked_at:%Y-%m-%dT%H:%M:%S}", looked_at, said, log))
    return found


def _damages(log: UUID) -> list[Alarm]:
    """One for each verification that has found what none before it has: what is found day by day is one thing to be told of."""
    found, known = [], set()
    for row in find_damaged(log):
        news = [each for each in row.findings if finding_key(each) not in known]
        known |= {finding_key(each) for each in news}
        if news:
            codes = sorted({FindingCode(each["code"]) for each in news}, key=GRAVITY.index)
            subject = _subject_of(row, codes)
            place = GRAVITY.index(codes[0])
            since = row.found_at or row.begun_at
            found.append(Alarm(DAMAGED, subject, since, _sentence_of(codes[0], news), log, row, place))
    return found


def _subject_of(row: Verification, codes: Sequence[str]) -> str:
    """Another one for each set of codes, however many: of findings of another kind one is told, too."""
    subject = " ".join([row.wire_id, *codes])
    if len(subject) <= SUBJECT_LETTERS:
        return subject
    return f"{row.wire_id} {hashlib.sha256(subject.encode()).hexdigest()}"


def last_looked_at(tenant_id: UUID) -> datetime | None:
    """When the continuous verifier had to look into the log again at the latest; before its first look, when the pass was begun."""
    row = Verification.objects.filter(tenant_id=tenant_id, asked_by="", state=VerificationState.RUNNING).first()
    return None if row is None else row.lease_until or row.begun_at


def find_damaged(tenant_id: UUID) -> QuerySet[Verification]:
    """The verifications of a log whose findings stand, the oldest first: no later look at the whole log has closed them."""
    return Verification.objects.filter(tenant_id=tenant_id, found__gt=0, closed_by=None).order_by("pk")


def find_stuck() -> QuerySet[Verification]:
    """Verifications that have tried to go on a few times in vain, whatever the reason, of all logs."""
    failed = Q(tries__gte=MOST_TRIES) & ~Q(stopped_by="") | Q(tries__gt=MOST_TRIES)  # the second: keepers died in it
    return Verification.objects.filter(failed, state=VerificationState.RUNNING)


def verification_for(by: Principal, id: UUID) -> Verification:
    """One of the principal's tenant, or of a log that all tenants share."""
    with hub_wide():
        rows = Verification.objects.filter(tenant_id__in=[by.tenant_id, *SHARED])
        return rows.select_related("closed_by").get(pk=id)


def _sentence_of(code: FindingCode, findings: list[dict[str, Any]]) -> str:
    """The gravest thing that was found, and where."""
    indexes = [each["index"] for each in findings if each["code"] == code and each["index"] is not None]
    if not indexes:
        return str(code.label)
    return gettext("%(label)s First at leaf %(index)s.") % {"label": str(code.label), "index": min(indexes)}
