"""What can go wrong when somebody asks whether they may?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class NoGrant(Problem):
    """No grant lets this agent call this tool."""

    reason, code, status = "AUTH.NO_GRANT", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class ScopeMissing(Problem):
    """No grant of this agent holds a scope that the tool asks for."""

    reason, code, status = "AUTH.SCOPE_MISSING", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class ConditionUnmet(Problem):
    """The arguments do not meet the conditions of the grant."""

    reason, code, status = "AUTH.CONDITION_UNMET", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class QuotaExceeded(Problem):
    """A budget has no room for this call."""

    reason, code, status = "QUOTA.BUDGET_EXCEEDED", PlatformCode.RATE_LIMITED, 429
    retryable = Retryable.YES


class TooManyAtOnce(QuotaExceeded):
    """As many calls as may run at the same time are running."""

    reason, code, status = "QUOTA.CONCURRENCY", PlatformCode.RATE_LIMITED, 429


class RateLimited(QuotaExceeded):
    """Calls come faster than they may."""

    reason, code, status = "QUOTA.RATE_LIMITED", PlatformCode.RATE_LIMITED, 429


class ConsentRequired(Problem):
    """A person must confirm this call."""

    reason, code, status = "POLICY.CONSENT_REQUIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION


class ConsentTooWide(Problem):
    """This consent is wider than may be asked for or given."""

    reason, code, status = "POLICY.CONSENT_TOO_WIDE", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION


class ConsentDenied(Problem):
    """A person has denied this call."""

    reason, code, status = "POLICY.CONSENT_DENIED", PlatformCode.FORBIDDEN, 403


class ConsentExpired(Problem):
    """Nobody has decided on this call in time."""

    reason, code, status = "POLICY.CONSENT_EXPIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION


class ConsentVoid(Problem):
    """What was approved is not what would run now."""

    reason, code, status = "POLICY.CONSENT_VOID", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION


class PolicyDenied(Problem):
    """Policy does not allow this call."""

    reason, code, status = "POLICY.DENY_TOOL", PlatformCode.FORBIDDEN, 403


class SimulationStale(Problem):
    """What this policy would change is not known."""

    reason, code, status = "POLICY.SIMULATION_STALE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class SelfApproval(Problem):
    """The one who asked may not decide."""

    reason, code, status = "POLICY.SELF_APPROVAL", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class ConsentNotNeeded(Problem):
    """This tool needs no consent."""

    reason, code, status = "POLICY.CONSENT_NOT_NEEDED", PlatformCode.CONFLICT, 409


class Halted(Problem):
    """A kill switch stops this call."""

    reason, code, status = "POLICY.HALTED", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class LastOwner(Problem):
    """A tenant is never left without an owner."""

    reason, code, status = "PEOPLE.LAST_OWNER", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class IssuerUnavailable(Problem):
    """The identity provider that vouches for this token does not answer, so the token cannot be checked now."""

    reason, code, status = "AUTH.ISSUER_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 30


class ObligationFailed(Problem):
    """The result could not be released as the policy demands, so it was withheld."""

    reason, code, status = "POLICY.OBLIGATION_FAILED", PlatformCode.COMPLIANCE_BLOCKED, 500
