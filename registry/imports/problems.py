"""Problems of imports: why a source, or something of it, cannot be brought."""

from kernel.problems import PlatformCode, Problem, Retryable


class SourceUnfit(Problem):
    """The source cannot be brought as it is."""

    reason, code, status = "IMPORT.SOURCE_UNFIT", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "A document, or what a server lists, holds something that no tool of a hub can be made of, or that a reader would not see: "
        "the answer says what and where."
    )
    cure = "Do what the answer says, or leave this operation or tool out. What was brought before stays as it was."


class SourceUnreachable(Problem):
    """The server does not list its tools to this hub."""

    reason, code, status = "IMPORT.SOURCE_UNREACHABLE", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.YES
    cause = "The server does not answer, refuses the hub, speaks no MCP, or lies where the hub does not send requests."
    cure = "Correct the address or the token. Addresses within a private network are the operator's to allow."


class ImportUnready(Problem):
    """The source has not been read yet, or could not be."""

    reason, code, status = "IMPORT.UNREADY", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "A server of a package is started in a sandbox first, to see what it lists; until then there is nothing to choose from."
    cure = "Wait until the page shows what it lists. If it shows why the server could not be started, correct that."


class TooManyImports(Problem):
    """The tenant has as many imports as it may have."""

    reason, code, status = "IMPORT.TOO_MANY", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Each source that is brought keeps its document or list, so that the next one can be compared with it."
    cure = "Remove an import that is not needed any more. Versions that were made of it stay."
