"""Fair share: who may be served while somebody else waits for room.

Nobody gets more than an equal share then; and what has waited long is not overtaken for a while.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Generic

from invocations.sandbox.pool.slots import B

if TYPE_CHECKING:
    from collections.abc import Iterable

    from invocations.sandbox.pool.inventory import BoxInventory
    from invocations.sandbox.pool.slots import BoxRequest, BoxTicket

_LETS_NOBODY_PAST_AFTER_S, _LETS_NOBODY_PAST_FOR_S = 2.0, 5.0  # a call that waits for room is not overtaken then
_NOT_AGAIN_FOR_S = 60.0  # for calls of the same tenant


class TurnResult(Enum):
    """What came of a call's turn."""

    SETTLED = auto()
    COMING = auto()  # its box is being made or loaded
    BLOCKED = auto()  # there is no room


class FairShare(Generic[B]):
    def __init__(self, ledger: BoxInventory[B]) -> None:
        self._ledger = ledger
        self._stopping_others: dict[str, float] = {}  # since when, by tenant

    def may_pass(self, want: BoxRequest, promised: int, waiting: Iterable[BoxTicket[B]]) -> bool:
        """Whether a call may be served although another one waits for room."""
        tenants = {ticket.want.tenant for ticket in waiting} | set(self._ledger.held)
        return self._ledger.share(want, promised + 1) <= 1 / len(tenants)

    def lets_nobody_past(self, ticket: BoxTicket[B], now: float) -> bool:
        """For a while, so that it gets its room; but what asks for too much, again and again, does not stop the others."""
        if now - ticket.since < _LETS_NOBODY_PAST_AFTER_S:
            return False
        since = self._stopping_others.get(ticket.want.tenant, -_NOT_AGAIN_FOR_S)
        if now - since >= _NOT_AGAIN_FOR_S:
            since = self._stopping_others[ticket.want.tenant] = now
        return now - since < _LETS_NOBODY_PAST_FOR_S

    def forget(self, now: float) -> None:
        stops = self._stopping_others
        self._stopping_others = {who: at for who, at in stops.items() if now - at < _NOT_AGAIN_FOR_S}
