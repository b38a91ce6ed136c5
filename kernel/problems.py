"""Problems: what can go wrong, and what each means to the caller.

Every refusal and failure is one class of the tree under :class:`Problem`. A class has three vocabularies (requirements
§8): ``code`` is the closed platform set of SPEC-6, ``reason`` is the dotted code, and ``error_type`` is derived from the
reason for callers of the older tool service. The title is the docstring; ``cause`` says how it comes about, ``cure``
what people can do about it. Packages add their own classes in their ``problems.py``; :func:`collect_problem_classes` lists
them all, and
the pages are made from it::

    Problem
     ├── Unauthenticated, Forbidden, NotFound, Conflict
     ├── Malformed, TooLarge, TooManyRequests, SchemaInvalid, MethodNotAllowed, UnsupportedMediaType
     ├── DatabaseUnavailable, StoppedUnanswered
     └── Internal
"""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from kernel.http.rate_limit_fields import RateLimitState


class PlatformCode(StrEnum):
    """The closed set of SPEC-6, and INTERNAL (RFC 0001 in docs/rfc)."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHORIZED = "UNAUTHORIZED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    TIMEOUT = "TIMEOUT"
    UPSTREAM_ERROR = "UPSTREAM_ERROR"
    NEEDS_USER_CONFIRMATION = "NEEDS_USER_CONFIRMATION"
    COMPLIANCE_BLOCKED = "COMPLIANCE_BLOCKED"
    PRICE_CHANGED = "PRICE_CHANGED"
    OUT_OF_STOCK = "OUT_OF_STOCK"
    ADDRESS_INVALID = "ADDRESS_INVALID"
    INTERNAL = "INTERNAL"


class Retryable(StrEnum):
    """Whether sending the same call again can help."""

    NO = "no"
    YES = "yes"
    SAME_KEY = "same_key"  # only with the same Idempotency-Key
    AFTER_ACTION = "after_action"  # once somebody has done what ``remedy`` says


class Problem(Exception):
    """Base of the tree. ``detail`` is one sentence that a person can act on; ``details`` is for programs.

    ``remedy`` is the smallest change that would help this time; where nobody knows it closer, what cures any of the class.
    ``limit`` is the one that is used up, where it is one of requests in a time.
    """

    reason: ClassVar[str] = ""
    cause: ClassVar[str] = ""
    cure: ClassVar[str] = ""
    code: ClassVar[PlatformCode]
    status: ClassVar[int]
    retryable: ClassVar[Retryable] = Retryable.NO
    retry_after_s: ClassVar[int | None] = None
    refusal_of_tool: ClassVar[bool] = False  # a no that the tool is there to say, and nobody's fault
    limit: RateLimitState | None = None

    def __init__(
        self,
        detail: str = "",
        *,
        details: dict[str, Any] | None = None,
        remedy: str = "",
        retry_after_s: int | None = None,
    ) -> None:
        self.detail = detail or self.title()
        self.details = details or {}
        self.remedy = remedy or self.cure
        self.retry_after = retry_after_s if retry_after_s is not None else self.retry_after_s
        super().__init__(self.detail)

    @classmethod
    def title(cls) -> str:
        return inspect.cleandoc(cls.__doc__ or "").splitlines()[0]

    @classmethod
    def error_type(cls) -> str:
        """The word of SVC-4 and SVC-7 for this reason; empty where the older service had none."""
        if cls.code is PlatformCode.TIMEOUT:
            return "TOOL_TIMEOUT_ERROR"
        ran = ("TOOL.EXECUTION_FAILED", "SANDBOX.", "DOMAIN.", "PROVIDER.", "UNKNOWN.", "SCHEMA.OUTPUT")
        return "TOOL_EXECUTION_ERROR" if cls.reason.startswith(ran) else ""

    def to_error(self) -> dict[str, Any]:
        """The ``error`` member of a SPEC-4 envelope."""
        error: dict[str, Any] = {
            "code": str(self.code),
            "reason": self.reason,
            "message": self.detail,
            "details": self.details,
            "retryable": str(self.retryable),
        }
        if self.remedy:
            error["remedy"] = self.remedy
        if self.error_type():
            error["error_type"] = self.error_type()
        if self.retry_after is not None:
            error["retry_after_s"] = self.retry_after
        return error


class Unauthenticated(Problem):
    """Credentials are missing or not valid."""

    reason, code, status = "AUTH.UNAUTHENTICATED", PlatformCode.UNAUTHORIZED, 401
    retryable = Retryable.AFTER_ACTION
    cause = "The request carried no key, token or session, or one that is unknown, has ended or was revoked."
    cure = "Send a key that is in force as `Authorization: Bearer …`, or sign in again."


class Forbidden(Problem):
    """This principal may not do that."""

    reason, code, status = "AUTH.FORBIDDEN", PlatformCode.FORBIDDEN, 403
    retryable = Retryable.AFTER_ACTION
    cause = "Who asks is known, but lacks the scope or the permission for this, or was disabled."
    cure = (
        "Ask an owner of the tenant for the scope or permission that the answer names, or for the agent or key "
        "to be put in force again."
    )


class NotFound(Problem):
    """There is no such thing here."""

    reason, code, status = "RESOURCE.NOT_FOUND", PlatformCode.NOT_FOUND, 404
    cause = (
        "Nothing in this tenant has that name or id. Whatever belongs to another tenant is answered in the same way."
    )
    cure = "Check the address and the id, and that the credentials are those of the right tenant."


class Conflict(Problem):
    """The object is not in a state in which this can be done."""

    reason, code, status = "STATE.CONFLICT", PlatformCode.CONFLICT, 409
    retryable = Retryable.AFTER_ACTION
    cause = "The thing has changed since it was read, or its state does not allow this change."
    cure = "Read it again, and decide by the state that it has now."


class Malformed(Problem):
    """The request could not be read."""

    reason, code, status = "REQUEST.MALFORMED", PlatformCode.INVALID_ARGUMENT, 400
    cause = "The request is not well-formed: for instance a body that is not JSON, or text that is not UTF-8."
    cure = "Correct the request as the message says, and send it again."


class PreconditionFailed(Problem):
    """It has changed since it was read."""

    reason, code, status = "STATE.PRECONDITION_FAILED", PlatformCode.CONFLICT, 412
    retryable = Retryable.AFTER_ACTION
    cause = "The request was to be carried out only for a state that the caller knows (`If-Match`), and there is another one now."
    cure = "Read it again, look at what has changed, and send the change with the new ETag."


class UnknownApiVersion(Problem):
    """The API has no version of this date."""

    reason, code, status = "REQUEST.UNKNOWN_API_VERSION", PlatformCode.INVALID_ARGUMENT, 400
    cause = "The request names a version of the API that this hub does not have: it is misspelled, too new, or no longer served."
    cure = "Name a version that the answer lists, or none, which means the newest."


class MethodNotAllowed(Problem):
    """This address does not take that method."""

    reason, code, status = "REQUEST.METHOD_NOT_ALLOWED", PlatformCode.INVALID_ARGUMENT, 405
    cause = "The address exists, and takes other methods than this one."
    cure = "Use one of the methods that the API reference names for this address."


class UnsupportedMediaType(Problem):
    """The request's content type is not one that this address reads."""

    reason, code, status = "REQUEST.UNSUPPORTED_MEDIA_TYPE", PlatformCode.INVALID_ARGUMENT, 415
    cause = "The Content-Type of the request is missing or is one that this address does not read."
    cure = "Send the body as application/json, or as what the API reference names for this address."


