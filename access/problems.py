"""Problems of access: what can go wrong when somebody asks whether they may."""

from typing import Any

from kernel.problems import PlatformCode, Problem, Retryable


class NoGrant(Problem):
    """No grant lets this agent call this tool."""

    reason, code, status = "AUTH.NO_GRANT", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "The agent has no grant that covers this tool, or the grant was revoked or has run out."
    cure = "Ask an operator for a grant for this tool; the details name the smallest that would do."


class DelegationRefused(Problem):
    """This grant cannot be handed on to this agent."""

    reason, code, status = "AUTH.DELEGATION_REFUSED", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The grant may not be handed on (any further), is not in force, or would go back to an agent that it came from."
    )
    cure = "Ask an operator for a grant that may be handed on, or name another agent."


class DelegationTooWide(Problem):
    """What is handed on would reach further than the grant that it comes from."""

    reason, code, status = "AUTH.DELEGATION_TOO_WIDE", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "An agent hands on what it holds or less; something that was asked for goes beyond that."
    cure = "Leave out or narrow what `details.findings` names, each with its place."


class ScopeMissing(Problem):
    """No grant of this agent holds a scope that the tool asks for."""

    reason, code, status = "AUTH.SCOPE_MISSING", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Grants cover the tool, but none of them has all the scopes that its manifest asks for."
    cure = "Ask an operator for a grant with the scopes that the answer names."


class ConditionUnmet(Problem):
    """The arguments do not meet the conditions of the grant."""

    reason, code, status = "AUTH.CONDITION_UNMET", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "A grant covers the tool only for certain arguments, and those of this call are others."
    cure = "Change the arguments so that they meet the conditions that the answer names, or ask for a wider grant."


class QuotaExceeded(Problem):
    """A budget has no room for this call."""

    reason, code, status = "QUOTA.BUDGET_EXCEEDED", PlatformCode.RATE_LIMITED, 429
    retryable = Retryable.YES
    cause = (
        "What the tenant, the agent, the tool or the grant may use in this window is used up or held by calls that run."
    )
    cure = "Wait for the next window, or ask an operator to raise the budget."

    def to_error(self) -> dict[str, Any]:
        """Where a budget leaves no time to wait for, waiting does not help: it is of 0, or of less than one call takes."""
        error, hopeless = super().to_error(), "budget" in self.details and self.retry_after is None
        return error | {"retryable": str(Retryable.AFTER_ACTION)} if hopeless else error


class TooManyAtOnce(QuotaExceeded):
    """As many calls as may run at the same time are running."""

    reason, code, status = "QUOTA.CONCURRENCY", PlatformCode.RATE_LIMITED, 429
    cause = "The limit of calls at the same time is reached, and this one would be one more."
    cure = "Try again when one of the others has ended, or ask an operator to raise the limit."


class RateLimited(QuotaExceeded):
    """Calls come faster than they may."""

    reason, code, status = "QUOTA.RATE_LIMITED", PlatformCode.RATE_LIMITED, 429
    cause = "More calls were made in a short time than the rate of the tenant, the agent, the tool or the grant allows."
    cure = "Slow down and call again when the rate has room again, or ask an operator to raise it."


class ConsentRequired(Problem):
    """A person must confirm this call."""

    reason, code, status = "POLICY.CONSENT_REQUIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The tool's manifest or a policy wants a person to agree first, and there is no consent that covers this call."
    )
    cure = "Ask a person who may decide to agree, and call again once they have."


class ConsentTooWide(Problem):
    """This consent is wider than may be asked for or given."""

    reason, code, status = "POLICY.CONSENT_TOO_WIDE", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION
    cause = "The tool or a policy allows consents for less, or for a shorter time, than was asked for."
    cure = "Ask for, or give, a consent that is no wider than the answer says."


class ConsentDenied(Problem):
    """A person has denied this call."""

    reason, code, status = "POLICY.CONSENT_DENIED", PlatformCode.FORBIDDEN, 403
    cause = "Somebody was asked about this call and said no; the answer has their reason."
    cure = "Do not send the same call again. Talk to who decided if the reason can be met."


class ConsentExpired(Problem):
    """Nobody has decided on this call in time."""

    reason, code, status = "POLICY.CONSENT_EXPIRED", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION
    cause = "The call waited for a person, and nobody decided before its time was over."
    cure = "Call again to ask once more; tell somebody who decides that it waits."


