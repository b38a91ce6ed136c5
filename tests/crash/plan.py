"""The plan of crashes: what is to become of a call when a process is killed at each step of it?

The tests crash a hub as it stands here and assert each cell; `python -m tests.crash.page` writes the same down in
docs/reference/crash-matrix.md. So the page claims nothing that no test asserts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from kernel.fault_injection import BATCHES, POINTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KEYED, NONE, READ = "honours_its_key", "has_no_key", "reads"
KINDS = {KEYED: "honours its key", NONE: "writes, has no key", READ: "reads only"}


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the call. ``attempts`` were made, and in ``runs`` of them the tool began."""

    state: str
    runs: int
    attempts: int

    def says(self) -> str:
        if self.state == "outcome_unknown":
            return "`outcome_unknown`, " + ("run once, not again" if self.runs else "not run at all")
        if self.runs > 1:
            return f"`{self.state}`, run {self.runs} times with one key, one effect"
        return f"`{self.state}`, run once" + (", by the second attempt" if self.attempts > 1 else "")


ONCE = Fate("succeeded", 1, 1)
SECOND = Fate("succeeded", 1, 2)  # the first attempt ended before its tool began
TWICE = Fate("succeeded", 2, 2)
UNKNOWN = Fate("outcome_unknown", 1, 1)
UNKNOWN_NOT_RUN = Fate("outcome_unknown", 0, 1)

ALL_ONCE = {KEYED: ONCE, NONE: ONCE, READ: ONCE}
BEFORE_THE_TOOL = {KEYED: SECOND, NONE: UNKNOWN_NOT_RUN, READ: UNKNOWN_NOT_RUN}
AFTER_THE_TOOL = {KEYED: TWICE, NONE: UNKNOWN, READ: UNKNOWN}
LOST = {NONE: UNKNOWN_NOT_RUN, READ: UNKNOWN_NOT_RUN}


@dataclass(frozen=True, slots=True)
class Moment:
    """One place at which a process is killed. ``core``: the kinds that `make test` tries too; `make test-all` tries all."""

    by: str  # web, worker, sweeper: who is killed
    point: str
    fates: Mapping[str, Fate]
    core: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        return POINTS[self.point].partition(": ")[2]


MOMENTS = (
    Moment("web", "call.decided", ALL_ONCE),
    Moment("web", "accept.before_commit", ALL_ONCE, core=(NONE,)),
    Moment("web", "accept.committed", ALL_ONCE, core=(KEYED,)),
    Moment("web", "ring.sent", ALL_ONCE),
    Moment("web", "wait.looked", ALL_ONCE),
    Moment("web", "answer.before", ALL_ONCE, core=(NONE,)),
    Moment("worker", "message.heard", ALL_ONCE, core=(READ,)),
    Moment("worker", "claim.before_commit", ALL_ONCE),
    Moment("worker", "claim.committed", BEFORE_THE_TOOL),
    Moment("worker", "run.before", BEFORE_THE_TOOL),
    Moment("worker", "run.after", AFTER_THE_TOOL, core=(KEYED,)),
    Moment("worker", "finish.before_commit", AFTER_THE_TOOL, core=(NONE,)),
    Moment("worker", "finish.committed", ALL_ONCE),
    Moment("sweeper", "relay.before_commit", ALL_ONCE),
    Moment("sweeper", "relay.committed", ALL_ONCE, core=(NONE,)),
    Moment("sweeper", "finish.before_commit", LOST),
    Moment("sweeper", "finish.committed", LOST),
    Moment("sweeper", "again.before_commit", {KEYED: SECOND}),
    Moment("sweeper", "again.committed", {KEYED: SECOND}, core=(KEYED,)),
)


@dataclass(frozen=True, slots=True)
class Loss:
    """Something else that goes away. ``name`` is the way in test_losses.py in which it does."""

    name: str
    what: str
    fates: Mapping[str, Fate]
    core: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """A place at which a worker is killed while one of its threads does something for several calls. ``fates``: what may become
    of those calls; of all of them the same.
    """

    point: str
    fates: tuple[Mapping[str, Fate], ...]

    @property
    def says(self) -> str:
        return BATCHES[self.point].partition(": ")[2]


BATCHES_PLANNED = (
    Batch("claims.committed", (BEFORE_THE_TOOL,)),
    Batch("commits.taken", (AFTER_THE_TOOL,)),
    Batch("commits.sent", (AFTER_THE_TOOL, ALL_ONCE)),
    Batch("commits.committed", (ALL_ONCE,)),
)

Row = TypeVar("Row", Moment, Loss)
LOSSES = (
    Loss("worker", "the worker, by SIGKILL while the tool runs", AFTER_THE_TOOL),
    Loss("box", "the box in which the tool runs, by SIGKILL", AFTER_THE_TOOL, core=(NONE,)),
    Loss("redis", "Redis, by SIGKILL while the tool runs; it comes back empty", ALL_ONCE),
    Loss("messages", "all that Redis holds (FLUSHALL), while the call waits for a worker", ALL_ONCE),
    Loss("postgresql", "PostgreSQL while the tool runs, all of it at once; it recovers from its log", ALL_ONCE),
    Loss("database_briefly", "the way to the database while the tool runs, for less than a lease", ALL_ONCE),
    Loss("database", "the way to the database while the tool runs, for longer than a lease", AFTER_THE_TOOL),
    Loss("engine", "the Docker engine's socket while the tool runs; its box lives on", ALL_ONCE),
)


def cases(of: Sequence[Row], *, core: bool) -> list[tuple[Row, str]]:
    """Those of `make test`, or those that only `make test-all` tries."""
    return [(row, kind) for row in of for kind in row.fates if (kind in row.core) is core]


def name_of(case: object) -> str:
    match case:
        case Moment():
            return f"{case.by}-{case.point}"
        case Loss():
            return case.name
        case Batch():
            return case.point
    return str(case)
