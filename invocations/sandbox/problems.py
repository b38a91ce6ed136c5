"""What can go wrong with the time of a run?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class LoadTimedOut(Problem):
    """The tool's code was not loaded in time, so the tool was not called."""

    reason, code, status = "SANDBOX.LOAD_TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable, retry_after_s = Retryable.YES, 30
    cause = (
        "Importing the tool's modules, and what they import, took longer than TOOLHUB_SANDBOX_LOAD_S. That time is the "
        "hub's for every tool, and none of it counts against the tool's own limit."
    )
    cure = (
        "Call again after the time that Retry-After says. Operators: where it happens to many tools the host is too busy; "
        "where it happens to one, its modules do at import what belongs into the call."
    )


class ToolTimedOut(Problem):
    """The tool ran out of time and was stopped."""

    reason, code, status = "SANDBOX.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The tool did not finish within its limit, which the answer names with who set it. It may have had its effect."
    )
    cure = (
        "Check whether the effect took place; then call again with another Idempotency-Key, with less to do, or "
        "have the limit raised."
    )
