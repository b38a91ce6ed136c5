"""Open calls: those that have begun and not ended.

The verifier of the evidence asks: a Begin without its End is right for a call that goes on, and a finding for any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from evidence.integrity.signals import calls_without_end, which_are_erased, which_are_open
from evidence.integrity.state import OpenCall
from evidence.models import Fact
from invocations.agent_runs.models import AgentRun
from invocations.chains.models import Chain
from invocations.models import Invocation, State
from invocations.unfinished_calls.models import build_unfinished_filter

if TYPE_CHECKING:
    from uuid import UUID

LISTED = 20
COUNTED = 10_000


@receiver(which_are_open, sender=Fact)
def filter_open_calls(*, tenant_id: UUID, invocation_ids: set[UUID], **_: Any) -> set[UUID]:
    rows = Invocation.objects.filter(tenant_id=tenant_id, pk__in=invocation_ids, finished_at=None)
    return set(rows.values_list("pk", flat=True))


@receiver(which_are_erased, sender=Fact)
def filter_erased_calls(*, tenant_id: UUID, ids: set[UUID], **_: Any) -> set[UUID]:
    erased = {"tenant_id": tenant_id, "pk__in": ids, "values_key__destroyed_at__isnull": False}
    return {
        pk
        for model in (Invocation, Chain, AgentRun)
        for pk in model.objects.filter(**erased).values_list("pk", flat=True)
    }


@receiver(calls_without_end, sender=Fact)
def list_open_calls(*, tenant_id: UUID, **_: Any) -> tuple[int, list[OpenCall]]:
    """How many, up to a limit, and the oldest of them. One that waits for a person is among the approvals."""
    rows = Invocation.objects.filter(
        build_unfinished_filter(state__in=[State.QUEUED, State.RUNNING]), tenant_id=tenant_id
    )
    found = rows.order_by("pk").values_list("pk", "tool", "state", "created_at")[:LISTED]
    return len(rows.values_list("pk")[:COUNTED]), [OpenCall(*row) for row in found]
