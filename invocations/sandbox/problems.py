"""Problems of runs: what can go wrong with the time of a run."""

from __future__ import annotations

from typing import Any

from kernel.problems import PlatformCode, Problem, Retryable


class LoadTimedOut(Problem):
    """The tool's code was not loaded in time, so the tool was not called."""

    reason, code, status = "SANDBOX.LOAD_TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable, retry_after_s = Retryable.YES, 30
    cause = (
        "Importing the tool's code took longer than TOOLHUB_SANDBOX_LOAD_S, or its own modules alone, by a call, more than 10 s "
        "beside the time in which no processor was free. None of that counts against the tool's own limit."
    )
    cure = (
        "Call again after `retry_after_s` seconds; if there is none, check for effects first, and use a new key where you send one. "
        "Operators: with many tools the host is too busy; with one, its modules do at import what belongs into the call."
    )

    def __init__(
        self,
        detail: str = "",
        *,
        details: dict[str, Any] | None = None,
        remedy: str = "",
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail, details=details, remedy=remedy, retry_after_s=retry_after_s)
        if self._in_the_call:
            self.retry_after = None

    @property
    def _in_the_call(self) -> bool:
        """Code of the tool has run, so the key stays with this call, and waiting does not help."""
        return "import_s" in self.details

    def to_error(self) -> dict[str, Any]:
        error = super().to_error()
        return error | {"retryable": str(Retryable.AFTER_ACTION)} if self._in_the_call else error


class ToolTimedOut(Problem):
    """The tool ran out of time and was stopped."""

    reason, code, status = "SANDBOX.TIMEOUT", PlatformCode.TIMEOUT, 504
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The tool did not finish within its limit, which the answer names with who set it. It may have had its effect."
    )
    cure = (
        "Check whether the effect took place; then make a new call, under a new key where you send one, with less to do, or "
        "have the limit raised."
    )
