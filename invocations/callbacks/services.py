"""Callbacks: where an agent's calls may be told of, and which of them are.

A person sets up an endpoint and gives it a name; a call says the name. So no agent, and nobody who speaks through one, chooses
the address that the hub sends to. The message is written in the transaction of the End that it tells of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.dispatch import receiver
from django.utils import timezone

from access.models import Agent
from evidence import services as evidence
from evidence.deliveries import signing_secrets
from evidence.deliveries.messages import send_again
from evidence.deliveries.signed_requests import check_receiver
from evidence.deliveries.signing_secrets import OVERLAP, add_secret
from evidence.kinds import Kind
from evidence.leaves.deliveries import MadeEndpoint, RedeliveredCallback, RotatedSecret
from evidence.leaves.reasons import StatedReason
from invocations.callbacks.models import CallbackDelivery, CallbackEndpoint
from invocations.models import Invocation
from invocations.problems import CallbackUnknown
from invocations.signals import call_ended
from kernel.database.connections import database_time
from kernel.problems import Conflict, StateUnfit

if TYPE_CHECKING:
    from datetime import timedelta
    from uuid import UUID

    from invocations.calls import CallRequest
    from kernel.principal import Principal

MAX_ENDPOINTS = 20  # of one agent in use
THE_ONLY_ONE = "*"  # what `callback: true` becomes; no name of an endpoint


@transaction.atomic
def make_endpoint(
    *, agent_id: UUID, name: str, url: str, include_answer: bool = False, by: Principal
) -> tuple[CallbackEndpoint, str]:
    """A new endpoint, and the secret that its messages are signed with, shown this once."""
    agent = Agent.objects.select_for_update().get(pk=agent_id, tenant_id=by.tenant_id)
    check_receiver(url, pointer="/url")
    if CallbackEndpoint.objects.filter(agent=agent, disabled_at=None).count() >= MAX_ENDPOINTS:
        raise Conflict(f"An agent has at most {MAX_ENDPOINTS} endpoints.", remedy="Disable one that nobody needs.")
    try:
        with transaction.atomic():
            endpoint = CallbackEndpoint.objects.create(
                tenant_id=by.tenant_id, agent=agent, name=name, url=url, include_answer=include_answer, created_by=by.id
            )
    except IntegrityError as error:
        raise StateUnfit.at("/name", f"{agent.name} has an endpoint of this name already.") from error
    text = add_secret(endpoint.secrets, tenant_id=endpoint.tenant_id)
    said = MadeEndpoint(
        agent=agent.wire_id, name=name, host=urlsplit(url).hostname or "", include_answer=include_answer
    )
    evidence.record(kind=Kind.CALLBACK_MADE, subject=endpoint.wire_id, actor=by, data=said)
    return endpoint, text


def _locked(endpoint_id: UUID, by: Principal) -> CallbackEndpoint:
    rows = CallbackEndpoint.objects.select_for_update(of=("self",)).select_related("agent")
    endpoint = rows.get(pk=endpoint_id, tenant_id=by.tenant_id)
    if endpoint.disabled_at is not None:
        raise Conflict("This endpoint is disabled.", remedy="Set up another one.")
    return endpoint


@transaction.atomic
def rotate_secret(*, endpoint_id: UUID, overlap: timedelta = OVERLAP, by: Principal) -> tuple[CallbackEndpoint, str]:
    """Another secret, shown this once. Until the overlap is over, messages carry the signatures of both."""
    endpoint = _locked(endpoint_id, by)
    text, overlap_s = signing_secrets.rotate_secret(endpoint.secrets, tenant_id=endpoint.tenant_id, overlap=overlap)
    evidence.record(
        kind=Kind.CALLBACK_ROTATED, subject=endpoint.wire_id, actor=by, data=RotatedSecret(overlap_s=overlap_s)
    )
    return endpoint, text


@transaction.atomic
def disable_endpoint(*, endpoint_id: UUID, reason: str, by: Principal) -> CallbackEndpoint:
    """Send nothing there any more; what still waits for it is given up."""
    endpoint = _locked(endpoint_id, by)
    endpoint.disabled_at = timezone.now()
    endpoint.save(update_fields=["disabled_at"])
    said = StatedReason(reason=reason.strip())
    evidence.record(kind=Kind.CALLBACK_DISABLED, subject=endpoint.wire_id, actor=by, data=said)
    return endpoint


def find_endpoint(call: CallRequest, *, by: Principal) -> UUID | None:
    """The endpoint that a call names, None when it names none; raises for one that its agent does not have."""
    wanted = call.envelope.callback
    if not wanted:
        return None
    found = list(
        CallbackEndpoint.objects.filter(tenant_id=by.tenant_id, agent_id=by.agent(), disabled_at=None).order_by("name")
    )
    fitting = [each.pk for each in found if wanted in (each.name, THE_ONLY_ONE)]
    if len(fitting) == 1:
        return fitting[0]
    names = [each.name for each in found]
    if not names:
        raise CallbackUnknown(
            "This agent has no callback endpoint.", remedy="Ask an operator to set one up, or call without `callback`."
        )
    raise CallbackUnknown(
        "This agent has several callback endpoints." if fitting else f"This agent has no endpoint named {wanted}.",
        remedy=f"Name one of: {', '.join(names)}.",
        details={"endpoints": names},
    )


@receiver(call_ended, sender=Invocation)
def write_delivery(*, invocation: Invocation, **_: Any) -> None:
    """The message about a call that named an endpoint, in the transaction of its End."""
    if invocation.callback_id is None:
        return
    now = database_time()
    CallbackDelivery.objects.create(
        tenant_id=invocation.tenant_id,
        endpoint_id=invocation.callback_id,
        invocation=invocation,
        created_at=now,
        next_attempt_at=now,
    )


@transaction.atomic
def redeliver_callback(*, delivery_id: UUID, by: Principal) -> CallbackDelivery:
    """Send a message again, now, whatever became of it before. It keeps its id."""
    row = (
        CallbackDelivery.objects.select_for_update(of=("self",))
        .select_related("endpoint__agent", "invocation")
        .get(pk=delivery_id, tenant_id=by.tenant_id)
    )
    if row.endpoint.disabled_at is not None:
        raise Conflict("The endpoint of this message is disabled.", remedy="The answer of the call is at its address.")
    send_again(row, round=row.round + 1)
    evidence.record(
        kind=Kind.CALLBACK_REDELIVERED,
        subject=row.wire_id,
        actor=by,
        invocation_id=row.invocation_id,
        tool=row.invocation.tool,
        data=RedeliveredCallback(endpoint=row.endpoint.wire_id, round=row.round),
    )
    return row
