"""Failed dry runs: what somebody has seen fail, and approves nevertheless, takes a word of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from access.consents.signals import consent_approving
from access.models import Consent
from invocations.models import Invocation, Origin, State

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


def compute_dry_run_request_id(consent: Consent) -> str:
    return f"dry-{consent.wire_id}"


def find_dry_run(consent: Consent) -> Invocation | None:
    """The newest dry run that somebody has made to decide on this request. Its id is younger than the request's."""
    rows = Invocation.objects.filter(agent_id=consent.agent_id, pk__gt=consent.pk, origin=Origin.SYSTEM)
    return rows.filter(request_id=compute_dry_run_request_id(consent), dry_run=True).order_by("-pk").first()


def find_failed_dry_run(consent: Consent) -> Invocation | None:
    """The same, where it is over and has not succeeded: the tool said no, or nothing came of it."""
    newest = find_dry_run(consent)
    return newest if newest is not None and newest.is_final and newest.state != State.SUCCEEDED else None


def find_those_that_failed_dry(consents: Iterable[Consent]) -> set[UUID]:
    """The requests among these whose newest dry run is over and has not succeeded."""
    requests = {compute_dry_run_request_id(consent): consent for consent in consents}
    rows = Invocation.objects.filter(
        agent_id__in={consent.agent_id for consent in requests.values()},
        request_id__in=requests,
        origin=Origin.SYSTEM,
        dry_run=True,
    ).order_by("pk")
    newest = {row.request_id: row for row in rows.only("pk", "request_id", "state")}
    return {requests[id].pk for id, row in newest.items() if row.is_final and row.state != State.SUCCEEDED}


@receiver(consent_approving, sender=Consent)
def name_failed_dry_run(*, consent: Consent, **_: Any) -> str | None:
    failed = find_failed_dry_run(consent)
    return None if failed is None else failed.wire_id
