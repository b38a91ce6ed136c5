"""Problems of the model layer: what can go wrong between a request and a model's answer.

``LLM.*`` is about the request or the answer, ``PROVIDER.*`` about who was to answer it. No sentence quotes what a provider said of an
error: that may hold the prompt, or a piece of a key.
"""

from kernel.problems import PlatformCode, Problem, Retryable


class ModelTimedOut(Problem):
    """The model did not answer in time."""

    reason, code, status = "LLM.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable = Retryable.YES
    cause = "The provider did not begin to answer, paused too long, or was not finished within the time that there is for an answer."
    cure = "Ask again; for long answers ask for fewer tokens, or have the time limits of the model raised."
    was_sent = True  # False: there was no connection in time, so there is nothing to be paid


class ContextOverflow(Problem):
    """The conversation does not fit into the model's window."""

    reason, code, status = "LLM.CONTEXT_OVERFLOW", PlatformCode.INVALID_ARGUMENT, 413
    cause = "The messages, the tools and the room for the answer together are more tokens than this model reads."
    cure = "Leave out or shorten older messages, ask for fewer tokens, or choose a model with a larger window."


class SafetyBlocked(Problem):
    """The provider refused to answer for reasons of safety."""

    reason, code, status = "LLM.SAFETY_BLOCK", PlatformCode.COMPLIANCE_BLOCKED, 422
    cause = "A filter of the provider, or the model itself, stopped the request or its answer."
    cure = "Ask for something else, or in other words. The provider's rules cannot be switched off here."


class SensitiveBlocked(Problem):
    """The request holds sensitive data that may not go to this model."""

    reason, code, status = "LLM.SENSITIVE_BLOCKED", PlatformCode.COMPLIANCE_BLOCKED, 403
    retryable = Retryable.AFTER_ACTION
    cause = (
        "Sensitive data were found in the messages, and neither a consent nor a policy lets them go to this provider."
    )
    cure = "Take the data out, or ask for a consent or a policy that allows them for this purpose."


class OutputTruncated(Problem):
    """The answer ended before it was complete, so it cannot be read as JSON."""

    reason, code, status = "LLM.OUTPUT_TRUNCATED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The model came to its limit of tokens, or stopped for another reason than being done. What is cut is never repaired."
    cure = "Allow more tokens for the answer, or ask for less at once."


class ParameterUnsupported(Problem):
    """The model does not support something that the request depends on."""

    reason, code, status = "LLM.UNSUPPORTED", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The request has a parameter, a kind of content or tools that this model cannot take, and leaving it out would not do."
    cure = "Leave out what the findings name, let unsupported parameters be warned about, or choose another model."


class ForeignTool(Problem):
    """The request describes a tool that is none of the hub's."""

    reason, code, status = "LLM.FOREIGN_TOOL", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The caller sent the description of a tool that the agent may not call in this hub, and the model was connected for the "
        "tools of the hub alone."
    )
    cure = (
        "Name tools as the agent's list of tools has them, ask for a grant of the tool, or have an operator connect the model "
        "with `caller_tools: allow`."
    )


class ModelFileUnusable(Problem):
    """The model's file on the hub's machine cannot be used."""

    reason, code, status = "LLM.FILE_UNUSABLE", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The file is not there, cannot be read, is no whole model, or ended the process in which it was tried."
    cure = "Ask an operator to do what the sentence says with the file in the hub's folder of models, or choose another model."


class ProviderUnavailable(Problem):
    """The model's provider cannot be reached or is overloaded."""

    reason, code, status = "PROVIDER.UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.YES
    cause = "The provider did not accept the connection or answered with an error, or it fails so often that it is not asked for now."
    cure = "Ask again later, or choose a model of another provider."


class ProviderRateLimited(Problem):
    """The model's provider takes no more requests for now."""

    reason, code, status = "PROVIDER.RATE_LIMITED", PlatformCode.RATE_LIMITED, 429
    retryable = Retryable.YES
    cause = "The requests or tokens that the provider allows in a minute for this key are used up."
    cure = "Wait for as long as the answer says, or choose another model."


class ProviderQuotaExhausted(Problem):
    """The account with the model's provider has nothing left."""

    reason, code, status = "PROVIDER.QUOTA_EXHAUSTED", PlatformCode.RATE_LIMITED, 429
    retryable = Retryable.AFTER_ACTION
    cause = "The provider refuses this key until its account is paid for or its limit is raised. Waiting does not help."
    cure = "Ask an operator to look at the account with the provider, or choose a model of another provider."


class ProviderKeyRefused(Problem):
    """The model's provider does not accept the hub's key."""

    reason, code, status = "PROVIDER.AUTH", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The key that is stored for the provider is wrong, has ended, or may not use this model."
    cure = "Ask an operator to store a key that is in force for this provider."


class ProviderAnswerUnreadable(Problem):
    """The model's provider answered with something that cannot be read."""

    reason, code, status = "PROVIDER.BAD_RESPONSE", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.YES
    cause = "What came is no answer of the provider's interface, contradicts itself, or is larger than is read. Nothing was used."
    cure = "Ask again. If it stays, ask an operator to check the address and the kind of the provider."
    # By its status or its form it is certainly no answer of a model, so there is nothing to be paid.
    is_refusal = False
    is_of_request = False  # its status says that something is wrong with the request, and nothing of the provider


class StreamTruncated(Problem):
    """The answer broke off before its end."""

    reason, code, status = "PROVIDER.STREAM_TRUNCATED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.YES
    cause = "The provider's stream ended without saying that the answer is complete. No call that it proposed is used."
    cure = "Ask again. What has arrived so far may be read, and is not the whole answer."
