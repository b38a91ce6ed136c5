"""What can go wrong with a call?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable
from unitools import runtime


class CapabilityBlocked(Problem):
    """The tool needs or tried something that it was not granted."""

    reason, code, status = "SANDBOX.CAPABILITY_BLOCKED", PlatformCode.FORBIDDEN, 403


class SandboxStartFailed(Problem):
    """No sandbox could be started, so the tool did not run."""

    reason, code, status = "SANDBOX.START_FAILED", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5


class ImageMissing(Problem):
    """The image that the tool's sandbox is made of is not there, so the tool did not run."""

    reason, code, status = "SANDBOX.IMAGE_MISSING", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.AFTER_ACTION


class ToolTimedOut(Problem):
    """The tool ran out of time and was stopped."""

    reason, code, status = "SANDBOX.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable = Retryable.AFTER_ACTION


class ResourceExceeded(Problem):
    """The tool exceeded its resource limits and was stopped."""

    reason, code, status = "SANDBOX.RESOURCE_EXCEEDED", PlatformCode.UPSTREAM_ERROR, 502


class SecretLeak(Problem):
    """The tool gave a secret away, so its result was withheld."""

    reason, code, status = "SANDBOX.SECRET_LEAK", PlatformCode.COMPLIANCE_BLOCKED, 502
    retryable = Retryable.AFTER_ACTION


class OutcomeUnknown(Problem):
    """The run was interrupted; whether the tool had its effect is unknown."""

    reason, code, status = "SANDBOX.WORKER_LOST", PlatformCode.UPSTREAM_ERROR, 503
    retryable = Retryable.AFTER_ACTION


class ToolFailed(Problem):
    """The tool failed."""

    reason, code, status = "TOOL.EXECUTION_FAILED", PlatformCode.UPSTREAM_ERROR, 502


class RunCancelled(Problem):
    """The run was ended before the tool had finished, because the hub was stopping."""

    reason, code, status = "SANDBOX.CANCELLED", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.AFTER_ACTION, 10


class HubStopping(Problem):
    """The hub was stopping, so the tool was not run."""

    reason, code, status = "SANDBOX.STOPPING", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 10


class BuildChanged(Problem):
    """The tool's code is not the code that was reviewed, so it was not run."""

    reason, code, status = "TOOL.BUILD_CHANGED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class OutputInvalid(Problem):
    """The tool returned an invalid result."""

    reason, code, status = "SCHEMA.OUTPUT_INVALID", PlatformCode.UPSTREAM_ERROR, 502


class QueueUnavailable(Problem):
    """The queue does not answer, so the call was cancelled before it started."""

    reason, code, status = "QUEUE.UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5


class QueueTimeout(Problem):
    """No worker was free in time, so the call was not started."""

    reason, code, status = "QUEUE.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable, retry_after_s = Retryable.YES, 5


class CallCancelled(Problem):
    """The call was cancelled."""

    reason, code, status = "REQUEST.CANCELLED", PlatformCode.CONFLICT, 409


class NoSuchFile(Problem):
    """There is no file with this path here."""

    reason, code, status = "FILE.UNKNOWN", PlatformCode.NOT_FOUND, 404


class FilesFull(Problem):
    """The tenant's files take all the room that they may."""

    reason, code, status = "FILE.NO_ROOM", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class FilesTooLarge(Problem):
    """A call may read more files than can be given to one run."""

    reason, code, status = "FILE.TOO_MANY_TO_READ", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class IdempotencyKeyReused(Problem):
    """The Idempotency-Key was already used with different arguments."""

    reason, code, status = "IDEMPOTENCY.KEY_REUSED", PlatformCode.CONFLICT, 422


class IdempotencyInProgress(Problem):
    """The first call with this Idempotency-Key is still running."""

    reason, code, status = "IDEMPOTENCY.IN_PROGRESS", PlatformCode.CONFLICT, 409
    retryable, retry_after_s = Retryable.YES, 1


class ToolSaysInvalidArgument(Problem):
    """The tool cannot work with these arguments."""

    reason, code, status = "DOMAIN.INVALID_ARGUMENT", PlatformCode.INVALID_ARGUMENT, 422


class ToolSaysNotFound(Problem):
    """The tool does not know what the arguments name."""

    reason, code, status = "DOMAIN.NOT_FOUND", PlatformCode.NOT_FOUND, 404


class ToolSaysConflict(Problem):
    """The tool found a conflict with what is there."""

    reason, code, status = "DOMAIN.CONFLICT", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class ToolSaysUpstreamError(Problem):
    """Something that the tool depends on failed."""

    reason, code, status = "DOMAIN.UPSTREAM_ERROR", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.YES


class ToolSaysNeedsConfirmation(Problem):
    """The tool asks for a person's confirmation first."""

    reason, code, status = "DOMAIN.NEEDS_USER_CONFIRMATION", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION


class ToolSaysComplianceBlocked(Problem):
    """A compliance rule forbids this."""

    reason, code, status = "DOMAIN.COMPLIANCE_BLOCKED", PlatformCode.COMPLIANCE_BLOCKED, 403


class PriceChanged(Problem):
    """The price has changed."""

    reason, code, status = "DOMAIN.PRICE_CHANGED", PlatformCode.PRICE_CHANGED, 409
    retryable = Retryable.AFTER_ACTION


class OutOfStock(Problem):
    """There is not enough stock."""

    reason, code, status = "DOMAIN.OUT_OF_STOCK", PlatformCode.OUT_OF_STOCK, 409


class AddressInvalid(Problem):
    """The address is not valid."""

    reason, code, status = "DOMAIN.ADDRESS_INVALID", PlatformCode.ADDRESS_INVALID, 422


# What a tool may say "no" with (SPEC-6): the closed set of unitools.runtime, and nothing of its own.
DOMAIN_PROBLEMS: dict[str, type[Problem]] = {
    runtime.InvalidArgument.code: ToolSaysInvalidArgument,
    runtime.NotFound.code: ToolSaysNotFound,
    runtime.Conflict.code: ToolSaysConflict,
    runtime.UpstreamError.code: ToolSaysUpstreamError,
    runtime.NeedsConfirmation.code: ToolSaysNeedsConfirmation,
    runtime.ComplianceBlocked.code: ToolSaysComplianceBlocked,
    runtime.PriceChanged.code: PriceChanged,
    runtime.OutOfStock.code: OutOfStock,
    runtime.AddressInvalid.code: AddressInvalid,
}
