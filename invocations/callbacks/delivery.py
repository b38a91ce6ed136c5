"""How does the message that a call has ended reach its endpoint?

A loop of its own, in any number of processes: each due message is claimed with a compare-and-set, sent with nothing of the
database held, and what became of it is written down with its fact. What fails is tried again with growing pauses, eight times
within a day. A message may arrive twice, never changed: receivers know it by its id.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from evidence import services as evidence
from evidence.keys.keystore import get_keystore
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import Kind
from evidence.models import Snapshot, SnapshotKind
from evidence.webhooks.messages import CLAIMED_FOR, next_attempt, signed_headers
from invocations.answer.envelope import build_answer_envelope
from invocations.callbacks.models import CallbackAttempt, CallbackDelivery, CallbackSecret
from invocations.value_keys import find_values_key
from kernel.database.connections import database_time, release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed, send_request
from kernel.loops import repeat_work
from kernel.principal import Principal
from kernel.problems import Problem

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable
    from uuid import UUID

log = logging.getLogger("toolhub.callbacks")
EVERY_S = 1.0
AT_ONCE = 8
OF_ONE_ENDPOINT = 2  # a pass sends no more to one, so that a server which never answers holds up nobody else's
LOOKED_AT = 1000
MAX_ERROR = 300
ANY = range(100, 600)
GONE = 410  # the receiver wants nothing at this address any more: what it did not get is not sent again
ENDED = "invocation.ended"
WHY_READ = "The answer goes to the callback endpoint that the call named."


def send_due_deliveries() -> int:
    """Send what is due; returns how many messages arrived."""
    place = Window(RowNumber(), partition_by=F("endpoint_id"), order_by=F("next_attempt_at").asc())
    waiting = CallbackDelivery.objects.filter(next_attempt_at__lte=database_time()).annotate(place=place)
    due = interleave_tenants(waiting.filter(place__lte=OF_ONE_ENDPOINT).order_by("next_attempt_at")[:LOOKED_AT])
    if not due:
        return 0
    release_connection()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="callback") as pool:
        return sum(pool.map(_send_if_mine, due))


def interleave_tenants(rows: Iterable[CallbackDelivery]) -> list[CallbackDelivery]:
    """Those of the next pass: one of each tenant, then another of each, so that the dead servers of one hold up no other."""
    taken: Counter[UUID] = Counter()

    def turn(row: CallbackDelivery) -> int:
        taken[row.tenant_id] += 1
        return taken[row.tenant_id]

    return sorted(rows, key=turn)[: AT_ONCE * OF_ONE_ENDPOINT]


def _send_if_mine(row: CallbackDelivery) -> bool:
    try:
        return _claim(row) and _send(row.pk)
    finally:
        release_connection()


def _claim(row: CallbackDelivery) -> bool:
    until = database_time() + CLAIMED_FOR
    mine = CallbackDelivery.objects.filter(pk=row.pk, next_attempt_at=row.next_attempt_at)
    return bool(mine.update(next_attempt_at=until, attempts=F("attempts") + 1))


def _send(pk: Any) -> bool:
    row = CallbackDelivery.objects.select_related("endpoint", "invocation__version__tool").get(pk=pk)
    at, began, status, error, final, body = timezone.now(), time.monotonic(), None, "", False, b""
    if row.endpoint.disabled_at is not None:
        error, final = "The endpoint was disabled.", True
    else:
        try:
            secrets, body = load_signing_secrets(row), build_callback_body(row)
            headers = signed_headers(secrets, id=row.wire_id, body=body)
            release_connection()
            began = time.monotonic()
            status = send_request(
                row.endpoint.url, method="POST", body=body, headers=headers, statuses=ANY, read=False
            ).status
            error = "" if 200 <= status < 300 else f"Answered {status}."
            final = status == GONE
        except AddressRefused as refused:
            error, final = str(refused), True  # asking again would change nothing
        except (OutboundFailed, Problem, OSError) as failed:
            error = str(failed) or type(failed).__name__
        except Exception as failed:  # what nobody thought of is a failed try like others: it is given up in the end
            log.exception("%s could not be sent", row.wire_id)
            error = type(failed).__name__
    tried = CallbackAttempt(
        tenant_id=row.tenant_id,
        delivery=row,
        at=at,
        status=status,
        ms=round((time.monotonic() - began) * 1000),
        error=error[:MAX_ERROR],
    )
    _settle(row, tried, body, final=final)
    return not error


def load_signing_secrets(row: CallbackDelivery) -> list[bytes]:
    """The endpoint's secrets that have not ended, the newest first."""
    rows = CallbackSecret.objects.filter(Q(ends_at=None) | Q(ends_at__gt=database_time()), endpoint_id=row.endpoint_id)
    context = row.tenant_id.bytes
    return [
        get_keystore().unwrap(each.key_id, bytes(each.wrapped_key), context=context)
        for each in rows.order_by("-created_at")
    ]


def build_callback_body(row: CallbackDelivery) -> bytes:
    """What is sent: what has ended and where its answer is; with the answer where the endpoint is set to get it, which is then
    a fact as every other reading of it.
    """
    invocation = row.invocation
    address = f"/api/v1/invocations/{invocation.wire_id}"
    data: dict[str, Any] = {
        "call_id": invocation.wire_id,
        "state": invocation.state,
        "tool": invocation.tool,
        "request_id": invocation.request_id,
        "location": f"{settings.TOOLHUB_PUBLIC_URL}{address}",
    }
    if row.endpoint.include_answer:
        by = _sender(row)
        for snapshot in Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.OUTPUT):
            evidence.reveal_values(snapshot=snapshot, reason=WHY_READ, by=by)
        data["answer"] = build_answer_envelope(invocation).to_json(instance=address)
    return json.dumps({"type": ENDED, "timestamp": row.created_at.isoformat(), "data": data}).encode()


def _sender(row: CallbackDelivery) -> Principal:
    return Principal.system("callbacks", tenant_id=row.tenant_id)


@transaction.atomic
def _settle(row: CallbackDelivery, tried: CallbackAttempt, body: bytes, *, final: bool) -> None:
    """Write the attempt down, and what follows from it. Who was asked to send anew meanwhile changes nothing of that."""
    now, ok = database_time(), not tried.error
    again = None if ok or final else next_attempt(row.attempts, now=now)
    tried.save(force_insert=True)
    mine = CallbackDelivery.objects.filter(pk=row.pk, round=row.round, attempts=row.attempts)
    won = mine.update(delivered_at=now if ok else None, next_attempt_at=again)
    if not ok:
        log.warning("%s was not delivered: %s", row.wire_id, tried.error)
    if not won or again is not None:
        return
    said: dict[str, Any] = {"endpoint": row.endpoint.wire_id, "attempts": row.attempts}
    if tried.status is not None:
        said["status"] = tried.status
    if body:
        said["body"] = fingerprint_under(find_values_key(row.invocation), body)
    evidence.record(
        kind=Kind.CALLBACK_DELIVERED if ok else Kind.CALLBACK_FAILED,
        subject=row.wire_id,
        actor=_sender(row),
        invocation_id=row.invocation_id,
        tool=row.invocation.tool,
        data=said,
    )


def run_callback_sender(stop: threading.Event) -> None:
    """Send until told to stop."""
    repeat_work(send_due_deliveries, stop, every_s=EVERY_S, what="Callbacks were not sent", log=log)
