"""What can go wrong with evidence?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class KeyUnavailable(Problem):
    """The key for stored values is not available, so they cannot be read or written; nothing was changed."""

    reason, code, status = "EVIDENCE.KEY_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.AFTER_ACTION, 60


class RevealReasonTooShort(Problem):
    """Revealing stored values needs a reason of at least 10 characters."""

    reason, code, status = "EVIDENCE.REASON_TOO_SHORT", PlatformCode.INVALID_ARGUMENT, 422
