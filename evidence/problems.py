"""What can go wrong with evidence?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class KeyUnavailable(Problem):
    """The key for stored values is not available, so they cannot be read or written; nothing was changed."""

    reason, code, status = "EVIDENCE.KEY_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.AFTER_ACTION, 60
    cause = (
        "The key file is missing, is another one than the values were stored with, or the stored values were changed."
    )
    cure = (
        "Operators: restore the key file from its backup; `manage.py doctor` says which key is missing. Then "
        "call again."
    )


class RevealReasonTooShort(Problem):
    """Revealing stored values needs a reason of at least 10 characters."""

    reason, code, status = "EVIDENCE.REASON_TOO_SHORT", PlatformCode.INVALID_ARGUMENT, 422
    cause = "Each look at stored values is kept with the reason for it, and the one that was given says too little."
    cure = "Write in at least 10 characters why you need to see the values."
