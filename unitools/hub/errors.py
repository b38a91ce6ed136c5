"""Hub errors: what can go wrong between a program and a hub.

A :class:`Refused` is the hub's own no, one class for each code of its catalogue of problems; programs branch on the class or on
``reason``. None of them holds the API key. ::

    HubError
     ├── Unreachable           no answer came; whether the request arrived is in ``may_have_arrived``
     ├── NotUnderstood         an answer that is none of a hub's
     ├── StillRunning          the time is over, the call goes on: ``call_id`` finds it again
     └── Refused               code, reason, retryable, remedy, details, status, call_id
          ├── InvalidArgument, Unauthorized, Forbidden, NotFound, Conflict, RateLimited, TimedOut, UpstreamError
          ├── NeedsUserConfirmation, ComplianceBlocked, PriceChanged, OutOfStock, AddressInvalid
          └── Internal
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


class HubError(Exception):
    """Base of the tree."""


class Unreachable(HubError):
    """No answer came from the hub."""

    def __init__(self, message: str, *, may_have_arrived: bool) -> None:
        super().__init__(message)
        self.may_have_arrived = may_have_arrived


class NotUnderstood(HubError):
    """What answered does not answer as a hub does: another program, or a proxy. ``status`` is its HTTP status."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class StillRunning(HubError, TimeoutError):
    """The time given to a call or a run is over, and it has not ended. It goes on; ``wait`` or ``wait_for_run`` finds its answer."""

    def __init__(self, message: str, *, call_id: str, state: str) -> None:
        super().__init__(message)
        self.call_id, self.state = call_id, state


class Refused(HubError):
    """The hub says no. ``remedy`` is the smallest change that would help; ``retryable`` is ``no``, ``yes``, ``same_key`` or
    ``after_action``; ``executed`` is None where nobody knows whether the tool ran.
    """

    code: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str = "",
        retryable: str = "no",
        remedy: str = "",
        details: Mapping[str, Any] | None = None,
        status: int = 0,
        retry_after_s: float | None = None,
        call_id: str = "",
        warnings: tuple[str, ...] = (),
        error_type: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code  # type: ignore[misc]  # what the hub said, also where this version has no class for it
        self.reason = reason
        self.retryable = retryable
        self.remedy = remedy
        self.details = dict(details or {})
        self.status = status
        self.retry_after_s = retry_after_s
        self.call_id = call_id
        self.warnings = warnings
        self.error_type = error_type  # the older tool service's word, where it had one

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.reason or self.code}: {self.message}", self.remedy) if part)


class InvalidArgument(Refused):
    code = "INVALID_ARGUMENT"


class Unauthorized(Refused):
    code = "UNAUTHORIZED"


class Forbidden(Refused):
    code = "FORBIDDEN"


class NotFound(Refused):
    code = "NOT_FOUND"


class Conflict(Refused):
    code = "CONFLICT"


class RateLimited(Refused):
    code = "RATE_LIMITED"


class TimedOut(Refused):
    code = "TIMEOUT"


class UpstreamError(Refused):
    code = "UPSTREAM_ERROR"


class NeedsUserConfirmation(Refused):
    code = "NEEDS_USER_CONFIRMATION"


class ComplianceBlocked(Refused):
    code = "COMPLIANCE_BLOCKED"


class PriceChanged(Refused):
    code = "PRICE_CHANGED"


class OutOfStock(Refused):
    code = "OUT_OF_STOCK"


class AddressInvalid(Refused):
    code = "ADDRESS_INVALID"


class Internal(Refused):
    code = "INTERNAL"


BY_CODE: dict[str, type[Refused]] = {each.code: each for each in Refused.__subclasses__()}


def build_refusal(
    error: Mapping[str, Any], *, status: int = 0, call_id: str = "", warnings: tuple[str, ...] = ()
) -> Refused:
    """The exception for the ``error`` of an envelope. A code that this version does not know is a plain Refused."""
    code = str(error.get("code", ""))
    after = error.get("retry_after_s")
    return BY_CODE.get(code, Refused)(
        str(error.get("message", "")),
        code=code,
        reason=str(error.get("reason", "")),
        retryable=str(error.get("retryable", "no")),
        remedy=str(error.get("remedy", "")),
        details=error.get("details") if isinstance(error.get("details"), dict) else None,
        status=status,
        retry_after_s=float(after) if isinstance(after, int | float) else None,
        call_id=call_id,
        warnings=warnings,
        error_type=str(error.get("error_type") or ""),
    )
