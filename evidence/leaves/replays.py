"""Leaves of replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, LeafPart, Written, leaf_data, leaf_part

if TYPE_CHECKING:
    from evidence.models import Snapshot


@leaf_part
class ReplayedValues(LeafPart):
    """What binds the values that a run for comparison gave, or that were written for a trial."""

    commit: Annotated[str, "SHA-256 over salt and bytes"]
    alg: Annotated[str, "which bytes"]
    bytes: Annotated[int, "how many"]

    @classmethod
    def of(cls, snapshot: Snapshot) -> ReplayedValues:
        return cls(commit=snapshot.commitment, alg=snapshot.alg, bytes=snapshot.size)


@leaf_data(Kind.REPLAY_BEGAN)
class ReplayBegin(LeafData):
    """What is replayed, and why."""

    opens: Annotated[bool, "whether stored values are held against their commitments"]
    what: Annotated[str, "`runs`, `decisions`, `facts` or `trial`"]
    reason: Written
    period: Annotated[list[str], "begin and end; empty: one call"]
    most: Annotated[int, "calls at most"]
    version: Annotated[str, "of the tool, in place of the recorded one; empty: that one"]
    policy: Annotated[str, "in place of the recorded ones; empty: those"]
    todays_image: Annotated[bool, "whether the image of today runs it"]
    arguments: Annotated[ReplayedValues | None, "commitment to what was written for a trial"] = None


@leaf_data(Kind.REPLAY_ENDED)
class ReplayEnd(LeafData):
    """What a replay found."""

    what: Annotated[str, "as in its begin"]
    done: Annotated[int, "calls that it took up"]
    verdict: Annotated[str, "of a single call"]
    counts: Annotated[dict[str, int], "calls by verdict"]
    values: Annotated[ReplayedValues | None, "commitment to what a trial gave"] = None


@leaf_data(Kind.INVOCATION_RERUN)
class ComparedRun(LeafData):
    """That a past call was run again, and how that compares."""

    replay: Annotated[str, "that it belongs to"]
    number: Annotated[int, "of the run, from 1"]
    verdict: Annotated[str, "`match`, `differs`, `not_deterministic` or `cannot`"]
    why: Annotated[str, "code of what stood against it"]
    runs: Annotated[int, "how many times it was run"]
    image: Annotated[str, "content digest"]
    version: Annotated[str, "of the tool"]
    differences: Annotated[int, "how many"]
    asked_by: Annotated[str, "who wanted it"]
    values: Annotated[ReplayedValues | None, "commitment to what it gave"] = None
