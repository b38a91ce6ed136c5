"""Outcomes: how a call may end other than with a value.

Tools, middlewares and dependencies raise these; they are decisions, so no layer treats them as a failure of another one.

Outcome
├── ToolError           tool_error         a "no" of the tool that the model can act on
│   └── InvalidOutput   tool_error         the tool returned something other than it declares
├── Deny                denied
├── NeedsApproval       needs_approval
├── ToolTimeout         timeout
├── CallInterrupted     cancelled          a middleware cancelled the layers inside it
├── MiddlewareFailed    middleware_error   a critical middleware failed
└── MissingDependency   internal           nothing to inject was given

The errors of :mod:`unitools.runtime` are outcomes too, under their own codes. Any other exception of a tool is a ``tool_error`` whose
text nobody is told: it may hold what was injected.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from unitools.calls import Status, ToolResult
from unitools.runtime import DomainError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


class Outcome(Exception):
    """``message`` and ``details`` are shown to the model: JSON, no personal data, nothing that was injected."""

    status: ClassVar[Status] = Status.TOOL_ERROR
    usual: ClassVar[str] = "The call did not succeed."
    code = "TOOL.ERROR"

    def __init__(self, message: str = "", *, code: str = "", **details: Any) -> None:
        super().__init__(message or self.usual)
        self.message = message or self.usual
        self.code = code or self.code
        self.details = details


class ToolError(Outcome):
    """A "no" of the tool that the model can act on."""


class InvalidOutput(ToolError):
    """The tool returned something other than it declares. ``findings``: where, and what is wrong there, without any value."""

    usual = "The tool returned something other than it declares{where}. This is an error of the tool, not of the call."
    code = "TOOL.OUTPUT_INVALID"

    def __init__(self, findings: Sequence[Mapping[str, Any]] = ()) -> None:
        told = format_findings(findings)
        super().__init__(self.usual.format(where=f" ({told})" if told else ""))
        self.findings = tuple(findings)

    @property
    def pointers(self) -> list[str]:
        """JSON Pointers into the result."""
        return ["".join(f"/{_escape(part)}" for part in each["loc"]) for each in self.findings]


class Deny(Outcome):
    """This call is not allowed."""

    status, usual, code = Status.DENIED, "Permission Denied", "TOOL.DENIED"


class NeedsApproval(Outcome):
    """Somebody has to approve this call first."""

    status, usual, code = Status.NEEDS_APPROVAL, "This call needs an approval first.", "TOOL.NEEDS_APPROVAL"


class ToolTimeout(Outcome):
    """There is no answer in time. A thread that is still at work cannot be stopped."""

    status, usual, code = Status.TIMEOUT, "There was no answer in time.", "TOOL.TIMEOUT"


class CallInterrupted(Outcome):
    """A middleware cancelled the layers inside it."""

    status, usual, code = Status.CANCELLED, "The call was cancelled.", "TOOL.CANCELLED"


class MiddlewareFailed(Outcome):
    """A critical middleware failed. ``executed``: the tool has run, so the call is not to be repeated just so."""

    status, code = Status.MIDDLEWARE_ERROR, "MIDDLEWARE.FAILED"

    def __init__(self, uid: str, *, executed: bool) -> None:
        ran = "The tool has run all the same." if executed else "The tool did not run."
        super().__init__(f"A step that every call needs has failed. {ran}")
        self.uid, self.executed = uid, executed


class MissingDependency(Outcome):
    """Nothing to inject was given, or making it failed. Which it is stands in the log, never in what a model reads."""

    status, usual, code = (
        Status.INTERNAL,
        "The tool is not set up for this call. The call itself was valid.",
        "TOOL.INTERNAL",
    )

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


FAILED = ToolResult.error("The tool failed.", code="TOOL.FAILED")
DECISIONS = (Outcome, DomainError)


def build_error_result(error: Exception) -> ToolResult:
    """What a model reads of an exception that came out of a tool."""
    if not isinstance(error, DECISIONS):
        return replace(FAILED, cause=error)
    status = error.status if isinstance(error, Outcome) else Status.TOOL_ERROR
    details: tuple[Mapping[str, Any], ...] = (error.details,) if error.details else ()
    if isinstance(error, InvalidOutput):
        details = error.findings
    return replace(ToolResult.error(error.message, status=status, code=error.code, details=details), cause=error)


def build_argument_refusal(error: Exception, known: Collection[str]) -> ToolResult:
    """What is wrong with arguments, without quoting values. ``known``: the names in the tool's schema; of others only one that is
    too many is named.
    """
    found = list_findings(error, known)
    for each, its_own in zip(found, _list_errors(error), strict=True):
        if its_own["type"] in _TOO_MANY:  # as a hub says it: without the name nobody can mend it
            name = str(its_own["loc"][-1])[:80]
            named = f"'{name}'" if name.isprintable() else repr(name)
            each["msg"] = f"Additional properties are not allowed ({named} was unexpected)"
    return ToolResult.error(
        f"The arguments are not valid. {format_findings(found) or 'They hold what JSON cannot.'}",
        status=Status.INVALID_ARGUMENTS,
        code="TOOL.ARGS_INVALID",
        details=found,
    )


def list_findings(error: Exception, known: Collection[str]) -> list[dict[str, Any]]:
    """What pydantic found wrong with arguments, and where; no values, and no keys but those that are ``known``. Empty for any other
    error."""
    return [
        _build_finding(each, [part for part in each["loc"] if isinstance(part, int) or part in known], each["msg"])
        for each in _list_errors(error)
    ]


def list_result_findings(error: Exception, known: Collection[str], result: Any) -> list[dict[str, Any]]:
    """The same of a result, which may hold what was injected: so numbers are told where they are places in a list, and sentences where
    they are pydantic-core's own and say what the schema does."""
    return [
        _build_finding(
            each, [*_list_places(each["loc"], known, result)], each["msg"] if _is_of_schema(each) else _REFUSED
        )
        for each in _list_errors(error)
    ]