class NotAcceptable(Problem):
    """This address cannot answer in any of the asked media types."""

    reason, code, status = "REQUEST.NOT_ACCEPTABLE", PlatformCode.INVALID_ARGUMENT, 406
    cause = "The Accept header names only media types that this address does not have."
    cure = "Accept application/json, or leave the header out."


class TooLarge(Problem):
    """The request is too large."""

    reason, code, status = "REQUEST.TOO_LARGE", PlatformCode.INVALID_ARGUMENT, 413
    cause = "The body, the arguments or the file are larger than may be sent; the answer names the limit."
    cure = "Send less in one request."


class HeadTooLarge(Problem):
    """The headers of the request are too large."""

    reason, code, status = "REQUEST.HEAD_TOO_LARGE", PlatformCode.INVALID_ARGUMENT, 431
    cause = "The headers, or what stands behind a body in pieces, are larger or more than may be sent; the answer names the limits."
    cure = "Send fewer and shorter headers. In a browser, remove the cookies of this site and sign in again."


class AddressTooLong(Problem):
    """The address of the request is too long."""

    reason, code, status = "REQUEST.ADDRESS_TOO_LONG", PlatformCode.INVALID_ARGUMENT, 414
    cause = "The path and the query together are longer than may be sent; the answer names the limit."
    cure = "Ask for less in one address: fewer terms of a search, or a body instead of a query."


