"""Problems of agent runs: what can go wrong beside what can go wrong with each call."""

from kernel.problems import PlatformCode, Problem, Retryable


class RunStopped(Problem):
    """The run did not come to an answer of its model."""

    reason, code, status = "RUN.STOPPED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = (
        "It came to one of its limits, its model could not be asked or failed, a call has an unknown outcome, or it was cancelled. "
        "`details` says which, in `stop_reason`."
    )
    cure = "Look at its last step. To go on, begin another run with what this one has found, or with a wider limit."
