"""What can go wrong when a configuration file is applied?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class ConfigurationInvalid(Problem):
    """This configuration file cannot be applied as it is."""

    reason, code, status = "CONFIGURATION.INVALID", PlatformCode.INVALID_ARGUMENT, 422


class PlanStale(Problem):
    """What is there now no longer gives the plan that was looked at."""

    reason, code, status = "CONFIGURATION.PLAN_STALE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
