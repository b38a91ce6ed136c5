"""Delivery of callbacks: what the message that a call has ended says, and what is kept of each attempt."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings

from evidence import services as evidence
from evidence.deliveries.messages import AddressEnded, MessageQueue
from evidence.deliveries.queue import run_queue, send_due
from evidence.deliveries.signed_requests import SignedRequest
from evidence.deliveries.signing_secrets import load_secrets
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.leaves.deliveries import CallbackResult
from evidence.models import Snapshot, SnapshotKind
from invocations.answer.envelope import build_answer_envelope
from invocations.callbacks.models import CallbackAttempt, CallbackDelivery
from invocations.value_keys import find_values_key
from kernel.principal import Principal

if TYPE_CHECKING:
    from evidence.deliveries.messages import DeliveryAttempt

ENDED = "invocation.ended"
WHY_READ = "The answer goes to the callback endpoint that the call named."


class CallbackQueue(MessageQueue[CallbackDelivery]):
    """Messages about calls that have ended."""

    name = "callbacks"
    log = logging.getLogger("toolhub.callbacks")
    limits = {"endpoint_id": 2}
    model = CallbackDelivery
    address = "endpoint_id"
    related = ("endpoint", "invocation__version__tool")
    turn = ("round", "attempts")

    def prepare_message(self, message: CallbackDelivery) -> SignedRequest:
        endpoint = message.endpoint
        if endpoint.disabled_at is not None:
            raise AddressEnded("The endpoint was disabled.")
        secrets = load_secrets(endpoint.secrets, tenant_id=message.tenant_id)
        return SignedRequest(endpoint.url, message.wire_id, build_callback_body(message), secrets)

    def record_attempt(self, message: CallbackDelivery, attempt: DeliveryAttempt, *, over: bool) -> None:
        """Each is kept, and the last one is a fact."""
        CallbackAttempt.objects.create(
            tenant_id=message.tenant_id,
            delivery=message,
            at=attempt.at,
            status=attempt.status,
            ms=attempt.ms,
            error=attempt.error,
        )
        if not over:
            return
        evidence.record(
            kind=Kind.CALLBACK_FAILED if attempt.error else Kind.CALLBACK_DELIVERED,
            subject=message.wire_id,
            actor=_sender(message),
            invocation_id=message.invocation_id,
            tool=message.invocation.tool,
            data=CallbackResult(
                endpoint=message.endpoint.wire_id,
                attempts=message.attempts,
                status=attempt.status,
                body=fingerprint_under(find_values_key(message.invocation), attempt.body) if attempt.body else None,
            ),
        )


def build_callback_body(message: CallbackDelivery) -> bytes:
    """What is sent: what has ended and where its answer is; with the answer where the endpoint is set to get it, which is then
    a fact as every other reading of it.
    """
    invocation = message.invocation
    address = f"/api/v1/invocations/{invocation.wire_id}"
    data: dict[str, Any] = {
        "call_id": invocation.wire_id,
        "state": invocation.state,
        "tool": invocation.tool,
        "request_id": invocation.request_id,
        "location": f"{settings.TOOLHUB_PUBLIC_URL}{address}",
    }
    if message.endpoint.include_answer:
        by = _sender(message)
        for snapshot in Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.OUTPUT):
            evidence.reveal_values(snapshot=snapshot, reason=WHY_READ, by=by)
        data["answer"] = build_answer_envelope(invocation).to_json(instance=address)
    return json.dumps({"type": ENDED, "timestamp": message.created_at.isoformat(), "data": data}).encode()


def _sender(message: CallbackDelivery) -> Principal:
    return Principal.system("callbacks", tenant_id=message.tenant_id)


QUEUE = CallbackQueue()
send_due_deliveries = partial(send_due, QUEUE)
run_callback_sender = partial(run_queue, QUEUE)
