"""Problems of dispatch: what can go wrong with a model's response, and with the calls in it."""

from kernel.problems import PlatformCode, Problem, Retryable


class ResponseNotKnown(Problem):
    """The response is of no dialect that the hub reads."""

    reason, code, status = "DISPATCH.UNKNOWN_RESPONSE", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "What was sent has the shape of no provider's response, or is only a part of one, such as a chunk of a stream."
    )
    cure = "Send the whole response as the provider gave it, or name its dialect."


class ResponseAmbiguous(Problem):
    """The response could be of several dialects."""

    reason, code, status = "DISPATCH.AMBIGUOUS", PlatformCode.INVALID_ARGUMENT, 422
    cause = "Two dialects write what was sent in the same way, and the hub does not guess."
    cure = "Name the dialect, or the model, beside the response."


class ArgumentsTruncated(Problem):
    """The model's answer was cut before the arguments were complete."""

    reason, code, status = "TOOL.ARGS_TRUNCATED", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = "The model reached its limit of tokens, or what it wrote ends in the middle. Nothing was run."
    cure = "Have the model make the call again, with a higher limit of tokens or with less to say."


class ArgumentsUnusable(Problem):
    """The arguments that the model wrote cannot be used."""

    reason, code, status = "TOOL.ARGS_UNUSABLE", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = "They are no JSON object that can be read in one way only; the message says what is wrong with them. Nothing was run."
    cure = "Have the model make the call again with arguments as an exact JSON object."


class CallIdTwice(Problem):
    """An earlier call of the same response has this id."""

    reason, code, status = "TOOL.CALL_ID_TWICE", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = (
        "Two calls of one response have the same id, so their answers could not be told apart. The second was not run."
    )
    cure = "Have the model make the second call again, by itself."
