"""Problems of artifacts: what can go wrong with what a call leaves, and with the links to it."""

from kernel.problems import PlatformCode, Problem, Retryable


class ArtifactsTooLarge(Problem):
    """The tool left more artifacts, or larger ones, than it may."""

    reason, code, status = "ARTIFACT.TOO_LARGE", PlatformCode.UPSTREAM_ERROR, 502
    cause = "What the tool left beside its result exceeds limits.artifacts or limits.artifact_bytes of its manifest, or of a grant."
    cure = "Ask for less, or ask the author of the tool to leave less or to raise the limits. The tool has run."


class ArtifactsFull(Problem):
    """The tenant's artifacts take all the room that they may."""

    reason, code, status = "ARTIFACT.NO_ROOM", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "What the call has left would take the tenant over the room that its artifacts may take. The tool has run."
    cure = "Remove artifacts that are not needed any more, or ask whoever operates the hub for more room."


class NoSuchArtifact(Problem):
    """There is no artifact with this id here."""

    reason, code, status = "ARTIFACT.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "The id is wrong, the artifact was removed, or it belongs to a call of another agent."
    cure = "Look at call.artifacts in the answer of the call."


class ArtifactLinkInvalid(Problem):
    """The link to this artifact was not made by this hub."""

    reason, code, status = "ARTIFACT.LINK_INVALID", PlatformCode.FORBIDDEN, 403
    cause = "Something of the address was changed or left out, or the secret of the hub was replaced since."
    cure = "Use the url of call.artifacts as it is, or send the key of the agent in place of the link's signature."


class ArtifactLinkExpired(Problem):
    """The link to this artifact is no longer good."""

    reason, code, status = "ARTIFACT.LINK_EXPIRED", PlatformCode.NOT_FOUND, 410
    cause = "A link to an artifact is good for a day after its call has ended."
    cure = "Get the artifact with the key of the agent: leave out what follows the question mark of the link."
