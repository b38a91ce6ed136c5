"""Problems of files: what can go wrong with the files of a tenant."""

from kernel.problems import PlatformCode, Problem, Retryable


class NoSuchFile(Problem):
    """There is no file with this path here."""

    reason, code, status = "FILE.UNKNOWN", PlatformCode.NOT_FOUND, 404
    cause = "The tenant has no file at this path, or it was removed."
    cure = "Look at the list of files and use one of its paths."


class FilesFull(Problem):
    """The tenant's files take all the room that they may."""

    reason, code, status = "FILE.NO_ROOM", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Storing this file would take the tenant over the room that its files may take."
    cure = "Remove files that are not needed any more, or ask whoever operates the hub for more room."


class FilesTooLarge(Problem):
    """A call may read more files than can be given to one run."""

    reason, code, status = "FILE.TOO_MANY_TO_READ", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The paths that the tool may read hold more than can be laid into one sandbox."
    cure = "Narrow the paths in the grant or the installation, or remove files."