class FailureNotSeen(Problem):
    """The dry run of this call has failed, and the approval does not say that somebody has seen it."""

    reason, code, status = "POLICY.DRY_RUN_FAILED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Somebody has tried the call without effect before deciding on it, and the tool refused or failed."
    cure = "Read what the dry run answered. Confirm that you have seen it and approve, or deny the request."


class ConsentVoid(Problem):
    """What was approved is not what would run now."""

    reason, code, status = "POLICY.CONSENT_VOID", PlatformCode.NEEDS_USER_CONFIRMATION, 403
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The version of the tool or the policy changed between the decision and the run, or the consent was used "
        "by another call."
    )
    cure = "Call again; somebody is asked about what would run now."


class PolicyDenied(Problem):
    """Policy does not allow this call."""

    reason, code, status = "POLICY.DENY_TOOL", PlatformCode.FORBIDDEN, 403
    cause = "No rule of the policy in force permits this call, or a rule forbids it; the answer names the rules."
    cure = "Show the smallest change in the answer to somebody who drafts policies, or make another call."


class SimulationStale(Problem):
    """What this policy would change is not known."""

    reason, code, status = "POLICY.SIMULATION_STALE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The policy was not simulated on past calls, or the calls or the policy have changed since."
    cure = "Simulate it again, look at what it would change, then publish it."


class SelfApproval(Problem):
    """The one who asked may not decide."""

    reason, code, status = "POLICY.SELF_APPROVAL", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Two people must stand behind this, and one cannot be both."
    cure = "Ask somebody else who may decide."


class ConsentNotNeeded(Problem):
    """This tool needs no consent."""

    reason, code, status = "POLICY.CONSENT_NOT_NEEDED", PlatformCode.CONFLICT, 409
    cause = "Neither the tool's manifest nor a policy asks for a person's agreement."
    cure = "Call the tool; a grant is enough."


class Halted(Problem):
    """A kill switch stops this call."""

    reason, code, status = "POLICY.HALTED", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Somebody has stopped this tool, agent, tenant or the whole hub; the answer says when and why."
    cure = "Wait until an operator has lifted the kill switch."


class LastOwner(Problem):
    """A tenant is never left without an owner."""

    reason, code, status = "PEOPLE.LAST_OWNER", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "This change would leave the tenant without anybody who may give roles."
    cure = "Make somebody else an owner first."


class IssuerUnavailable(Problem):
    """The identity provider that vouches for this token does not answer, so the token cannot be checked now."""

    reason, code, status = "AUTH.ISSUER_UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 30
    cause = "The keys of the identity provider could not be fetched, and none that would fit are kept."
    cure = "Try again after `retry_after_s` seconds. Operators: check that the hub reaches the provider."


class AssertionRefused(Problem):
    """This identity assertion opens nothing."""

    reason, code, status = "AUTH.ASSERTION_REFUSED", PlatformCode.INVALID_ARGUMENT, 400
    retryable = Retryable.AFTER_ACTION
    cause = (
        "A program showed the token endpoint what an identity provider says of a person (ID-JAG), and it is for somebody else, not "
        "good any more, used already, not signed by a provider that may vouch here, or of a person who may not connect programs."
    )
    cure = "Ask the identity provider for a new one that fits what the answer says."
    oauth_error = "invalid_grant"


class AssertionWithoutScopes(AssertionRefused):
    """None of the scopes that were asked for may be vouched for."""

    reason, code, status = "AUTH.ASSERTION_WITHOUT_SCOPES", PlatformCode.INVALID_ARGUMENT, 400
    cause = "What the program asks for, the identity provider says and the tenant allows it to vouch for have nothing in common."
    cure = "Ask for fewer scopes, or an owner of the tenant to let the identity provider vouch for more."
    oauth_error = "invalid_scope"


class ObligationFailed(Problem):
    """The result could not be released as the policy demands, so it was withheld."""

    reason, code, status = "POLICY.OBLIGATION_FAILED", PlatformCode.COMPLIANCE_BLOCKED, 500
    cause = "A policy asks to mask, redact or mark the result, and that was not possible with the result that came."
    cure = (
        "Do not call again before somebody has looked: the tool has run. Operators: the end of the call names "
        "the obligation."
    )