def _build_finding(error: Mapping[str, Any], loc: list[Any], sentence: str) -> dict[str, Any]:
    return {"loc": loc, "code": error["type"], "msg": _UNQUOTED.get(error["type"], sentence)}


def _list_places(loc: Iterable[str | int], known: Collection[str], value: Any) -> Iterator[str | int]:
    for part in loc:
        is_place = isinstance(part, int) and isinstance(value, (list, tuple))
        if is_place or part in known:
            yield part
        if isinstance(value, (list, tuple)):
            value = value[part] if isinstance(part, int) and part < len(value) else value
        elif isinstance(value, dict):
            value = value.get(part, value)  # what is no key is the name of one of several types


def _is_of_schema(error: Mapping[str, Any]) -> bool:
    """Whether a sentence is one of pydantic-core's and says nothing but what the schema does. Its code alone does not tell: a type's
    own validator may take any."""
    context: Mapping[str, Any] = error.get("ctx", {})
    pydantic_core: Any = importlib.import_module("pydantic_core")  # the error loaded it; importing this module must not
    try:
        sentence = pydantic_core.PydanticKnownError(error["type"], dict(context)).message()
    except (KeyError, TypeError):  # it knows no such error, or none with such a context
        return False
    return bool(sentence == error["msg"]) and context.keys() <= _OF_SCHEMA


def _escape(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def _list_errors(error: Exception) -> list[dict[str, Any]]:
    if not hasattr(error, "errors"):
        return []
    found: list[dict[str, Any]] = error.errors(include_url=False, include_input=False)
    return found[:_TOLD]


def format_findings(findings: Iterable[Mapping[str, Any]]) -> str:
    """``where.x: Input should be a valid integer; …``"""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}".removeprefix(": ") for each in findings)


_TOLD = 20
_TOO_MANY = ("extra_forbidden", "unexpected_keyword_argument")
_UNQUOTED = {
    "union_tag_invalid": "This is none of the kinds that are expected"
}  # pydantic's own sentence quotes what was given
_REFUSED = "The value is refused by a validator of its type"
# What pydantic-core's sentences take from the schema, or from how much there is. All else was given, or comes from somebody's code.
_OF_SCHEMA = frozenset(
    {
        *("actual_length", "class", "class_name", "decimal_places", "discriminator", "encoding", "expected"),
        *("expected_schemes", "expected_tags", "expected_version", "field_type", "ge", "gt", "le", "lt", "max_digits"),
        *("max_length", "method_name", "min_length", "multiple_of", "pattern", "tz_expected", "whole_digits"),
    }
)
