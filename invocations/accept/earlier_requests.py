"""Earlier requests: whether a call's request_id was used before, of which its caller is told."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import DatabaseError, connection
from django.db.models.functions import Coalesce

from invocations.models import Invocation, Origin, State
from kernel.database.rows import PreparedQuery

if TYPE_CHECKING:
    from invocations.calls import CallRequest
    from kernel.database.postgresql.base import LaterRows
    from kernel.principal import Principal

log = logging.getLogger("toolhub.calls")
# By the index of requests: SQLite would rather go through all calls of the agent, the newest first, if it saw that they have an order.
OF_REQUEST = PreparedQuery(
    lambda agent, request, before: (
        Invocation.objects.alias(number=Coalesce("id", "id"))
        .filter(agent_id=agent, request_id=request, number__lt=before)
        .exclude(state=State.DENIED)
        .order_by("-number")[:1]
    ),
    agent=UUID,
    request=str,
    before=UUID,
)


class EarlierRequest:
    """Whoever thinks that a request_id makes a call once is told, since this is another.

    With an Idempotency-Key the caller has said what is to happen; calls of one dispatch, chain or run share their request_id, and
    that of a call over MCP is the hub's own.
    """

    def __init__(self) -> None:
        self._sent: LaterRows | None = None

    def ask_with_transaction(self, call: CallRequest, *, id: UUID, by: Principal) -> None:
        """Have it asked in the exchange in which the call is accepted, where the database can."""
        if connection.vendor == "postgresql" and _is_of_interest(call):
            self._sent = OF_REQUEST.ask_later(agent=by.agent(), request=call.envelope.request_id, before=id)

    def find_notices(self, call: CallRequest, *, id: UUID, by: Principal) -> tuple[str, ...]:
        """What is to be said; asked now, if it was not before. The call was accepted: where nobody can say, it goes on without."""
        if not _is_of_interest(call):
            return ()
        try:
            if self._sent is None:
                earlier = OF_REQUEST.all(agent=by.agent(), request=call.envelope.request_id, before=id)
            else:
                earlier = OF_REQUEST.read(self._sent.get())
        except DatabaseError as error:
            log.warning("Whether a request_id was used before is not known: %s", error)
            return ()
        if not earlier:
            return ()
        return (
            f"This request_id was used before, by the call {earlier[0].wire_id}, and this is another call. A request_id only finds a "
            "call again; to have a call that is sent twice made once, send an Idempotency-Key.",
        )


def _is_of_interest(call: CallRequest) -> bool:
    return not (call.envelope.idempotency_key or call.is_step or call.origin is Origin.MCP)
