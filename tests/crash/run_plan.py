"""Run plan: what is to become of an agent run when something dies at each step of it?

The run asks a model four times: a tool, a tool for which a person must agree, a tool, and the answer. As in plan.py, the tests assert
what stands here, and docs/reference/crash-matrix.md is written from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.fault_injection import AGENT_RUNS, MODEL_CALLS, POINTS

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNS_OF_CORE, RUNS = 2, 5  # that are begun at once in a case of `make test`, and in one of `make test-all`
# What the run was at when its model was asked so often, and is not answered yet.
STEPS = (
    "the beginning",
    "the first answer, a tool",
    "the second answer, a tool that a person agrees to",
    "the third answer, a tool",
    "the last answer",
)


@dataclass(frozen=True, slots=True)
class RunFate:
    """What becomes of the runs. ``some_unknown``: a tool without a key was cut off in at least one, and they end so.
    ``asked_again``: a question was open in at least one, and is asked once more.
    """

    some_unknown: bool = False
    asked_again: bool = False

    def says(self) -> str:
        if self.some_unknown:
            return "`outcome_unknown` where the tool without a key was cut off, all others `finished`"
        return "`finished`" + ("; the questions that were open are asked once more" if self.asked_again else "")


FINISHED = RunFate()
ASKED_AGAIN = RunFate(asked_again=True)
UNKNOWN = RunFate(some_unknown=True)


@dataclass(frozen=True, slots=True)
class RunMoment:
    """One place at which a process is killed, once the model was asked ``after`` times.

    ``by``: web; person, the web process in which one agrees; worker; repairer, a worker that takes up what the process that was
    killed at ``first`` has left. ``alone``: one run, since whatever wakes a worker for the call of another has this one claimed, too.
    """

    by: str
    point: str
    after: int
    fate: RunFate = FINISHED
    first: tuple[str, str] | None = None
    core: bool = False
    alone: bool = False

    @property
    def runs(self) -> int:
        return 1 if self.alone else RUNS_OF_CORE if self.core else RUNS

    @property
    def says(self) -> str:
        return (AGENT_RUNS | MODEL_CALLS | POINTS)[self.point].rpartition(": ")[2]

    @property
    def kills(self) -> int:
        return 2 if self.first else 1

    @property
    def name(self) -> str:
        return f"{self.by}-{self.point}-{self.after}"


MOMENTS_OF_RUNS = (
    RunMoment("web", "agent_run.before_commit", 0),
    RunMoment("web", "agent_run.committed", 0, core=True),
    RunMoment("web", "accept.before_commit", 0),
    RunMoment("web", "turn.before_commit", 0),
    RunMoment("web", "turn.committed", 0),
    RunMoment("web", "model.accepted", 0),
    RunMoment("web", "model.answered", 1, ASKED_AGAIN),
    RunMoment("web", "finish.before_commit", 1, ASKED_AGAIN),
    RunMoment("web", "turn.due", 1),
    RunMoment("web", "turn.before_commit", 1),
    RunMoment("web", "turn.committed", 1),
    RunMoment("worker", "message.heard", 1),
    RunMoment("worker", "claim.before_commit", 1),
    RunMoment("worker", "claim.committed", 1),
    RunMoment("worker", "run.after", 1, core=True),
    RunMoment("worker", "finish.before_commit", 1),
    RunMoment("worker", "turn.due", 1),
    RunMoment("worker", "turn.noted", 1),
    RunMoment("worker", "turn.committed", 1),
    RunMoment("worker", "model.answered", 2, ASKED_AGAIN),
    RunMoment("worker", "turn.before_commit", 2),
    RunMoment("worker", "turn.committed", 2),
    RunMoment("person", "resume.before_commit", 2),
    RunMoment("person", "resume.committed", 2),
    RunMoment("worker", "claim.committed", 2, UNKNOWN),
    RunMoment("worker", "run.before", 2, UNKNOWN),
    RunMoment("worker", "run.after", 2, UNKNOWN),
    RunMoment("worker", "model.answered", 3, ASKED_AGAIN),
    RunMoment("worker", "turn.committed", 3),
    RunMoment("worker", "run.after", 3),
    RunMoment("worker", "model.answered", 4, ASKED_AGAIN),
    RunMoment("worker", "agent_run_end.before_commit", 4),
    RunMoment("worker", "agent_run_end.committed", 4),
    RunMoment("repairer", "relay.committed", 1, first=("web", "turn.committed"), alone=True),
    RunMoment("repairer", "again.committed", 1, first=("worker", "run.after")),
    RunMoment("repairer", "finish.before_commit", 2, ASKED_AGAIN, first=("worker", "model.answered")),
    RunMoment("repairer", "turn.committed", 0, first=("web", "agent_run.committed")),
    RunMoment("repairer", "agent_run_end.before_commit", 4, first=("worker", "turn.due")),
)
# While the runs are at this, something else goes away.
WHILE = {
    "asking": "their models are asked",
    "tool": "their tools run",
    "held": "they wait for people",
    "agreed": "the tools run that people have agreed to",
}


@dataclass(frozen=True, slots=True)
class RunLoss:
    """Something else that goes away. ``name`` is the way in test_interrupted_runs.py in which it does."""

    name: str
    what: str
    at: str
    fate: RunFate = FINISHED

    kills = 1

    @property
    def label(self) -> str:
        return f"{self.name}-{self.at}"


LOST = {
    "redis": "Redis, by SIGKILL; it comes back empty",
    "messages": "all that Redis holds (FLUSHALL)",
    "postgresql": "PostgreSQL, all of it at once; it recovers from its log",
    "database": "the way to the database, for longer than a lease",
}
LOSSES_OF_RUNS = tuple(
    RunLoss(name, LOST[name], at, fate)
    for name in LOST
    for at, fate in (
        ("asking", FINISHED),
        ("tool", FINISHED),
        ("held", FINISHED),
        ("agreed", UNKNOWN if name == "database" else FINISHED),
    )
)


def count_runs() -> int:
    """That all cases begin together."""
    return sum(each.runs for each in MOMENTS_OF_RUNS) + RUNS * len(LOSSES_OF_RUNS)


def select_moments(*, core: bool) -> Sequence[RunMoment]:
    """Those of `make test`, or those that only `make test-all` tries."""
    return [moment for moment in MOMENTS_OF_RUNS if moment.core is core]
