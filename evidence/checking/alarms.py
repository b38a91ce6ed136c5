"""What must somebody look into, because the evidence is not what it should be, or because it has fallen silent?

Asked when a page is shown and before a message is sent, and kept nowhere: an alarm is there as long as what it tells of.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, gettext_lazy

from evidence.checking.findings import Wrong
from evidence.log.state import SEALED_WITHIN, SIGNED_WITHIN, log_state
from evidence.models import GLOBAL_LOG, Verification, VerificationState
from evidence.witnessing.anchors import anchors
from toolhub.kernel.tenancy import NO_TENANT, hub_wide

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.utils.functional import _StrPromise

    from toolhub.kernel.principal import Principal

DAMAGED, STUCK, ANCHOR = "damaged", "stuck", "anchor"
NOT_SEALED, NOT_SIGNED, NOT_VERIFIED = "not_sealed", "not_signed", "not_verified"
MOST_TRIES = 3
TITLES: dict[str, str | _StrPromise] = {
    DAMAGED: gettext_lazy("The log does not verify"),
    STUCK: gettext_lazy("The verifier cannot read the log"),
    ANCHOR: gettext_lazy("A witness does not agree, or is silent"),
    NOT_SEALED: gettext_lazy("Facts are not sealed"),
    NOT_SIGNED: gettext_lazy("No checkpoint was signed lately"),
    NOT_VERIFIED: gettext_lazy("The log was not verified lately"),
}
SILENT = {NOT_SEALED, NOT_SIGNED, NOT_VERIFIED}
VERIFIED_WITHIN = timedelta(hours=6)  # with many logs their turn comes round slowly


# What every tenant's evidence stands on: it concerns all, though it is no tenant's.
SHARED: dict[UUID, str | _StrPromise] = {
    GLOBAL_LOG: gettext_lazy("the log of checkpoints, which all tenants share"),
    NO_TENANT: gettext_lazy("the hub's own log"),
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """``subject`` is the same for as long as the alarm is about the same thing: one is told of it once. ``log``: whose it is."""

    kind: str
    subject: str
    since: datetime
    said: str
    log: UUID
    verification: Verification | None = None

    @property
    def title(self) -> str:
        title = str(TITLES[self.kind])
        if self.log not in SHARED:
            return title
        return gettext("%(title)s: %(log)s") % {"title": title, "log": SHARED[self.log]}


def alarms_of(tenant_id: UUID) -> list[Alarm]:
    """What whoever looks after a tenant's evidence must know, the gravest first: of its own log, and of those that all share."""
    own = _alarms_of_log(tenant_id)
    told = {each.kind for each in own} & SILENT  # one keeper that stands still is one thing to be told of
    found = [*own, *(each for each in shared_alarms() if each.kind not in told)]
    return sorted(found, key=lambda each: list(TITLES).index(each.kind))


def shared_alarms() -> list[Alarm]:
    """Of the logs of the hub, and of those who keep its checkpoints outside."""
    found: list[Alarm] = []
    with hub_wide():
        for log in SHARED:
            told = {each.kind for each in found} & SILENT
            found += [each for each in _alarms_of_log(log) if each.kind not in told]
    for each in anchors():
        if each.alarm:
            since = each.anchor.refused_at or each.anchor.anchored_at or timezone.now()
            subject = f"anchor {since:%Y-%m-%dT%H:%M:%S} {each.anchor.name}"[:128]
            found.append(Alarm(ANCHOR, subject, since, f"{each.anchor.name}: {each.alarm}", GLOBAL_LOG))
    return found


def _alarms_of_log(log: UUID) -> list[Alarm]:
    found = []
    row = damaged(log)
    if row is not None:
        found.append(Alarm(DAMAGED, row.wire_id, row.found_at or row.begun_at, sentence_of(row), log, row))
    row = stuck().filter(tenant_id=log).order_by("pk").first()
    if row is not None:
        said = gettext(
            "It has tried %(tries)s times to go on from leaf %(leaf)s. %(error)s The keeper's own log says more."
        )
        values = {"tries": row.tries, "leaf": row.position, "error": f"{row.stopped_by}." if row.stopped_by else ""}
        found.append(Alarm(STUCK, f"stuck {row.wire_id}", row.checked_at or row.begun_at, said % values, log, row))
    state, now = log_state(log), timezone.now()
    if state.oldest and now - state.oldest > SEALED_WITHIN:
        said = gettext("Facts wait to be sealed. Is a keeper running?")
        found.append(Alarm(NOT_SEALED, f"pending {state.oldest:%Y-%m-%dT%H:%M:%S}", state.oldest, said, log))
    elif state.signed_at and now - state.signed_at > SIGNED_WITHIN:
        said = gettext("A log is signed again every few minutes even if nothing happens. Is a keeper running?")
        found.append(Alarm(NOT_SIGNED, f"signed {state.signed_at:%Y-%m-%dT%H:%M:%S}", state.signed_at, said, log))
    looked_at = last_looked_at(log)
    if looked_at and now - looked_at > VERIFIED_WITHIN:
        said = gettext(
            "The continuous verifier has not come to it for hours. Is a keeper running, and does it keep up?"
        )
        found.append(Alarm(NOT_VERIFIED, f"verified {looked_at:%Y-%m-%dT%H:%M:%S}", looked_at, said, log))
    return found


def last_looked_at(tenant_id: UUID) -> datetime | None:
    """When the continuous verifier had to look into the log again at the latest; before its first look, when the pass was begun."""
    row = Verification.objects.filter(tenant_id=tenant_id, asked_by="", state=VerificationState.RUNNING).first()
    return None if row is None else row.lease_until or row.begun_at


def damaged(tenant_id: UUID) -> Verification | None:
    """The newest verification whose findings stand: no later look at the whole log has closed them."""
    return Verification.objects.filter(tenant_id=tenant_id, found__gt=0, closed_by=None).order_by("-pk").first()


def stuck() -> QuerySet[Verification]:
    """Verifications that have tried to go on a few times in vain, whatever the reason, of all logs."""
    failed = Q(tries__gte=MOST_TRIES) & ~Q(stopped_by="") | Q(tries__gt=MOST_TRIES)  # the second: keepers died in it
    return Verification.objects.filter(failed, state=VerificationState.RUNNING)


def verification_for(by: Principal, id: UUID) -> Verification:
    """One of the principal's tenant, or of a log that all tenants share."""
    with hub_wide():
        rows = Verification.objects.filter(tenant_id__in=[by.tenant_id, *SHARED])
        return rows.select_related("closed_by").get(pk=id)


def sentence_of(row: Verification) -> str:
    """The first thing that was found."""
    first = min(row.findings, key=lambda each: (each["index"] is None, each["index"] or 0))
    label = str(Wrong(first["code"]).label)
    if first["index"] is None:
        return label
    return gettext("%(label)s First at leaf %(index)s.") % {"label": label, "index": first["index"]}
