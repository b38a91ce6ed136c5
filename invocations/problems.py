"""Problems of calls: what can go wrong with a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_noop

from kernel.problems import PlatformCode, Problem, Retryable

if TYPE_CHECKING:
    from registry.models import ToolVersion

CALL_AGAIN = gettext_noop("The tool only reads: call again if it is still wanted. What it has cost so far stays spent.")


class CapabilityBlocked(Problem):
    """The tool needs or tried something that it was not granted."""

    reason, code, status = "SANDBOX.CAPABILITY_BLOCKED", PlatformCode.FORBIDDEN, 403
    cause = (
        "The tool reached for a host, a path, a program or a secret that manifest, grant and policy do not all allow."
    )
    cure = "Have the capability added where the answer says it is missing, or use a tool that does not need it."


class SandboxStartFailed(Problem):
    """No sandbox could be started, so the tool did not run."""

    reason, code, status = "SANDBOX.START_FAILED", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5
    cause = "The container engine did not answer, or had no room for another sandbox."
    cure = "Try again after `retry_after_s` seconds. Operators: `make doctor` says what is wrong."


class ImageMissing(Problem):
    """The image that the tool's sandbox is made of is not there, so the tool did not run."""

    reason, code, status = "SANDBOX.IMAGE_MISSING", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.AFTER_ACTION
    cause = "The worker's host does not have the image that this tool's sandbox is made of."
    cure = "Operators: `make sandbox-images` on each worker host. Then call again."


class ResourceExceeded(Problem):
    """The tool exceeded its resource limits and was stopped."""

    reason, code, status = "SANDBOX.RESOURCE_EXCEEDED", PlatformCode.UPSTREAM_ERROR, 502
    cause = "The tool used more memory, wrote more output or returned a larger result than its limits allow."
    cure = "Call with less to do in one call, or ask the author to raise the limit in the manifest."


class SecretLeak(Problem):
    """The tool gave a secret away, so its result was withheld."""

    reason, code, status = "SANDBOX.SECRET_LEAK", PlatformCode.COMPLIANCE_BLOCKED, 502
    retryable = Retryable.AFTER_ACTION
    cause = "A secret that the tool was given stood in its result or in what it wrote."
    cure = "Operators: look at the tool, replace the secret, and enable a corrected version. Nobody has got the result."


class OutcomeUnknown(Problem):
    """The run was interrupted; whether the tool had its effect is unknown."""

    reason, code, status = "SANDBOX.WORKER_LOST", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.AFTER_ACTION
    cause = "The worker, its host or the engine was lost while the tool ran. Nobody knows how far it got."
    cure = "Check whether the effect took place before you call again."


class ToolDrifted(Problem):
    """The server lists the tool otherwise than it was reviewed, so it was not called."""

    reason, code, status = "TOOL.DRIFTED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "What a server somewhere else lists is held against what was reviewed. The parts in `details` are otherwise now."
    cure = "Operators: bring the tool again, have the next version reviewed, enable it and resume the tool, which is paused now."


class ToolFailed(Problem):
    """The tool failed."""

    reason, code, status = "TOOL.EXECUTION_FAILED", PlatformCode.UPSTREAM_ERROR, 502
    cause = (
        "The tool raised an exception, ended without a result, or answered with an error code that is not in the "
        "closed set."
    )
    cure = (
        "Whoever may reveal stored values finds the message with the call. Tell the author of the tool; another "
        "call is likely to fail too."
    )


class RunCancelled(Problem):
    """The run was ended before the tool had finished, because the hub was stopping."""

    reason, code, status = "SANDBOX.CANCELLED", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.AFTER_ACTION, 10
    cause = "The process that ran the tool was told to stop and could not wait for it."
    cure = "Check whether the effect took place before you call again."


class HubStopping(Problem):
    """The hub was stopping, so the tool was not run."""

    reason, code, status = "SANDBOX.STOPPING", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 10
    cause = "The process that would have run the tool was told to stop. The tool has not begun."
    cure = "Call again after `retry_after_s` seconds."


class BuildChanged(Problem):
    """The tool's code is not the code that was reviewed, so it was not run."""

    reason, code, status = "TOOL.BUILD_CHANGED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The stored code does not have the digest of the version that was reviewed."
    cure = "Operators: find out who changed it; submit the code as a new version and have it reviewed."


class OutputInvalid(Problem):
    """The tool returned an invalid result."""

    reason, code, status = "SCHEMA.OUTPUT_INVALID", PlatformCode.UPSTREAM_ERROR, 502
    cause = "The result is not JSON, or does not match the output schema of the tool's manifest."
    cure = "Tell the author of the tool: its result or its output schema must be corrected. The tool has run."


