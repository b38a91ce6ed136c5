"""What can go wrong with a callback?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class CallbackUnknown(Problem):
    """The agent has no callback endpoint of this name."""

    reason, code, status = "CALLBACK.UNKNOWN", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = (
        "`callback` names an endpoint that is not set up for this agent, or was disabled; or `true` fits more than one."
    )
    cure = (
        "Send one of the names that the answer lists, or have an operator set up an endpoint on the page of the agent."
    )
