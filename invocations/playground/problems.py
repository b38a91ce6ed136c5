"""Problems of the playground."""

from __future__ import annotations

from kernel.problems import Conflict, PlatformCode, Problem, Retryable


class PlaygroundNotSetUp(Problem):
    """The tenant has no playground yet."""

    reason, code, status = "PLAYGROUND.NOT_SET_UP", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "People talk through an agent that is there for the playground alone, and nobody has made it."
    cure = "Whoever manages agents, grants and budgets sets it up on the page of the playground."


class PlaygroundAnswering(Conflict):
    """The last message of the conversation is still being answered."""

    reason = "PLAYGROUND.ANSWERING"
    cause = "A conversation goes on from its answers, so one message is answered at a time."
    cure = "Wait for the answer, have the call that waits decided on, or cancel."