class RequestTooSlow(Problem):
    """The request did not arrive in time."""

    reason, code, status = "REQUEST.TOO_SLOW", PlatformCode.TIMEOUT, 408
    retryable = Retryable.YES
    cause = "The head of the request was not whole within seconds, or its body came to a standstill. Nothing was begun."
    cure = "Send it again over a connection that works, in one piece."


class TooManyRequests(Problem):
    """That was tried too often in too short a time."""

    reason, code, status = "REQUEST.TOO_MANY", PlatformCode.RATE_LIMITED, 429
    retryable, retry_after_s = Retryable.YES, 60
    cause = "The same was tried again and again from one place in a short time, as somebody who guesses would."
    cure = "Wait for `retry_after_s` seconds, then try again."


class SchemaInvalid(Problem):
    """The input does not match its schema."""

    reason, code, status = "SCHEMA.VALIDATION_FAILED", PlatformCode.INVALID_ARGUMENT, 422
    cause = (
        "Fields are missing, unknown or of another type than they may be. Each finding names its place with a "
        "JSON pointer."
    )
    cure = "Correct the fields that the answer names, and send it again."

    @classmethod
    def at(cls, pointer: str, message: str) -> SchemaInvalid:
        """One finding, which is all of it. ``pointer`` leads to the field of the body or the form."""
        return cls(message, details={"findings": [{"pointer": pointer, "message": message}]})


class StateUnfit(SchemaInvalid):
    """A field says what does not fit what the hub has now."""

    reason, code, status = "STATE.UNFIT", PlatformCode.CONFLICT, 409
    cause = "The request can be read and is well formed, but names something that is not there, is there already, or is over."
    cure = "Read what there is now, and correct the fields that the answer names."


class DatabaseUnavailable(Problem):
    """The database does not answer, so nothing can be decided or recorded now."""

    reason, code, status = "EVIDENCE.UNAVAILABLE", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.YES, 5
    cause = "The database does not answer. Nothing runs that cannot be recorded."
    cure = "Try again after `retry_after_s` seconds. Operators: check that the database runs and can be reached."


class StoppedUnanswered(Problem):
    """The hub is being stopped, and there was no answer yet."""

    reason, code, status = "HUB.STOPPING", PlatformCode.UPSTREAM_ERROR, 503
    retryable, retry_after_s = Retryable.SAME_KEY, 5
    cause = "The process that the caller waited for was ended: somebody stopped the hub, or starts it anew."
    cure = (
        "Ask again with the same key: the call that it names is answered, and not made twice. Without a key, look at what became "
        "of the call before making it again; each that was begun has an end once the hub runs again."
    )


class Internal(Problem):
    """Something went wrong on our side."""

    reason, code, status = "UNKNOWN.INTERNAL", PlatformCode.INTERNAL, 500
    retryable = Retryable.SAME_KEY
    cause = (
        "An error that the hub does not know by name. It was logged and counted, and whoever operates the hub "
        "sees it on the overview."
    )
    cure = (
        "Before you call again, check whether it took effect; only with the same key that is not needed. If it stays, report "
        "it to whoever operates the hub, with the request id where you know it."
    )


def collect_problem_classes() -> list[type[Problem]]:
    """Every problem that has been imported, by reason. Two classes with one reason are a mistake."""
    found: dict[str, type[Problem]] = {}
    pending = list(Problem.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if not cls.reason:
            continue
        if found.setdefault(cls.reason, cls) is not cls:
            raise RuntimeError(f"{cls.__name__} and {found[cls.reason].__name__} share the reason {cls.reason}.")
    return [found[reason] for reason in sorted(found)]


def find_problem_class(reason: str) -> type[Problem]:
    return next((cls for cls in collect_problem_classes() if cls.reason == reason), Internal)
