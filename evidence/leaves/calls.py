"""Leaves of calls: what happens to a call between its Begin and its End, and requests that made none."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import Commitment, LeafData, LeafPart, SearchTerm, leaf_data, leaf_part
from evidence.leaves.call_begins import DecidedCall


@leaf_data(Kind.INVOCATION_HELD)
class HeldCall(LeafData):
    """That a call waits for a person."""

    consent: Annotated[str, "that it waits for; empty: for none", SearchTerm("consent")]
    account: Annotated[str | None, "of a person at a server elsewhere, that it waits for"] = None
    until: Annotated[str, "when it stops waiting"]


@leaf_data(Kind.INVOCATION_RESUMED)
class ResumedCall(DecidedCall):
    """That a held call goes on, and what was decided anew."""


@leaf_data(Kind.INVOCATION_REPLAYED)
class RepeatedAnswer(LeafData):
    """That a caller sent the same idempotency key again and got the first answer."""

    state: Annotated[str, "of the call at that time"]


@leaf_data(Kind.INVOCATION_CANCEL_ASKED, Kind.INVOCATION_RETRIED)
class CallAttempt(LeafData):
    """Which run of a call it is about."""

    attempt: Annotated[int, "number of the run"]


@leaf_data(Kind.REQUEST_REJECTED, Kind.INVOCATION_PREFLIGHTED)
class RequestTally(LeafData):
    """Requests that made no call, counted by the minute."""

    calls: Annotated[int, "how many"]
    from_: Annotated[str, "begin of the minute"]
    until: Annotated[str, "its end"]


@leaf_part
class LineRange(LeafPart):
    """Which lines of a run's log are in a segment."""

    count: Annotated[int, "how many"]
    first: Annotated[int | None, "number of the first"] = None
    last: Annotated[int | None, "number of the last"] = None


@leaf_data(Kind.INVOCATION_SEGMENT)
class Segment(LeafData):
    """What a long run has logged since the segment before."""

    number: Annotated[int, "from 1"]
    attempt: Annotated[int, "number of the run"]
    after: Annotated[str, "leaf hash of the fact before it: the Begin, or a segment"]
    said: Annotated[Commitment, "commitment to the lines"]
    lines: Annotated[LineRange, "which lines"]
    thousandths_done: Annotated[int | None, "progress that the tool reported"] = None
