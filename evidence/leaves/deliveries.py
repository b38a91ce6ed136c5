"""Leaves of what the hub sends: callbacks, notifications and event sinks."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, SearchTerm, Written, leaf_data


@leaf_data(Kind.CALLBACK_MADE)
class MadeEndpoint(LeafData):
    """Where an agent is told of the end of its calls."""

    agent: Annotated[str, "whose endpoint it is", SearchTerm("agent")]
    name: Annotated[str, "of the endpoint"]
    host: Annotated[str, "of its address"]
    include_answer: Annotated[bool, "whether messages have the answer in them"]


@leaf_data(Kind.CALLBACK_ROTATED, Kind.SINK_ROTATED)
class RotatedSecret(LeafData):
    """That messages are signed with another secret."""

    overlap_s: Annotated[int, "for how long the old one signs, too"]


@leaf_data(Kind.CALLBACK_DELIVERED, Kind.CALLBACK_FAILED)
class CallbackResult(LeafData):
    """What became of a callback."""

    endpoint: Annotated[str, "where it was sent"]
    attempts: Annotated[int, "how many"]
    status: Annotated[int | None, "that the server answered"] = None
    body: Annotated[str | None, "keyed hash of the message"] = None


@leaf_data(Kind.CALLBACK_REDELIVERED)
class RedeliveredCallback(LeafData):
    """That a callback is sent again by hand."""

    endpoint: Annotated[str, "where it is sent"]
    round: Annotated[int, "how many times it was asked for"]


@leaf_data(Kind.NOTIFICATION_SET)
class NotificationChannel(LeafData):
    """Who is told of what; the address stays out of it."""

    channel: Annotated[str, "`email` or `webhook`"]
    events: Annotated[list[str], "of which it is told"]
    host: Annotated[str | None, "of a webhook's address"] = None
    changed: Annotated[bool | None, "true: the channel was there before"] = None


@leaf_data(Kind.SINK_MADE)
class MadeSink(LeafData):
    """Where every fact is sent."""

    name: Annotated[str, "of the sink"]
    channel: Annotated[str, "`webhook` or `file`"]
    host: Annotated[str, "of its address; empty for files"]
    kinds: Annotated[list[str], "of facts; empty: all"]
    from_: Annotated[int, "number of the first leaf"]


@leaf_data(Kind.SINK_RESUMED)
class SinkCursor(LeafData):
    """How far a sink has come."""

    cursor: Annotated[int, "number of the next leaf"]


@leaf_data(Kind.SINK_PAUSED, Kind.SINK_ENDED)
class StoppedSink(SinkCursor):
    """Why nothing more is sent, for now or for good."""

    reason: Written


@leaf_data(Kind.SINK_REFUSED)
class RefusedSink(SinkCursor):
    """That the server wants no more messages."""

    status: Annotated[int, "that it answered"]
