"""Outcome resolutions: who says what became of a call whose outcome nobody could know.

A run that was cut off leaves a call that ended as ``outcome_unknown``. Somebody who has looked where its effect would be says what
is the case. The End stays as it is; what was found out is a fact of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.reasons import StatedReason
from invocations.models import Invocation, Resolution, State
from kernel.observability.telemetry import read_trace_id
from kernel.problems import Conflict, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal

MIN_REASON = 10


def check_can_resolve(invocation: Invocation) -> None:
    if invocation.state != State.OUTCOME_UNKNOWN:
        raise Conflict(
            "The outcome of this call is known.",
            remedy="Nothing is to be done.",
            details={"state": invocation.state},
        )
    if invocation.resolution:
        raise Conflict(
            f"Somebody has said already that this call {SAID[Resolution(invocation.resolution)]}.",
            remedy="What was said stays; say in your own notes what you found since.",
            details={"resolution": invocation.resolution, "by": invocation.resolved_by},
        )


SAID = {Resolution.TOOK_EFFECT: "had its effect", Resolution.NO_EFFECT: "had no effect"}


@transaction.atomic
def resolve_outcome(*, invocation_id: UUID, resolution: str, reason: str, by: Principal) -> Invocation:
    """Say what a call has done whose outcome is unknown. One without an effect gives its idempotency key back, so that its caller
    can make the same call again.
    """
    invocation = Invocation.objects.visible_to(by).select_for_update(of=("self",)).get(pk=invocation_id)
    check_can_resolve(invocation)
    if resolution not in Resolution.values:
        raise SchemaInvalid.at("/resolution", "Say whether the call took effect: took_effect or no_effect.")
    if len(reason.strip()) < MIN_REASON:
        raise SchemaInvalid.at("/reason", f"Say how you know, in at least {MIN_REASON} characters.")
    invocation.resolution, invocation.resolved_by, invocation.resolved_at = resolution, by.id, datetime.now(UTC)
    changed = ["resolution", "resolved_by", "resolved_at"]
    if resolution == Resolution.NO_EFFECT:
        invocation.idempotency_key = ""
        changed.append("idempotency_key")
    invocation.save(update_fields=changed)
    evidence.record(
        kind=Kind.INVOCATION_RESOLVED,
        subject=invocation.wire_id,
        actor=by,
        invocation_id=invocation.pk,
        tool=invocation.tool,
        outcome=resolution,
        trace_id=read_trace_id(invocation.trace),
        data=StatedReason(reason=reason.strip()[:500]),
    )
    return invocation
