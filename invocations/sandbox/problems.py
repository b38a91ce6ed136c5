"""Problems of runs: what can go wrong with the time of a run, and with a service that answers it."""

from __future__ import annotations

from typing import Any

from invocations.problems import OutcomeUnknown
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


class CredentialUnusable(Problem):
    """A secret cannot be sent to the service, so nobody was asked."""

    reason, code, status = "SERVICE.CREDENTIAL_UNUSABLE", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The secret holds what the place that the operation has for it cannot, or its manifest keeps it from this host."
    )
    cure = "Operators: set the secret anew in the tool's installation, without line breaks or spaces at its ends."


class ServiceNotDry(Problem):
    """The service has no dry runs, so nobody was asked."""

    reason, code, status = "SERVICE.NO_DRY_RUN", PlatformCode.INVALID_ARGUMENT, 422
    cause = "An operation of a service takes place at the service, which does not know that a call is a dry run."
    cure = "Use preflight to see whether the call would be allowed, or call an operation that only reads."


class ServiceUnreachable(Problem):
    """The service could not be reached, and nothing was sent to it."""

    reason, code, status = "SERVICE.UNREACHABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5
    cause = "Its name did not resolve, nobody answered, or the run ended first. The gate has seen that no byte of the request left."
    cure = "Call again after `retry_after_s` seconds: nothing took place. Operators: look whether the service is there."


class ServiceUntrusted(Problem):
    """Nobody vouches for who answers at the service's address, so nothing was sent."""

    reason, code, status = "SERVICE.CERTIFICATE_REFUSED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The certificate is of another host, has run out, or is of an authority that this hub does not know."
    cure = "Operators: have the service's certificate corrected, or name its authority in TOOLHUB_SANDBOX_CA_FILE."


class ServiceRedirected(Problem):
    """The service pointed to another address, which is not followed."""

    reason, code, status = "SERVICE.REDIRECTED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The service answered with a redirect. Another address is another operation, which nobody has reviewed."
    cure = "Tell the author of the tool: a new version has to name the address where the operation is now."


class ServiceDenied(Problem):
    """The service does not take the tool's credential."""

    reason, code, status = "SERVICE.ACCESS_DENIED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The service answered 401, 403 or 407: the secret is missing, has run out, or has too few rights for this."
    cure = "Operators: set a secret with the rights that the operation needs in the tool's installation."


class ServiceBusy(Problem):
    """The service asks to be called later."""

    reason, code, status = "SERVICE.BUSY", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 30
    cause = "The service answered 429 or 503: it is asked too often, or is not there for anybody now."
    cure = "Call again after `retry_after_s` seconds, which is what the service says where it says something."


class ServiceFailed(Problem):
    """The service failed."""

    reason, code, status = "SERVICE.FAILED", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = "The service answered with an error of its own. How far it got before that, it does not say."
    cure = "Look whether the effect took place before you call again."


class ServiceAnswerUnusable(Problem):
    """The service's answer cannot be used."""

    reason, code, status = "SERVICE.ANSWER_UNUSABLE", PlatformCode.UPSTREAM_ERROR, 502
    retryable = Retryable.AFTER_ACTION
    cause = (
        "The answer is too large, is no HTTP, or is written otherwise than the operation says, for example as a page."
    )
    cure = "Ask for less, for example a smaller page. The status in `details` says whether the service did what it was asked."


class ServiceAnswerLost(OutcomeUnknown):
    """The service was asked, and its answer was lost; whether it did what it was asked is unknown."""

    reason = "SERVICE.ANSWER_LOST"
    cause = "The request had left when the connection, or the run, ended before the answer was whole."
    cure = "Look at the service whether the effect took place before you call again."