class QueueUnavailable(Problem):
    """The queue does not answer, so the call was cancelled before it started."""

    reason, code, status = "QUEUE.UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5
    cause = "Neither the broker nor PostgreSQL took the word for the workers, so none would have heard of the call. Nothing ran."
    cure = "Try again after `retry_after_s` seconds. Operators: check that Redis and PostgreSQL run and can be reached."


class QueueTimeout(Problem):
    """No worker was free in time, so the call was not started."""

    reason, code, status = "QUEUE.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable, retry_after_s = Retryable.YES, 5
    cause = "All workers were busy, or none was there, until the call had waited as long as it may. Nothing ran."
    cure = "Try again later. Operators: start more workers, or look whether those that are there are stuck."


class CallCancelled(Problem):
    """The call was cancelled."""

    reason, code, status = "REQUEST.CANCELLED", PlatformCode.CONFLICT, 409
    cause = "Somebody took the call back, or a wider stop ended it; the message says whether the tool had begun."
    cure = "Call again if it is still wanted; if the tool had begun, check first whether the effect took place."


class CallbackUnknown(Problem):
    """The agent has no callback endpoint of this name."""

    reason, code, status = "CALLBACK.UNKNOWN", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = (
        "`callback` names an endpoint that is not set up for this agent, or was disabled; or `true` fits more than one."
    )
    cure = (
        "Send one of the names that the answer lists, or have an operator set up an endpoint on the page of the agent."
    )


class CalledAsModel(Problem):
    """A tool was called as if it were a model."""

    reason, code, status = "CALL.IS_A_TOOL", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The name in the address is that of a tool, and only models are asked by this endpoint."
    cure = "Call it as a tool, or list the models and choose one."


class NotProposed(Problem):
    """The answer that is named did not propose this call."""

    reason, code, status = "CALL.NOT_PROPOSED", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "`proposed_by` names no call of a model by this agent that ended well and proposed a call of this id, of this tool and with "
        "these arguments."
    )
    cure = "Send the proposal as the model wrote it, or make the call without `proposed_by`."


class ModelNotReady(Problem):
    """There is nobody to ask: the model's provider is not connected here."""

    reason, code, status = "MODEL.NOT_READY", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.AFTER_ACTION
    cause = "The provider of the model was removed, was set up wrongly, or is of a kind that this hub does not know."
    cure = "Ask an operator to connect the provider again, or choose a model of another provider."


class ModelUnpriced(Problem):
    """Nobody knows what a call of this model costs."""

    reason, code, status = "MODEL.UNPRICED", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "There is no price for this model, and it was connected to be refused without one."
    cure = "Ask an operator to let its calls be counted in tokens only, or choose a model whose price is known."


class TooManyStreams(Problem):
    """The agent holds as many streams open as it may."""

    reason, code, status = "STREAM.TOO_MANY", PlatformCode.RATE_LIMITED, 429
    retryable, retry_after_s = Retryable.AFTER_ACTION, 5
    cause = "Each event stream is a connection that the hub keeps open, and it keeps so many for one agent."
    cure = "Close streams that are not needed; in place of one, poll the address of the call, or list the tools again now and then."


class IdempotencyKeyReused(Problem):
    """The Idempotency-Key was already used with different arguments."""

    reason, code, status = "IDEMPOTENCY.KEY_REUSED", PlatformCode.CONFLICT, 422
    cause = "An earlier call of the same tool used this key with other arguments or another envelope."
    cure = "Use a new key for a new call; send exactly the same call to get the first answer again."


class KeysDiffer(Problem):
    """The Idempotency-Key header and the body name two keys."""

    reason, code, status = "IDEMPOTENCY.KEYS_DIFFER", PlatformCode.CONFLICT, 409
    cause = "The header and the field `idempotency_key` contradict each other, so nobody knows which call this is a repetition of."
    cure = "Send one of the two, or the same key in both."


class IdempotencyInProgress(Problem):
    """The first call with this Idempotency-Key is still running."""

    reason, code, status = "IDEMPOTENCY.IN_PROGRESS", PlatformCode.CONFLICT, 409
    retryable, retry_after_s = Retryable.YES, 1
    cause = "The first call with this key has not ended yet."
    cure = (
        "Wait for the end of the first call, which the details name, or make the same call again after "
        "`retry_after_s` seconds."
    )


class AnswerErased(Problem):
    """The values of this answer were erased."""

    reason, code, status = "ANSWER.ERASED", PlatformCode.NOT_FOUND, 410
    cause = (
        "The call succeeded, and what was stored of its answer has been erased since. That it took place stays proven."
    )
    cure = "Make a new call if the answer is needed again, under a new key where you send one."


def find_cut_remedy(version: ToolVersion | None) -> str:
    """What to do about a call of this version whose run was cut off."""
    only_reads = version is not None and version.side_effect in ("None", "Read")
    return CALL_AGAIN if only_reads else OutcomeUnknown.cure
