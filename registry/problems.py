"""What can go wrong with the catalogue?"""

from toolhub.kernel.problems import PlatformCode, Problem, Retryable


class ManifestInvalid(Problem):
    """The manifest cannot be registered as it is."""

    reason, code, status = "MANIFEST.INVALID", PlatformCode.INVALID_ARGUMENT, 422


class VersionExists(Problem):
    """This version exists already and never changes."""

    reason, code, status = "TOOL.VERSION_EXISTS", PlatformCode.CONFLICT, 409


class UnknownTool(Problem):
    """There is no tool with this id here."""

    reason, code, status = "TOOL.UNKNOWN", PlatformCode.NOT_FOUND, 404


class ToolNotEnabled(Problem):
    """This tool has not been enabled yet."""

    reason, code, status = "TOOL.NOT_ENABLED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class ToolPaused(Problem):
    """This tool is paused."""

    reason, code, status = "TOOL.PAUSED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class ToolRetired(Problem):
    """This tool is withdrawn."""

    reason, code, status = "TOOL.RETIRED", PlatformCode.NOT_FOUND, 410


class OwnSubmission(Problem):
    """Nobody reviews their own submission."""

    reason, code, status = "REVIEW.OWN_SUBMISSION", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION


class NotReviewed(Problem):
    """This version has not been approved."""

    reason, code, status = "REVIEW.NOT_APPROVED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class WrongBump(Problem):
    """The version number does not say what changed."""

    reason, code, status = "MANIFEST.WRONG_BUMP", PlatformCode.INVALID_ARGUMENT, 422


class NotAcknowledged(Problem):
    """A risky change of this version has not been acknowledged."""

    reason, code, status = "REVIEW.NOT_ACKNOWLEDGED", PlatformCode.INVALID_ARGUMENT, 422
    retryable = Retryable.AFTER_ACTION


class VersionYanked(Problem):
    """This version was withdrawn."""

    reason, code, status = "TOOL.YANKED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class DependenciesNotReady(Problem):
    """The packages that this tool needs are not installed yet, so it did not run."""

    reason, code, status = "SANDBOX.DEPENDENCIES_NOT_READY", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5


class NotTrustable(Problem):
    """This version may not run without a sandbox."""

    reason, code, status = "TOOL.NOT_TRUSTABLE", PlatformCode.CONFLICT, 409


class NotInstalled(Problem):
    """This tool is not installed here."""

    reason, code, status = "TOOL.NOT_INSTALLED", PlatformCode.NOT_FOUND, 404
    retryable = Retryable.AFTER_ACTION


class NotConfigured(Problem):
    """This installation lacks configuration or secrets that the tool needs."""

    reason, code, status = "TOOL.NOT_CONFIGURED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION


class UnknownSecret(Problem):
    """There is no secret with this name here."""

    reason, code, status = "SECRET.UNKNOWN", PlatformCode.NOT_FOUND, 404


class SecretInUse(Problem):
    """An installation uses this secret."""

    reason, code, status = "SECRET.IN_USE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
