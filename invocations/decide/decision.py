"""Decision: what becomes of a call on its way in. It is accepted, held for a person, answered as an earlier one was, or refused.

Whoever refuses names the step: preflight for its own, and :func:`name_step` for what only turns out when the call is written down,
since another call was faster.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from invocations.decide.preflight import Preflight
    from invocations.models import Invocation
    from invocations.step_log import StepLog


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The call may run: nothing is in the way. ``callback_id``: of the endpoint that is told of its end."""

    preflight: Preflight
    log: StepLog
    callback_id: UUID | None


@dataclass(frozen=True, slots=True)
class Hold:
    """The call waits: a person's word is all that is missing, and the caller wants it to wait for that.

    ``callback_id``: as with an :class:`Acceptance`.
    """

    preflight: Preflight
    log: StepLog
    callback_id: UUID | None


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """The call was made before: one with the same idempotency key stands for it."""

    invocation: Invocation


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call may not be made. ``preflight``: as far as it came, with the step that refused; None: it was refused before.

    ``asks_person``: a person's word is all that is missing, and the caller wants somebody to be asked for it.
    """

    problem: Problem
    log: StepLog
    preflight: Preflight | None = None
    asks_person: bool = False


CallDecision = Acceptance | Hold | EarlierCall | Refusal


class StepRefusal(Exception):
    """A step of preflight that was passed, and refuses after all."""

    def __init__(self, problem: Problem, step: str) -> None:
        self.problem, self.step = problem, step
        super().__init__(problem.detail)


@contextmanager
def name_step(step: str) -> Iterator[None]:
    """What is refused inside the block is refused at this step of preflight."""
    try:
        yield
    except Problem as problem:
        raise StepRefusal(problem, step) from problem
