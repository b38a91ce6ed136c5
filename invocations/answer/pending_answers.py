"""Pending answers: what a chain or an agent run is answered with while it goes on and at its end, to callers who may wait for that."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from django.http import HttpResponse, JsonResponse

from invocations.answer.prefer_header import parse_prefer_header
from invocations.answer.wake_ups import get_waker
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for
from kernel.http.deferred_responses import WaitingResponse, can_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from rest_framework.request import Request

    from invocations.answer.wake_ups import Waiter

LOOK_AGAIN_S = "1"


class SubmittedRow(Protocol):
    """The row of something that goes on by itself until it has ended."""

    pk: UUID
    tenant_id: UUID

    @property
    def is_final(self) -> bool: ...

    def refresh_from_db(self, *, fields: Sequence[str] | None = None) -> None: ...


def write_pending(row: SubmittedRow, body: dict[str, Any], *, location: str, replayed: bool) -> HttpResponse:
    """202 while it goes on, 200 when it has ended, whatever came of it. ``replayed``: its key was used before, for the same."""
    response = JsonResponse(body, status=200 if row.is_final else 202)
    response.headers["Location"] = location
    response.headers["Cache-Control"] = "no-store"
    if not row.is_final:
        response.headers["Retry-After"] = LOOK_AGAIN_S
    if replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def read_patience(request: Request) -> float:
    """For how many seconds the caller prefers to wait, and may; 0 for none."""
    return min(float(parse_prefer_header(request.headers.get("Prefer", "")).wait_s or 0), settings.TOOLHUB_SYNC_WAIT_S)


def answer_in_time(
    request: Request,
    row: SubmittedRow,
    *,
    patience_s: float,
    begin: Callable[[UUID], object],
    write: Callable[[], HttpResponse],
) -> HttpResponse:
    """Have it begun, and answer at once, or at its end to whoever waits so long; no thread waits where the server can do without."""
    with ExitStack() as listening:
        waiter = listening.enter_context(get_waker().listen(row.pk)) if patience_s else None
        begin(row.pk)
        if waiter is not None:
            if can_wait(request._request):
                return _answer_later(row, waiter, patience_s, listening.pop_all(), write)
            _wait_for_end(row, waiter, at_most_s=patience_s)
    row.refresh_from_db()
    return write()


def _answer_later(
    row: SubmittedRow, waiter: Waiter, at_most_s: float, listening: ExitStack, write: Callable[[], HttpResponse]
) -> WaitingResponse:
    def look(last: bool) -> HttpResponse | None:
        with acting_for(row.tenant_id):
            row.refresh_from_db()
            return write() if row.is_final or last else None

    return WaitingResponse(waiter, at_most_s=at_most_s, look=look, end=listening.close)


def _wait_for_end(row: SubmittedRow, waiter: Waiter, *, at_most_s: float) -> None:
    """Block until it has ended or the time is over. No connection is held in between."""
    until = time.monotonic() + at_most_s
    row.refresh_from_db(fields=["state"])
    while (left := until - time.monotonic()) > 0 and not row.is_final:
        release_connection()
        waiter.wait(left)
        row.refresh_from_db(fields=["state"])
