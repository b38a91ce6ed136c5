"""What can go wrong when somebody asks whether they may?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class NoGrant(Problem):
    """No grant lets this agent call this tool."""

    reason, code, status = "AUTH.NO_GRANT", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class QuotaExceeded(Problem):
    """The calls that this grant allows are used up for now."""

    reason, code, status = "QUOTA.BUDGET_EXCEEDED", PlatformCode.RATE_LIMITED, 429
    retryable = Retryable.YES


class ConsentRequired(Problem):
    """A person must confirm this call."""

    reason, code, status = "POLICY.CONSENT_REQUIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION


class PolicyDenied(Problem):
    """Policy does not allow this call."""

    reason, code, status = "POLICY.DENY_TOOL", PlatformCode.FORBIDDEN, 403


class SelfApproval(Problem):
    """The one who asked may not decide."""

    reason, code, status = "POLICY.SELF_APPROVAL", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class ConsentNotNeeded(Problem):
    """This tool needs no consent."""

    reason, code, status = "POLICY.CONSENT_NOT_NEEDED", PlatformCode.CONFLICT, 409
