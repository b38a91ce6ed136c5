"""Problems of kept files: what can go wrong with the files that a tool keeps from call to call."""

from kernel.problems import PlatformCode, Problem, Retryable


class ToolFilesRefused(Problem):
    """The tool left files that cannot be kept."""

    reason, code, status = "TOOL.FILES_NOT_KEPT", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The tool has run, and left too many or too large files, or something that is no plain file. Nothing was kept."
    )
    cure = "Check what the call did outside. Have the tool keep less, empty what it keeps, or ask its author for more room."


class ToolFilesChanged(Problem):
    """The files that the tool keeps were changed while the call ran."""

    reason, code, status = "TOOL.FILES_CHANGED", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "Somebody emptied what the tool keeps while the call ran, so what it left is not kept. The tool has run."
    cure = "Check whether an effect outside took place. If another call does no harm, call again: it begins with what is there now."


class ToolFilesNeedPerson(Problem):
    """The tool keeps files of a person, and the call is made for none."""

    reason, code, status = "TOOL.FILES_NEED_PERSON", PlatformCode.INVALID_ARGUMENT, 422
    cause = "The tool keeps files of each person apart, and the call does not say for whom it is made."
    cure = "Say in the call for whom it is made."
