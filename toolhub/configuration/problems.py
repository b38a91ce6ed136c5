"""Problems of configuration: what can go wrong when a configuration file is applied."""

from kernel.problems import PlatformCode, Problem, Retryable


class ConfigurationInvalid(Problem):
    """This configuration file cannot be applied as it is."""

    reason, code, status = "CONFIGURATION.INVALID", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "The file names what does not exist, or holds something that a service would refuse; each finding has "
        "its place."
    )
    cure = "Correct what the findings name and make a plan again. Nothing was applied."


class PlanStale(Problem):
    """What is there now no longer gives the plan that was looked at."""

    reason, code, status = "CONFIGURATION.PLAN_STALE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Somebody changed the tenant between the plan and its application."
    cure = "Make a plan again, look at it, and apply that one."
