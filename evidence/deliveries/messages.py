"""Messages: each tried with growing pauses until it arrives or is given up.

A message is written with what it tells of and sent afterwards. It may arrive twice, never changed: receivers know it by its id.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from django.db import transaction
from django.db.models import F, Model, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from evidence.deliveries.queue import MAX_ERROR, DeliveryQueue, claim_row
from evidence.deliveries.signed_requests import RequestNotTaken
from kernel.database.connections import database_time, release_connection
from kernel.http.outbound import AddressRefused, OutboundFailed
from kernel.problems import Problem

if TYPE_CHECKING:
    from django.db.models import QuerySet

M = TypeVar("M", bound=Model)
PAUSES = tuple(timedelta(seconds=s) for s in (10, 60, 300, 1800, 7200, 21600, 43200))
LOOKED_AT = 1000


class AddressEnded(Exception):
    """A person has ended what the message was for, in a sentence."""


class Outgoing(Protocol):
    """A message that can be sent without the database. ``send`` returns the status that was answered, if there are such."""

    @property
    def body(self) -> bytes: ...

    def send(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One try. ``status``: None when nobody answered; ``final``: another one would change nothing; ``body``: what was sent, if it
    could be made; ``retry_after``: how long the server wants to be left alone.
    """

    at: datetime
    ms: int
    status: int | None
    error: str
    final: bool
    body: bytes
    retry_after: timedelta


def next_attempt(attempts: int, *, retry_after: timedelta, now: datetime) -> datetime | None:
    """When a message is tried again that has failed so often, not before the server wants it; None when it is given up."""
    return now + max(PAUSES[attempts - 1], retry_after) if attempts <= len(PAUSES) else None


def send_again(message: Any, **changes: Any) -> None:
    """Let a message be sent anew, now, whatever became of it before. It keeps its id."""
    changes |= {"attempts": 0, "next_attempt_at": database_time(), "delivered_at": None}
    for name, value in changes.items():
        setattr(message, name, value)
    message.save(update_fields=list(changes))


class MessageQueue(DeliveryQueue[M]):
    """Messages of one model. ``address``: the column that says where to, one of the limits; ``related``: what is read along;
    ``turn``: the columns by which an attempt knows that nobody has asked for the message anew meanwhile.
    """

    model: ClassVar[type[Any]]
    address: ClassVar[str]
    related: ClassVar[tuple[str, ...]]
    turn: ClassVar[tuple[str, ...]] = ("attempts",)
    at_once = 8

    @abstractmethod
    def prepare_message(self, message: M) -> Outgoing:
        """What is sent, with all that needs the database; raises :class:`AddressEnded`."""

    def changed_columns(self, attempt: DeliveryAttempt) -> dict[str, Any]:
        """What else the message says of its last attempt."""
        return {}

    def record_attempt(self, message: M, attempt: DeliveryAttempt, *, over: bool) -> None:
        """What else is kept of an attempt; ``over``: the message has arrived, or is given up."""

    def list_due(self) -> QuerySet[Any]:
        place = Window(RowNumber(), partition_by=F(self.address), order_by=F("next_attempt_at").asc())
        waiting = self.model.objects.filter(next_attempt_at__lte=database_time()).annotate(place=place)
        first: QuerySet[Any] = waiting.filter(place__lte=self.limits[self.address]).order_by("next_attempt_at")[
            :LOOKED_AT
        ]
        return first

    def claim_due(self, row: M) -> bool:
        return claim_row(self.model.objects.all(), row, attempts=F("attempts") + 1)

    def serve_row(self, row: M) -> int:
        message = self.model.objects.select_related(*self.related).get(pk=row.pk)
        attempt = self._try_once(message)
        self._settle(message, attempt)
        if attempt.error:
            self.log.warning("%s was not delivered: %s", message.wire_id, attempt.error)
        return int(not attempt.error)

    def _try_once(self, message: Any) -> DeliveryAttempt:
        at, began, status, error, final, body = timezone.now(), time.monotonic(), None, "", False, b""
        retry_after = timedelta()
        try:
            outgoing = self.prepare_message(message)
            body = outgoing.body
            release_connection()
            began = time.monotonic()
            status = outgoing.send()
        except RequestNotTaken as failed:
            status, error, final = failed.status, str(failed), failed.is_gone
            retry_after = failed.retry_after or retry_after
        except (AddressEnded, AddressRefused) as refused:
            error, final = str(refused), True  # asking again would change nothing
        except (OutboundFailed, Problem, OSError) as failed:
            error = str(failed) or type(failed).__name__
        except Exception as failed:  # what nobody thought of is a failed try like others: it is given up in the end
            self.log.exception("%s could not be sent", message.wire_id)
            error = type(failed).__name__
        ms = round((time.monotonic() - began) * 1000)
        return DeliveryAttempt(at, ms, status, error[:MAX_ERROR], final, body, retry_after)

    @transaction.atomic
    def _settle(self, message: Any, attempt: DeliveryAttempt) -> None:
        """Write the attempt down, and what follows from it. Who was asked to send anew meanwhile changes nothing of that."""
        now = database_time()
        ended = not attempt.error or attempt.final
        again = None if ended else next_attempt(message.attempts, retry_after=attempt.retry_after, now=now)
        mine = self.model.objects.filter(pk=message.pk, **{name: getattr(message, name) for name in self.turn})
        won = mine.update(
            delivered_at=None if attempt.error else now, next_attempt_at=again, **self.changed_columns(attempt)
        )
        self.record_attempt(message, attempt, over=bool(won) and again is None)
