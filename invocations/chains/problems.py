"""Problems of chains: what can go wrong beside what can go wrong with each call."""

from kernel.problems import PlatformCode, Problem, Retryable


class StepsDoNotFit(Problem):
    """What one step delivers does not fit where another uses it."""

    reason, code, status = "CHAIN.INCOMPATIBLE", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "A reference of the plan points to a value that the output schema of the one tool does not promise, or that the "
        "input schema of the other may not take. It was found before anything ran."
    )
    cure = (
        "Point to another value, or change the schema of one of the tools. Where you know that the value fits although "
        "the schemas do not show it, say `assume_compatible: true` in the reference; the value is then checked when the step is made."
    )


class RetryNeedsKey(Problem):
    """Only a tool that honours its key may be tried again."""

    reason, code, status = "CHAIN.RETRY_NEEDS_KEY", PlatformCode.INVALID_ARGUMENT, 422
    cause = "A step says `retry`, and its tool does not say in its manifest that it has its effect once for one key."
    cure = "Leave `retry` out of the step, or ask the author of the tool for `idempotency: keyed`."


class ValueMissing(Problem):
    """The step that came before delivered nothing at the place that the reference points to."""

    reason, code, status = "CHAIN.VALUE_MISSING", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The reference was assumed to be compatible, and the value is not there; or the values of that step were erased."
    cure = "Point to a value that the output schema of the tool requires."


class ChainStopped(Problem):
    """The chain did not come to its end."""

    reason, code, status = "CHAIN.STOPPED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "One of its steps was refused, failed or has an unknown outcome, or the chain was cancelled. `details` names the step."
    cure = "Look at the step's own answer, at its address. What had been done is undone where the plan says how."
