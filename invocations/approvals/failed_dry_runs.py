"""Failed dry runs: what somebody has seen fail, and approves nevertheless, takes a word of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from access.consents.signals import consent_approving
from access.models import Consent
from invocations.models import FINAL, Invocation, Origin, State

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.models import QuerySet


def compute_dry_run_request_id(consent: Consent) -> str:
    return f"dry-{consent.wire_id}"


def find_dry_run(consent: Consent) -> Invocation | None:
    """The newest dry run that somebody has made to decide on this request."""
    return _select_dry_runs([consent]).order_by("-pk").first()


def find_finished_dry_run(consent: Consent) -> Invocation | None:
    """The newest one that is over. What one said holds until another has said otherwise, so one under way hides nothing."""
    return _select_dry_runs([consent]).filter(state__in=FINAL).order_by("-pk").first()


def find_failed_dry_run(consent: Consent) -> Invocation | None:
    """The same, where it has not succeeded: the tool said no, or nothing came of it."""
    newest = find_finished_dry_run(consent)
    return newest if newest is not None and newest.state != State.SUCCEEDED else None


def find_those_that_failed_dry(consents: Iterable[Consent]) -> set[UUID]:
    """The requests among these of which :func:`find_failed_dry_run` finds one."""
    requests = {compute_dry_run_request_id(consent): consent for consent in consents}
    rows = _select_dry_runs(requests.values()).filter(state__in=FINAL).order_by("pk")
    newest = {row.request_id: row for row in rows.only("pk", "request_id", "state")}
    return {requests[id].pk for id, row in newest.items() if row.state != State.SUCCEEDED}


def _select_dry_runs(consents: Iterable[Consent]) -> QuerySet[Invocation]:
    """Those of these requests; each has a younger id than the request that it was made for."""
    found = list(consents)
    rows = Invocation.objects.filter(
        agent_id__in={consent.agent_id for consent in found},
        request_id__in=[compute_dry_run_request_id(consent) for consent in found],
        origin=Origin.SYSTEM,
        dry_run=True,
    )
    return rows.filter(pk__gt=min(consent.pk for consent in found)) if found else rows.none()


@receiver(consent_approving, sender=Consent)
def name_failed_dry_run(*, consent: Consent, **_: Any) -> str | None:
    failed = find_failed_dry_run(consent)
    return None if failed is None else failed.wire_id
